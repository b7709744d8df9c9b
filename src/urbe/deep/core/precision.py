"""Float64 where it is asked for, without changing what the user's own JAX code does."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import jax


def double() -> AbstractContextManager[Any]:
    """Within it 64-bit types exist; every array of ours says which type it is of."""
    manager: AbstractContextManager[Any] = jax.enable_x64(True)
    return manager
