"""The loops that step the environment: the compiled loop, the host loop, and their common parts."""
