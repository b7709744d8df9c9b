"""Actor-critic with networks, trained on draws from an uncertainty set."""
