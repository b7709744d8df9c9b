"""The namespace of an array, NumPy's or JAX's, and sums of exponentials in it."""

from __future__ import annotations

from typing import Any


def namespace(array: Any) -> Any:
    """`numpy` for NumPy arrays, `jax.numpy` for those of JAX, traced or not."""
    return array.__array_namespace__()


def log_sum_exp(x: Any, axes: int = 1) -> Any:
    """log sum exp(x) over the last `axes` axes, which are kept with length one; -inf where all of x is."""
    xp, over = namespace(x), tuple(range(-axes, 0))
    top = xp.max(x, axis=over, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    total = xp.sum(xp.exp(x - top), axis=over, keepdims=True)
    # where the sum vanishes its logarithm is not taken: NumPy would warn
    return xp.where(total > 0.0, xp.log(xp.where(total > 0.0, total, xp.ones_like(total))) + top, -xp.inf)


def logarithm(x: Any) -> Any:
    """log x, -inf at 0 without a warning."""
    xp = namespace(x)
    return xp.where(x > 0.0, xp.log(xp.where(x > 0.0, x, xp.ones_like(x))), -xp.inf)
