"""The TD loss, and a gradient step on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from urbe.deep.core.kalman import SeesErrors
from urbe.deep.core.optimisers import optimise
from urbe.deep.core.replay import Replay
from urbe.deep.core.settings import Settings
from urbe.deep.core.targets import at, keeps_targets, member_targets, update_targets

SAME = 1e-5
"""Targets of two members count as equal if their relative difference is smaller than this, as rounding may cause."""


class QStep(NamedTuple):
    """The result of a gradient step, with diagnostics."""

    q: Any
    optimiser: Any
    head: Any
    replay: Replay
    loss: Float[Array, ""]
    td_error: Float[Array, ""]
    decided: Float[Array, " K"]


def q_loss(
    settings: Settings, q: Any, obs: Float[Array, "B D"], action: Int[Array, " B"], wanted: Float[Array, " B"]
) -> tuple[Float[Array, ""], Float[Array, " B"]]:
    """mean (y - Q(s, a))^2, linear beyond `huber`; and the TD errors y - Q(s, a)."""
    values = settings.network.training_values(q, obs)
    taken = jax.nn.one_hot(action, values.shape[-1], dtype=values.dtype)
    td = jax.lax.stop_gradient(wanted) - (values * taken).sum(axis=-1)
    if settings.huber is None:
        return (td * td).mean(), td
    limit = jnp.float32(settings.huber)
    size = jnp.abs(td)
    return jnp.where(size <= limit, td * td, limit * (2.0 * size - limit)).mean(), td


def q_step(
    settings: Settings,
    q: Any,
    target: Any,
    optimiser: Any,
    head: Any,
    replay: Replay,
    version: Int[Array, ""],
    places: Int[Array, " B"],
    rate: Float[Array, ""],
) -> QStep:
    """Takes one optimiser step on the transitions at `places`, towards nature's mixture of the members' targets."""
    if not keeps_targets(settings):
        values = member_targets(settings, target, q, at(replay.successors, places))
    else:
        replay = update_targets(settings, replay, target, version, places)
        values = replay.target[places]
    weights = settings.nature.weights(values)
    wanted = (weights * values).sum(axis=-1)
    obs, action = replay.obs[places], replay.action[places]
    (loss, td), gradient = jax.value_and_grad(
        lambda layers: q_loss(settings, layers, obs, action, wanted), has_aux=True
    )(q)
    if isinstance(settings.optimiser, SeesErrors):
        q, optimiser = settings.optimiser.step(
            settings.network, q, optimiser, obs, action, td, gradient, rate, settings.clip_norm
        )
    else:
        q, optimiser = optimise(settings.optimiser, rate, q, optimiser, gradient, settings.clip_norm)
    head = settings.variance.track(head, action, td)
    return QStep(q, optimiser, head, replay, loss, jnp.abs(td).mean(), decided_by(weights, values))


def decided_by(weights: Float[Array, "B K"], values: Float[Array, "B K"]) -> Float[Array, " K"]:
    """Counts how many of B targets each member decided: nature's weights, summed over targets where members differ.

    If all members have the same value, up to rounding, none decides; the entries add up to the other targets.
    """
    low, high = values.min(axis=-1), values.max(axis=-1)
    differ = high - low > SAME * jnp.maximum(jnp.abs(low), jnp.abs(high))
    return jnp.where(differ[:, None], weights, 0.0).sum(axis=0)
