"""Saved agents: their description as plain data, building them again, and files of older versions."""
