"""Estimate the return of a greedy policy under every member of a set: many episodes at once, without learning.

    J_k = mean over episodes of sum_t gamma^t r_t      under member k

Episode e uses the same random numbers under all members, so that differences come from their parameters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32

from urbe.deep.core.networks import q_values
from urbe.deep.core.settings import Settings
from urbe.simulators.base import Key, Params, Simulator, State, step


class _Episode(NamedTuple):
    state: State
    total: Float[Array, ""]
    weight: Float[Array, ""]  # gamma^t, zero once the episode has ended
    step: Int32[Array, ""]


def member_returns(
    settings: Settings, q: Any, simulator: Simulator, uncertain: Params, key: Key, episodes: int
) -> Float[Array, " K"]:
    """Computes J_k of the greedy policy of a network; traceable. The key is consumed.

    Args:
      settings: settings with network and discount.
      q: weights of the network.
      simulator: the simulator.
      uncertain: `(K,)` parameters.
      episodes: number of episodes per member.
    """

    def one(params: Params, own: Key) -> Float[Array, ""]:
        def more(at: _Episode) -> Bool[Array, ""]:
            goes_on: Array = (at.weight > 0.0) & (at.step < simulator.time_limit)
            return goes_on

        def advance(at: _Episode) -> _Episode:
            action = q_values(settings.network, q, simulator.observe(at.state)).argmax().astype(jnp.int32)
            arrived = step(simulator, jax.random.fold_in(own, at.step + 1), at.state, action, params)
            weight = at.weight * jnp.where(arrived.terminated, 0.0, jnp.float32(settings.discount))
            return _Episode(arrived.state, at.total + at.weight * arrived.reward, weight, at.step + 1)

        first = simulator.start(jax.random.fold_in(own, 0), params)
        return jax.lax.while_loop(more, advance, _Episode(first, jnp.float32(0), jnp.float32(1), jnp.int32(0))).total

    keys = jax.vmap(lambda e: jax.random.fold_in(key, e))(jnp.arange(episodes, dtype=jnp.uint32))
    of_members = jax.vmap(lambda params: jax.vmap(lambda own: one(params, own))(keys))(uncertain)
    return of_members.mean(axis=-1)
