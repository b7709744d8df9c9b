"""Actor-critic with networks, on draws of an uncertainty set."""
