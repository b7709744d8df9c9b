"""The input of the network for a pair of observation and belief.

observation in units of its magnitude, b, log b clipped, mean and deviation of the parameters that vary, and the
hazard's candidates if several
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from urbe.belief.arrays import logarithm
from urbe.belief.switching import of_hazards, of_members
from urbe.deep.adaptive.model import BeliefModel

LEAST = -8.0
"""Logarithms of beliefs are clipped at this value, and divided by it."""


def inputs(model: BeliefModel, obs: Float[Array, "*B D"], log_b: Float[Array, "*B H K"]) -> Float[Array, "*B I"]:
    """One row of numbers for each pair."""
    return inputs_of(model, obs, of_members(log_b), of_hazards(log_b))


def inputs_of(
    model: BeliefModel,
    obs: Float[Array, "*B D"],
    belief: Float[Array, "*B K"],
    hazards: Float[Array, "*B H"],
) -> Float[Array, "*B I"]:
    """The same from probabilities of members and of hazards."""
    mean = belief @ model.scaled
    spread = jnp.sqrt(jnp.maximum(belief @ model.scaled**2 - mean**2, 1e-6))
    parts = [obs / model.magnitude, belief, jnp.maximum(logarithm(belief), LEAST) / -LEAST, mean, spread]
    return jnp.concatenate([*parts, hazards] if hazards.shape[-1] > 1 else parts, axis=-1)
