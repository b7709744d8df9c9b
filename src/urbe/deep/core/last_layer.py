"""The uncertainty head: what it keeps, and how it learns the variance of the Q-values."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float64, Int

from urbe.deep.core.gram import Gram, absorb, init_gram, inverse_count, rebuild, refresh
from urbe.deep.core.networks import Layers, features, head_values, hidden, init_layers, n_features, scaled
from urbe.deep.core.optimisers import Moments, adam_step, init_moments, rate_at
from urbe.deep.core.replay import Replay
from urbe.deep.core.settings import Settings
from urbe.deep.core.variances import LastLayer


class Head(NamedTuple):
    """The head's network, the inverse counts, and the running squared TD error of each action with its weight."""

    layers: Layers
    optimiser: Moments
    gram: Gram
    residual: Float64[Array, " A"]
    residual_weight: Float64[Array, " A"]


class Visits(NamedTuple):
    """m steps as the head sees them: what follows is whatever was observed and done next."""

    obs: Float[Array, "m D"]
    phi: Float[Array, "m F"]
    action: Int[Array, " m"]
    last: Bool[Array, " m"]
    next_obs: Float[Array, "m D"]
    next_phi: Float[Array, "m F"]
    next_action: Int[Array, " m"]


def init_head(settings: Settings, variance: LastLayer, key: jax.Array, obs_size: int, n_actions: int) -> Head:
    """A head that has seen nothing. The key is consumed."""
    inputs = obs_size if variance.raw_input else settings.network.hidden[-1]
    layers = init_layers(key, (inputs, *variance.hidden, n_actions))
    zeros = jnp.zeros(n_actions, jnp.float64)
    gram = init_gram(n_actions, n_features(settings.network, variance), variance.mu)
    return Head(layers, init_moments(layers), gram, zeros, zeros)


def head_input(
    settings: Settings, variance: LastLayer, obs: Float[Array, "*B D"], phi: Float[Array, "*B F"]
) -> Float[Array, "*B I"]:
    """What the head's first layer gets; no gradient flows back."""
    return jax.lax.stop_gradient(scaled(settings.network, obs) if variance.raw_input else phi)


def local_variance(
    variance: LastLayer, head: Head, action: Int[Array, " m"], phi: Float[Array, "m F"]
) -> Float64[Array, " m"]:
    """nu = scale_a phi' Sigma_a phi for each row."""
    seen = features(variance, phi)
    if len(action) == 1:  # as `absorb_visits` asks, so that the compiler sees that it is the same
        counts = inverse_count(head.gram, action[0], seen[0])[None]
    else:
        counts = jax.vmap(lambda a, x: inverse_count(head.gram, a, x))(action, seen)
    return residual_scale(variance, head)[action] * counts


def residual_scale(variance: LastLayer, head: Head) -> Float64[Array, " A"]:
    """scale_a: one in the paper's form and before any TD error, else their running mean square."""
    if variance.residual_decay is None:
        return jnp.ones_like(head.residual)
    known = head.residual_weight > 0.0
    return jnp.where(known, head.residual / jnp.where(known, head.residual_weight, 1.0), 1.0)


def head_loss(
    settings: Settings,
    variance: LastLayer,
    layers: Layers,
    visits: Visits,
    wanted: Float[Array, " m"],
) -> Float[Array, ""]:
    """mean (y - w(s, a))^2, in the head's weights alone."""
    w = head_values(variance, layers, head_input(settings, variance, visits.obs, visits.phi))
    chosen = jnp.take_along_axis(w, visits.action[:, None], axis=-1)[:, 0]
    return ((jax.lax.stop_gradient(wanted) - chosen) ** 2).mean()


def learn_head(
    settings: Settings, variance: LastLayer, head: Head, visits: Visits, step: Int[Array, ""]
) -> tuple[Head, Float64[Array, ""]]:
    """One gradient step towards y = nu(s, a) + gamma^2 max(w(s', a'), 0); also gives the mean nu.

    w enters clipped, as it does where its root is taken: a variance below zero says nothing.
    """
    nu = local_variance(variance, head, visits.action, visits.phi)
    next_w = head_values(variance, head.layers, head_input(settings, variance, visits.next_obs, visits.next_phi))
    follow = jnp.maximum(jnp.take_along_axis(next_w, visits.next_action[:, None], axis=-1)[:, 0], 0.0)
    wanted = nu.astype(jnp.float32) + jnp.where(visits.last, 0.0, jnp.float32(settings.discount**2) * follow)
    gradient = jax.grad(lambda layers: head_loss(settings, variance, layers, visits, wanted))(head.layers)
    rate = rate_at(settings.decay, variance.learning_rate, step)
    layers, moments = adam_step(settings.optimiser, rate, head.layers, head.optimiser, gradient, settings.clip_norm)
    return head._replace(layers=layers, optimiser=moments), nu.mean()


def replayed_visits(settings: Settings, q: Layers, replay: Replay, places: Int[Array, " m"]) -> Visits:
    """Remembered steps, with today's features."""
    obs, next_obs = replay.obs[places], replay.next_obs[places]
    phi = hidden(q, scaled(settings.network, jnp.concatenate([obs, next_obs])))
    m = len(places)
    return Visits(
        obs, phi[:m], replay.action[places], replay.last[places], next_obs, phi[m:], replay.next_action[places]
    )


def track_residual(variance: LastLayer, head: Head, action: Int[Array, " B"], td: Float[Array, " B"]) -> Head:
    """The mean squared TD error of each action in a minibatch enters its running average."""
    if variance.residual_decay is None:
        return head
    taken = jax.nn.one_hot(action, len(head.residual), dtype=jnp.float64)
    count = taken.sum(axis=0)
    mean = (taken * (td.astype(jnp.float64) ** 2)[:, None]).sum(axis=0) / jnp.maximum(count, 1.0)
    keep = jnp.where(count > 0.0, variance.residual_decay, 1.0)
    return head._replace(
        residual=keep * head.residual + (1.0 - keep) * mean,
        residual_weight=keep * head.residual_weight + (1.0 - keep),
    )


def absorb_visits(variance: LastLayer, head: Head, action: Int[Array, " n"], phi: Float[Array, "n F"]) -> Head:
    """The inverse counts after n more visits."""
    seen = features(variance, phi)
    gram = head.gram
    for i in range(len(action)):
        gram = absorb(gram, action[i], seen[i])
    return head._replace(gram=gram)


def refresh_head(variance: LastLayer, head: Head) -> Head:
    """Forgets what `refresh_every` steps forget, and inverts exactly."""
    return head._replace(gram=refresh(head.gram, variance.mu, variance.forget**variance.refresh_every))


def rebuild_head(settings: Settings, variance: LastLayer, head: Head, q: Layers, replay: Replay) -> Head:
    """The inverse counts of what the replay holds, with today's features."""
    phi = features(variance, hidden(q, scaled(settings.network, replay.obs)))
    real = (jnp.arange(len(replay.stamp)) < replay.inserted).astype(jnp.float64)
    return head._replace(gram=rebuild(phi, replay.action, real, len(head.residual), variance.mu))
