"""How commands that use JAX set it up, before it is imported."""

from __future__ import annotations

import os
from contextlib import suppress

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def set_up_jax() -> None:
    """One thread, as these networks are too small for more, and compiled programs kept on the disk.

    XLA_FLAGS of the user's own stay as they are. Without a place to write, programs are compiled every time.
    """
    os.environ.setdefault("XLA_FLAGS", ONE_THREAD)
    from urbe.deep.compilation import cache_compilation

    with suppress(OSError):
        cache_compilation()
