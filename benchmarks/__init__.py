"""Benchmarks: every figure is a ratio measured in one run, minimum over repeats, CPU time and wall time."""
