"""How commands that use JAX set it up, before it is imported."""

from __future__ import annotations

import os
from contextlib import suppress

from urbe.sweep.threads import JAX_ONE_THREAD


def set_up_jax() -> None:
    """One thread, as these networks are too small for more, and compiled programs kept on the disk.

    What the user has set stays as it is. Without a place to write, programs are compiled every time.
    """
    for name, value in JAX_ONE_THREAD.items():
        os.environ.setdefault(name, value)
    from urbe.deep.compilation import cache_compilation

    with suppress(OSError):
        cache_compilation()
