"""Long runs: callbacks, records of their history, measurements, progress, and training in a folder."""
