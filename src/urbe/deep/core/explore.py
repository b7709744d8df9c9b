"""Acting: the best action of a perturbed Q, and now and then a random one."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int32

from urbe.deep.core.last_layer import Head, head_input
from urbe.deep.core.networks import Layers, head_values
from urbe.deep.core.settings import Epsilon, Settings
from urbe.deep.core.variances import LastLayer


class Choice(NamedTuple):
    """What n environments do next, and why."""

    action: Int32[Array, " n"]
    flipped: Bool[Array, " n"]  # the noise alone changed the best action
    epsilon: Float[Array, ""]
    w: Float[Array, "n A"]


def epsilon_at(epsilon: Epsilon, step: Int[Array, ""]) -> Float[Array, ""]:
    """The share of random actions after `step` transitions."""
    part = jnp.minimum(step.astype(jnp.float32) / epsilon.steps, 1.0)
    share: Array = jnp.float32(epsilon.first) + part * jnp.float32(epsilon.last - epsilon.first)
    return share


def noisy_values(
    settings: Settings,
    variance: LastLayer,
    head: Layers,
    noise: Float[Array, "n A"],
    obs: Float[Array, "n D"],
    phi: Float[Array, "n F"],
    q: Float[Array, "n A"],
) -> tuple[Float[Array, "n A"], Float[Array, "n A"]]:
    """Q + beta zeta sqrt(max(w, 0)), and w."""
    w = head_values(variance, head, head_input(settings, variance, obs, phi))
    return q + jnp.float32(variance.beta) * noise * jnp.sqrt(jnp.maximum(w, 0.0)), w


def choose(
    settings: Settings,
    head: Head | None,
    step: Int[Array, ""],
    key: jax.Array,
    obs: Float[Array, "n D"],
    phi: Float[Array, "n F"],
    q: Float[Array, "n A"],
) -> Choice:
    """The actions of n environments. The key is consumed; agents with and without a head use it alike."""
    n, n_actions = q.shape
    noise_key, random_key = jax.random.split(key)
    greedy = q.argmax(axis=-1).astype(jnp.int32)
    best, w = greedy, jnp.zeros_like(q)
    if head is not None and isinstance(settings.variance, LastLayer):
        noise = jax.random.normal(noise_key, q.shape, jnp.float32)
        values, w = noisy_values(settings, settings.variance, head.layers, noise, obs, phi, q)
        best = values.argmax(axis=-1).astype(jnp.int32)
    epsilon = epsilon_at(settings.epsilon, step)
    words = jax.random.bits(random_key, (2, n), jnp.uint32)
    explore = (words[0] >> 8).astype(jnp.float32) * jnp.float32(2.0**-24) < epsilon
    anything = ((words[1].astype(jnp.uint64) * n_actions) >> 32).astype(jnp.int32)
    return Choice(jnp.where(explore, anything, best), best != greedy, epsilon, w)
