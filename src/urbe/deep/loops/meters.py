"""Records of the loops for the logs: means since the last row, deciding members, ended episodes."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int, Int32

from urbe.deep.core.learner import Progress

PER_STEP = ("epsilon", "flipped", "nu", "w", "negative_w", "feature_norm")
PER_UPDATE = ("loss", "td_error")
COLUMNS = ("step", "updates", "episodes", "episode_return", "episode_length", *PER_UPDATE, *PER_STEP)


class Meters(NamedTuple):
    """Sums since the last row of the log."""

    steps: Int32[Array, ""]
    updates: Int32[Array, ""]
    sums: Float64[Array, " M"]
    decided: Float64[Array, " K"] | None = None  # targets decided by each member; None for a single member


def init_meters(members: int = 1) -> Meters:
    """Returns empty sums."""
    decided = None if members == 1 else jnp.zeros(members, jnp.float64)
    return Meters(jnp.int32(0), jnp.int32(0), jnp.zeros(len(PER_UPDATE) + len(PER_STEP), jnp.float64), decided)


def restarted(meters: Meters) -> Meters:
    """The same arrays with zeros, from NumPy: operations of JAX outside of a program are each compiled."""
    zeros: Meters = jax.tree.map(np.zeros_like, meters)
    return zeros


def add(meters: Meters, progress: Progress) -> Meters:
    """Adds the progress of one call of `observe`."""
    of_updates = [getattr(progress, name) * progress.updates for name in PER_UPDATE]
    of_steps = [getattr(progress, name) for name in PER_STEP]
    new = jnp.stack([jnp.asarray(x, jnp.float64) for x in (*of_updates, *of_steps)])
    known = meters.decided is not None and progress.decided is not None
    decided = meters.decided + progress.decided if known else None  # type: ignore[operator]
    return Meters(meters.steps + 1, meters.updates + progress.updates, meters.sums + new, decided)


def means(meters: Meters) -> dict[str, float]:
    """Plain numbers for the log; NaN if there was nothing to average."""
    counts = [int(meters.updates)] * len(PER_UPDATE) + [int(meters.steps)] * len(PER_STEP)
    names = (*PER_UPDATE, *PER_STEP)
    return {
        name: float(total) / count if count else float("nan")
        for name, total, count in zip(names, meters.sums, counts, strict=True)
    }


def decided_by_member(meters: Meters) -> np.ndarray | None:
    """`(K,)` the number of targets that each member decided since the last row."""
    return None if meters.decided is None else np.array(meters.decided, np.float64)


class FinishedEpisodes(NamedTuple):
    """The first `ended` entries are the episodes since the last read; there is room for one per step."""

    step: Int32[Array, " E"]
    episode_return: Float[Array, " E"]
    length: Int32[Array, " E"]
    ended: Int32[Array, ""]


def init_episodes(room: int) -> FinishedEpisodes:
    """Returns a buffer without finished episodes."""
    return FinishedEpisodes(
        jnp.zeros(room, jnp.int32), jnp.zeros(room, jnp.float32), jnp.zeros(room, jnp.int32), jnp.int32(0)
    )


def record(
    episodes: FinishedEpisodes,
    now: Bool[Array, ""],
    step: Int[Array, ""],
    episode_return: Float[Array, ""],
    length: Int[Array, ""],
) -> FinishedEpisodes:
    """Records an episode if one ended: its undiscounted return and its length."""
    at = episodes.ended  # always written, but counted only if an episode ended
    return FinishedEpisodes(
        episodes.step.at[at].set(step),
        episodes.episode_return.at[at].set(episode_return),
        episodes.length.at[at].set(length),
        at + now.astype(jnp.int32),
    )
