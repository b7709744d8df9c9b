"""Finished episodes, noted inside the compiled loop and read between its calls."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int32


class Episodes(NamedTuple):
    """The first `ended` entries are those since the last look; room for one per step."""

    step: Int32[Array, " E"]
    gathered: Float[Array, " E"]
    length: Int32[Array, " E"]
    ended: Int32[Array, ""]


def init_episodes(room: int) -> Episodes:
    """None yet."""
    return Episodes(jnp.zeros(room, jnp.int32), jnp.zeros(room, jnp.float32), jnp.zeros(room, jnp.int32), jnp.int32(0))


def record(
    episodes: Episodes, now: Bool[Array, ""], step: Int[Array, ""], gathered: Float[Array, ""], length: Int[Array, ""]
) -> Episodes:
    """Notes an episode if one ended: how much it gathered (undiscounted) in how many steps."""
    at = episodes.ended  # written in any case, kept when counted
    return Episodes(
        episodes.step.at[at].set(step),
        episodes.gathered.at[at].set(gathered),
        episodes.length.at[at].set(length),
        at + now.astype(jnp.int32),
    )
