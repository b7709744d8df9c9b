"""Sets whose actions share a budget in each state (s-rectangular)."""
