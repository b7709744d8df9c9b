"""The same networks with a minibatch in columns, for gradient steps: no large matrix is ever transposed.

A product on a CPU is slow where its first factor is transposed, so XLA writes that factor out first. With a minibatch
in rows it is the activations; in columns, the weights alone, which are smaller, and the gradient of the first layer:

                   rows (B, I)      columns (I, B)
    values         x W              W' x
    to the input   dy W'            W dy
    to the weights x' dy            x dy'
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from urbe.deep.core.networks import Layers, scaled
from urbe.deep.core.settings import Network

FEW = 8
"""Inputs or outputs of a layer up to which its gradient is computed in a way of its own."""

LARGE = 3e38
"""Times any positive activation it is above 1, but for denormal numbers."""


def q_columns(network: Network, layers: Layers, obs: Float[Array, "B D"]) -> Float[Array, "A B"]:
    """Q(s, .) of a minibatch, a column each."""
    x = scaled(network, obs).T
    for layer in layers[:-1]:
        x = _dense(True, x, *layer)
    return _dense(False, x, *layers[-1])


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _dense(
    rectified: bool, x: Float[Array, "I B"], weight: Float[Array, "I O"], bias: Float[Array, " O"]
) -> Float[Array, "O B"]:
    """max(W' x + b, 0), or without the maximum; a test holds its gradient against JAX's own."""
    y = _written(weight.T) @ x + bias[:, None]
    return jax.nn.relu(y) if rectified else y


def _forward(rectified: bool, x: Array, weight: Array, bias: Array) -> tuple[Array, tuple[Array, ...]]:
    y = _dense(rectified, x, weight, bias)
    return y, (x, weight, y)


def _backward(rectified: bool, kept: tuple[Array, ...], dy: Array) -> tuple[Array, Array, Array]:
    x, weight, y = kept
    if rectified:  # no selection: it becomes a branch for each entry, mispredicted every other time
        dy = dy * jnp.minimum(y * LARGE, 1.0)
    n_in, n_out = weight.shape
    if n_out <= FEW:
        gradient = x @ _written(dy.T)
    elif n_in <= FEW:
        gradient = _written(dy @ _written(x.T)).T
    else:
        gradient = jax.lax.dot_general(x, dy, (((1,), (1,)), ((), ())))
    return weight @ dy, gradient, dy.sum(axis=1)


_dense.defvjp(_forward, _backward)


def _written(x: Array) -> Array:
    """Laid out in memory as it is, and not read transposed by what follows."""
    laid_out: Array = jax.lax.optimization_barrier(x)  # type: ignore[no-untyped-call]
    return laid_out
