"""The replay: a ring of transitions, each with its outcomes under every member of the set.

Of a member's J outcomes a target needs only

    y_k = gain_k + sum_j weight_kj V(obs_kj),   gain_k = sum_j p_kj r_kj,   weight_kj = gamma p_kj [not terminated]

so only these are stored, together with the last targets and the version of their target network.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int32, UInt64

from urbe import memory


class Successors(NamedTuple):
    """The outcomes of a state and an action under the members."""

    gain: Float[Array, "*N K"]
    weight: Float[Array, "*N K J"]
    obs: Float[Array, "*N K J D"]


class Transition(NamedTuple):
    """One step of n parallel environments."""

    obs: Float[Array, "n D"]
    action: Int[Array, " n"]
    successors: Successors
    last: Bool[Array, " n"]  # terminated or truncated


class Replay(NamedTuple):
    """N transitions; `inserted` counts all since the start."""

    obs: Float[Array, "N D"]
    action: Int32[Array, " N"]
    successors: Successors
    last: Bool[Array, " N"]
    next_obs: Float[Array, "N D"]
    next_action: Int32[Array, " N"]
    target: Float[Array, "N K"]
    stamp: Int32[Array, " N"]
    inserted: Int32[Array, ""]


def replay_bytes(capacity: int, obs_size: int, members: int, outcomes: int) -> dict[str, float]:
    """The size of a replay, by part."""
    return {
        f"{capacity} observations of {obs_size} numbers, and the ones after them": 4.0 * capacity * 2 * obs_size,
        f"the outcomes under {members} members for each of {capacity} transitions": (
            4.0 * capacity * members * (2 + outcomes * (1 + obs_size))
        ),
        f"actions and marks of {capacity} transitions": 13.0 * capacity,
    }


def init_replay(capacity: int, obs_size: int, members: int, outcomes: int) -> Replay:
    """Makes an empty replay.

    Raises:
      NotEnoughMemory: it does not fit.
    """
    memory.require(
        replay_bytes(capacity, obs_size, members, outcomes),
        "Use a smaller capacity, fewer members, or smaller observations.",
    )
    f, i = jnp.float32, jnp.int32
    return Replay(
        obs=jnp.zeros((capacity, obs_size), f),
        action=jnp.zeros(capacity, i),
        successors=Successors(
            jnp.zeros((capacity, members), f),
            jnp.zeros((capacity, members, outcomes), f),
            jnp.zeros((capacity, members, outcomes, obs_size), f),
        ),
        last=jnp.zeros(capacity, bool),
        next_obs=jnp.zeros((capacity, obs_size), f),
        next_action=jnp.zeros(capacity, i),
        target=jnp.zeros((capacity, members), f),
        stamp=jnp.full(capacity, -1, i),
        inserted=jnp.int32(0),
    )


def insert(
    replay: Replay,
    transition: Transition,
    next_obs: Float[Array, "n D"],
    next_action: Int[Array, " n"],
    target: Float[Array, "n K"],
    version: Int[Array, ""],
) -> Replay:
    """Adds n transitions with their targets, replacing the oldest ones when full."""
    capacity = len(replay.stamp)
    n = len(transition.action)
    new = replay._replace(
        obs=transition.obs,
        action=transition.action,
        successors=transition.successors,
        last=transition.last,
        next_obs=next_obs,
        next_action=next_action,
        target=target,
        stamp=jnp.broadcast_to(version, n),
    )
    for row in range(n):
        at = (replay.inserted + row) % capacity

        def put(ring: Array, of_all: Array, at: Array = at, row: int = row) -> Array:
            if not ring.ndim:
                return ring
            changed: Array = jax.lax.dynamic_update_index_in_dim(ring, of_all[row].astype(ring.dtype), at, 0)
            return changed

        replay = jax.tree.map(put, replay, new)
    return replay._replace(inserted=replay.inserted + n)


def sample(replay: Replay, words: UInt64[Array, " B"]) -> Int32[Array, " B"]:
    """Samples places of transitions uniformly with replacement, from uniform random words."""
    present = jnp.minimum(replay.inserted, len(replay.stamp)).astype(jnp.uint64)
    return (((words >> 32) * present) >> 32).astype(jnp.int32)
