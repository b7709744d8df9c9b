"""How commands that use JAX set it up, before it is imported."""

from __future__ import annotations

import os
from contextlib import suppress

ONE_THREAD = {"NPROC": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
"""Environment variables; the first sizes XLA's pool of threads: a pool of two takes a third longer per step."""


def set_up_jax() -> None:
    """One thread, as these networks are too small for more, and compiled programs kept on the disk.

    What the user has set stays as it is. Without a place to write, programs are compiled every time.
    """
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    from urbe.deep.compilation import cache_compilation

    with suppress(OSError):
        cache_compilation()
