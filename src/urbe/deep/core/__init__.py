"""The learning core: the state of an agent, and its update by a transition."""
