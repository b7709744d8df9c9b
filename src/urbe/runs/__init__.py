"""Store runs on disk: folders, checkpoints, logs, locks, and agents in files."""
