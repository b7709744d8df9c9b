"""The replay of a recurrent agent: one long sequence of steps in a ring, from which windows are replayed.

Every step is stored with the agent's hidden state, so that a window can begin anywhere
[Kapturowski2019].
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int32, UInt64

from urbe import memory


class RecurrentStep(NamedTuple):
    """One step; in a replay, N of them along the first axis."""

    obs: Float[Array, "*N D"]
    action: Int[Array, "*N"]
    reward: Float[Array, "*N"]
    weight: Float[Array, "*N"]  # factor of the next value: gamma, or 0 after termination
    reached: Float[Array, "*N D"]
    last: Bool[Array, "*N"]  # terminated or truncated
    hidden: Float[Array, "*N H"]  # before the step


class SequenceReplay(NamedTuple):
    """N steps in order; `inserted` counts all since the start."""

    steps: RecurrentStep
    inserted: Int32[Array, ""]


def init_sequences(capacity: int, obs_size: int, units: int) -> SequenceReplay:
    """Makes an empty replay.

    Raises:
      NotEnoughMemory: it does not fit.
    """
    numbers = 2 * obs_size + units
    memory.require(
        {f"{capacity} steps of {numbers} observed and hidden numbers": 4.0 * capacity * (numbers + 4)},
        "Use a smaller capacity, fewer units, or smaller observations.",
    )
    f = jnp.float32
    steps = RecurrentStep(
        obs=jnp.zeros((capacity, obs_size), f),
        action=jnp.zeros(capacity, jnp.int32),
        reward=jnp.zeros(capacity, f),
        weight=jnp.zeros(capacity, f),
        reached=jnp.zeros((capacity, obs_size), f),
        last=jnp.zeros(capacity, bool),
        hidden=jnp.zeros((capacity, units), f),
    )
    return SequenceReplay(steps, jnp.int32(0))


def append(replay: SequenceReplay, step: RecurrentStep) -> SequenceReplay:
    """Adds one step, replacing the oldest one when full."""
    at = replay.inserted % len(replay.steps.action)
    steps = jax.tree.map(
        lambda ring, new: jax.lax.dynamic_update_index_in_dim(ring, new.astype(ring.dtype), at, 0), replay.steps, step
    )
    return SequenceReplay(steps, replay.inserted + 1)


def windows(replay: SequenceReplay, words: UInt64[Array, " B"], length: int) -> RecurrentStep:
    """Samples B windows of consecutive steps, leaves `(B, length, ...)`, from uniform random words.

    All stored windows are equally likely; at least `length` steps must be stored.
    """
    capacity = len(replay.steps.action)
    present = jnp.minimum(replay.inserted, capacity)
    count = (present - length + 1).astype(jnp.uint64)
    first = (((words >> 32) * count) >> 32).astype(jnp.int32)
    oldest = replay.inserted - present
    places = (oldest + first[:, None] + jnp.arange(length, dtype=jnp.int32)) % capacity
    found: RecurrentStep = jax.tree.map(lambda ring: ring[places], replay.steps)
    return found
