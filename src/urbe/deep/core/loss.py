"""The one TD loss, and one gradient step on it."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from urbe.deep.core.columns import q_columns
from urbe.deep.core.last_layer import Head, track_residual
from urbe.deep.core.networks import Layers
from urbe.deep.core.optimisers import Moments, adam_step
from urbe.deep.core.replay import Replay
from urbe.deep.core.settings import Settings
from urbe.deep.core.targets import at, keeps_targets, member_targets, update_targets
from urbe.deep.core.variances import LastLayer


class QStep(NamedTuple):
    """What a gradient step changed, and what it saw."""

    q: Layers
    optimiser: Moments
    head: Head | None
    replay: Replay
    loss: Float[Array, ""]
    td_error: Float[Array, ""]


def q_loss(
    settings: Settings, q: Layers, obs: Float[Array, "B D"], action: Int[Array, " B"], wanted: Float[Array, " B"]
) -> tuple[Float[Array, ""], Float[Array, " B"]]:
    """mean (y - Q(s, a))^2, linear beyond `huber`; and the TD errors y - Q(s, a)."""
    values = q_columns(settings.network, q, obs)
    taken = jax.nn.one_hot(action, len(values), dtype=values.dtype, axis=0)
    td = jax.lax.stop_gradient(wanted) - (values * taken).sum(axis=0)
    if settings.huber is None:
        return (td * td).mean(), td
    limit = jnp.float32(settings.huber)
    size = jnp.abs(td)
    return jnp.where(size <= limit, td * td, limit * (2.0 * size - limit)).mean(), td


def q_step(
    settings: Settings,
    q: Layers,
    target: Layers,
    moments: Moments,
    head: Head | None,
    replay: Replay,
    version: Int[Array, ""],
    places: Int[Array, " B"],
    rate: Float[Array, ""],
) -> QStep:
    """One step of Adam on the transitions at `places`, towards nature's mixture of the members' targets."""
    if not keeps_targets(settings):
        values = member_targets(settings, target, q, at(replay.successors, places))
    else:
        replay = update_targets(settings, replay, target, version, places)
        values = replay.target[places]
    wanted = (settings.nature.weights(values) * values).sum(axis=-1)
    obs, action = replay.obs[places], replay.action[places]
    (loss, td), gradient = jax.value_and_grad(
        lambda layers: q_loss(settings, layers, obs, action, wanted), has_aux=True
    )(q)
    q, moments = adam_step(settings.optimiser, rate, q, moments, gradient, settings.clip_norm)
    if head is not None and isinstance(settings.variance, LastLayer):
        head = track_residual(settings.variance, head, action, td)
    return QStep(q, moments, head, replay, loss, jnp.abs(td).mean())
