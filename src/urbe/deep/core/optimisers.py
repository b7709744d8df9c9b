"""Adam [Kingma2015], by hand: fewer operations than a general library's, and nothing else to install."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Int32

from urbe.deep.core.settings import Adam, Decay


class Moments(NamedTuple):
    """Running means of gradients and of their squares, shaped like the weights."""

    first: Any
    second: Any
    steps: Int32[Array, ""]


def init_moments(weights: Any) -> Moments:
    """Zero."""
    return Moments(jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights), jnp.int32(0))


def adam_step(
    adam: Adam,
    rate: Float[Array, ""],
    weights: Any,
    moments: Moments,
    gradient: Any,
    clip_norm: float | None = None,
) -> tuple[Any, Moments]:
    """theta <- theta - rate m / (sqrt(v) + offset), m and v corrected for their start at zero.

    m and v are running means of g and g^2, where g is the gradient, scaled down to the norm `clip_norm` if longer.
    """
    steps = moments.steps + 1
    t = steps.astype(jnp.float32)
    b1, b2 = jnp.float32(adam.first_decay), jnp.float32(adam.second_decay)
    # the corrections, folded into the rate and the offset: one division per weight
    root = jnp.sqrt(1.0 - b2**t)
    size, offset = rate * root / (1.0 - b1**t), jnp.float32(adam.offset) * root
    if clip_norm is None:
        # adds nothing; but no weight changes before the gradient has reached the first layer, so none needs a copy
        size = size + 0.0 * jax.tree.leaves(gradient)[0].ravel()[0]
    else:
        shrink = jnp.float32(clip_norm) / jnp.maximum(global_norm(gradient), jnp.float32(clip_norm))
        gradient = jax.tree.map(lambda g: shrink * g, gradient)
    first = jax.tree.map(lambda m, g: b1 * m + (1.0 - b1) * g, moments.first, gradient)
    second = jax.tree.map(lambda v, g: b2 * v + (1.0 - b2) * (g * g), moments.second, gradient)
    moved = jax.tree.map(lambda x, m, v: x - size * m / (jnp.sqrt(v) + offset), weights, first, second)
    return moved, Moments(first, second, steps)


def rate_at(decay: Decay, rate: float, step: Int[Array, ""]) -> Float[Array, ""]:
    """A learning rate after `step` transitions, times its decay."""
    if decay.last == 1.0:
        return jnp.asarray(rate, jnp.float32)
    part = jnp.minimum(step.astype(jnp.float32) / decay.steps, 1.0)
    if decay.cosine:
        part = 0.5 * (1.0 - jnp.cos(jnp.float32(jnp.pi) * part))
    left: Array = jnp.float32(rate) * (1.0 + jnp.float32(decay.last - 1.0) * part)
    return left


def global_norm(gradient: Any) -> Float[Array, ""]:
    """sqrt(sum g^2) over all entries of all arrays."""
    return jnp.sqrt(sum((jnp.vdot(g, g) for g in jax.tree.leaves(gradient)), jnp.float32(0.0)))
