"""Gymnasium environments for the host loop: one form for all, their states and their parameters."""
