"""One thread a process: sweeps have processes, and rows do not depend on how many of them run side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"

JAX_ONE_THREAD = {"NPROC": "1", "XLA_FLAGS": XLA_ONE_THREAD}
"""Environment variables; the first sizes XLA's pool of threads: a pool of two takes a third longer per step."""

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")} | {"NPROC": "1"}


def one_thread() -> dict[str, str]:
    """Environment variables of a process with one thread; XLA's other flags stay."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    kept = [flag for flag in flags if not flag.startswith("--xla_cpu_multi_thread_eigen")]
    return {**ONE_THREAD, "XLA_FLAGS": " ".join([*kept, XLA_ONE_THREAD])}


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables for processes started within; libraries read them once, when they are imported."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
