"""Sets in which the actions of a state share a budget (s-rectangular)."""
