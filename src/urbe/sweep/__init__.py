"""Many cells, each run once, on this machine or on many: what was finished stays, what was killed goes on."""
