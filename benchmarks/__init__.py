"""Benchmarks: ratios measured in one run, each the minimum over repeats, of CPU time and wall time."""

import os

# one thread for everyone, set before NumPy starts any: idle BLAS threads spin and count as CPU time
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"
