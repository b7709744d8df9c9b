"""Compile programs that run only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def jit_once(function: Callable[P, R]) -> Callable[P, R]:
    """`jax.jit` without optimisation of the machine code, which takes longer than such a program runs.

    Compilation takes less than half of the time. A product that is added to another number may be rounded differently
    than by `jax.jit`, which fuses the two operations.
    """
    compiled: Callable[P, R] = jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})
    return compiled
