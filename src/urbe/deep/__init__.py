"""Deep agents in JAX (extra `urbe[deep]`)."""
