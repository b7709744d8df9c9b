"""Who steps the environment: the compiled loop, the host loop, and what they share."""
