"""Runs on disk: their folders, checkpoints, logs and locks, and agents in files."""
