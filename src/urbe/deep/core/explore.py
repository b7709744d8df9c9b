"""Choose actions: the best one of a perturbed Q, or with probability epsilon a random one."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int32

from urbe.deep.core.schedules import epsilon_at
from urbe.deep.core.settings import Settings


class ExploringChoice(NamedTuple):
    """The next actions of n environments, with diagnostics."""

    action: Int32[Array, " n"]
    flipped: Bool[Array, " n"]  # whether the noise changed the best action
    epsilon: Float[Array, ""]
    w: Float[Array, "n A"]


def choose(
    settings: Settings,
    head: Any,
    step: Int[Array, ""],
    key: jax.Array,
    obs: Float[Array, "n D"],
    phi: Float[Array, "n F"],
    q: Float[Array, "n A"],
) -> ExploringChoice:
    """Chooses the actions of n environments. The key is consumed, in the same way with and without a head."""
    n, n_actions = q.shape
    noise_key, random_key = jax.random.split(key)
    greedy = q.argmax(axis=-1).astype(jnp.int32)
    noise = jax.random.normal(noise_key, q.shape, jnp.float32)
    values, w = settings.variance.perturbed(settings, settings.variance.acting(head), noise, obs, phi, q)
    best = values.argmax(axis=-1).astype(jnp.int32)
    epsilon = epsilon_at(settings.epsilon, step)
    words = jax.random.bits(random_key, (2, n), jnp.uint32)
    explore = (words[0] >> 8).astype(jnp.float32) * jnp.float32(2.0**-24) < epsilon
    anything = ((words[1].astype(jnp.uint64) * n_actions) >> 32).astype(jnp.int32)
    return ExploringChoice(jnp.where(explore, anything, best), best != greedy, epsilon, w)
