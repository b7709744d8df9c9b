"""Actor-critic with networks, trained on draws of an uncertainty set."""
