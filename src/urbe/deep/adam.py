"""Adam [Kingma2015], by hand: fewer operations than a general library's, and nothing else to install."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

from urbe.deep.settings import Adam


class Moments(NamedTuple):
    """Running means of gradients and of their squares, shaped like the weights."""

    first: Any
    second: Any
    steps: Int32[Array, ""]


def init_moments(weights: Any) -> Moments:
    """Zero."""
    return Moments(jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights), jnp.int32(0))


def adam_step(adam: Adam, rate: float, weights: Any, moments: Moments, gradient: Any) -> tuple[Any, Moments]:
    """theta <- theta - rate m / (sqrt(v) + offset), m and v corrected for their start at zero."""
    steps = moments.steps + 1
    t = steps.astype(jnp.float32)
    b1, b2 = jnp.float32(adam.first_decay), jnp.float32(adam.second_decay)
    # the corrections, folded into the rate and the offset: one division per weight
    root = jnp.sqrt(1.0 - b2**t)
    size, offset = jnp.float32(rate) * root / (1.0 - b1**t), jnp.float32(adam.offset) * root
    # adds nothing; but no weight changes before the gradient has reached the first layer, so none needs a copy
    size = size + 0.0 * jax.tree.leaves(gradient)[0].ravel()[0]
    first = jax.tree.map(lambda m, g: b1 * m + (1.0 - b1) * g, moments.first, gradient)
    second = jax.tree.map(lambda v, g: b2 * v + (1.0 - b2) * (g * g), moments.second, gradient)
    moved = jax.tree.map(lambda x, m, v: x - size * m / (jnp.sqrt(v) + offset), weights, first, second)
    return moved, Moments(first, second, steps)
