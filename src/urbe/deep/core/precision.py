"""Use float64 locally, without changing the user's own JAX code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import jax


def double() -> AbstractContextManager[Any]:
    """A context with 64-bit types; all arrays of urbe state their type."""
    manager: AbstractContextManager[Any] = jax.enable_x64(True)
    return manager
