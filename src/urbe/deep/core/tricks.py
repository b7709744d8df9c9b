"""Functions that steer XLA's compiler on a CPU; each could be replaced by the obvious code.

`python -m benchmarks.deep_tricks` measures the gain of each; functions that gain less than 3 % are deleted. Values
equal those of the obvious code, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Carry = TypeVar("Carry")

FEW = 8
"""Layers with at most this many inputs or outputs have a special gradient."""

LARGE = 3e38
"""Its product with any positive normal number is above 1."""


def written(x: Array) -> Array:
    """Writes x to memory once, so that a product neither recomputes it for each entry nor reads it transposed."""
    laid_out: Array = jax.lax.optimization_barrier(x)
    return laid_out


def map_rows(function: Callable[..., Array], *rows: Array) -> Array:
    """Maps a function over rows; a single row is not batched, so that the compiler can share its products."""
    return function(*(each[0] for each in rows))[None] if len(rows[0]) == 1 else jax.vmap(function)(*rows)


def run_if(wanted: Array, body: Callable[[Array, Carry], Carry], carry: Carry) -> Carry:
    """Runs body(turn, carry) `wanted` times, mostly never: a loop instead of a condition keeps buffers in place."""
    done: Carry = jax.lax.fori_loop(0, wanted.astype(jnp.int32), body, carry)
    return done


def in_turn(mask: Array, turn: Array, turns: Array) -> Array:
    """The mask within a turn of a loop, so that values that depend on it are not computed before the loop."""
    return mask & (turn < turns)


def after(value: Array, earlier: Array) -> Array:
    """Makes `value` depend on `earlier` (if whole, at least 0), so that the inputs of `earlier` may then be overwritten
    in place."""
    if jnp.issubdtype(earlier.dtype, jnp.floating):
        return value + 0.0 * earlier
    return jnp.where(earlier >= 0, value, 0)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def dense_columns(
    rectified: bool, x: Float[Array, "I B"], weight: Float[Array, "I O"], bias: Float[Array, " O"]
) -> Float[Array, "O B"]:
    """max(W' x + b, 0), or without the maximum, of a minibatch in columns: no large matrix is ever transposed.

    A product on a CPU is slow where its first factor is transposed, so XLA writes that factor out first. With a
    minibatch in rows it is the activations; in columns, only the weights, which are smaller, and the gradient of the
    first layer. A test compares the gradient with JAX's own.

                       rows (B, I)      columns (I, B)
        values         x W              W' x
        to the input   dy W'            W dy
        to the weights x' dy            x dy'
    """
    y = written(weight.T) @ x + bias[:, None]
    return jax.nn.relu(y) if rectified else y


def _forward(rectified: bool, x: Array, weight: Array, bias: Array) -> tuple[Array, tuple[Array, ...]]:
    y = dense_columns(rectified, x, weight, bias)
    return y, (x, weight, y)


def _backward(rectified: bool, kept: tuple[Array, ...], dy: Array) -> tuple[Array, Array, Array]:
    x, weight, y = kept
    if rectified:  # not a selection, which becomes a branch for each entry, mispredicted half of the time
        dy = dy * jnp.minimum(y * LARGE, 1.0)
    n_in, n_out = weight.shape
    if n_out <= FEW:
        gradient = x @ written(dy.T)
    elif n_in <= FEW:
        gradient = written(dy @ written(x.T)).T
    else:
        gradient = jax.lax.dot_general(x, dy, (((1,), (1,)), ((), ())))
    return weight @ dy, gradient, dy.sum(axis=1)


dense_columns.defvjp(_forward, _backward)
