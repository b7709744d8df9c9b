"""The only learning step of the family, pure: what an agent keeps, and what one more transition does to it.

              | no variance | last layer
    average   | DQN         | DQN-UBE
    worst     | robust DQN  | DQN-URBE

Every execution path calls `begin` once and `observe` for each transition, and nothing else learns.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float64, Int, Int32

from urbe.deep.core.explore import Choice, choose
from urbe.deep.core.keys import words
from urbe.deep.core.last_layer import (
    Head,
    Visits,
    absorb_visits,
    init_head,
    learn_head,
    rebuild_head,
    refresh_head,
    replayed_visits,
)
from urbe.deep.core.loss import q_step
from urbe.deep.core.networks import Layers, hidden, init_layers, output, scaled
from urbe.deep.core.optimisers import Moments, init_moments, rate_at
from urbe.deep.core.replay import Replay, Transition, init_replay, insert, sample
from urbe.deep.core.settings import Settings
from urbe.deep.core.targets import member_targets
from urbe.deep.core.variances import LastLayer


class Learner(NamedTuple):
    """Everything an agent has learned and needs in order to go on."""

    q: Layers
    target: Layers
    optimiser: Moments
    head: Head | None
    replay: Replay
    step: Int32[Array, ""]  # transitions seen
    updates: Int32[Array, ""]  # gradient steps
    episodes: Int32[Array, ""]  # finished ones
    version: Int32[Array, ""]  # of the target network: how often it has followed the weights
    key: jax.Array


class Progress(NamedTuple):
    """What one call of `observe` has to tell; means over its environments or, for the first two, gradient steps."""

    loss: Float[Array, ""]
    td_error: Float[Array, ""]
    updates: Int32[Array, ""]
    epsilon: Float[Array, ""]
    flipped: Float[Array, ""]
    nu: Float64[Array, ""]
    w: Float[Array, ""]
    negative_w: Float[Array, ""]
    feature_norm: Float[Array, ""]


_WEIGHTS, _HEAD, _BATCH, _ACT, _HEAD_BATCH = range(5)  # streams of random numbers


def init_learner(
    settings: Settings, key: jax.Array, obs_size: int, n_actions: int, members: int, outcomes: int
) -> Learner:
    """A learner that has seen nothing. The key is consumed."""
    sizes = (obs_size, *settings.network.hidden, n_actions)
    q = init_layers(jax.random.fold_in(key, _WEIGHTS), sizes, settings.network.initial)
    head = None
    if isinstance(settings.variance, LastLayer):
        head = init_head(settings, settings.variance, jax.random.fold_in(key, _HEAD), obs_size, n_actions)
    zero = jnp.int32(0)
    return Learner(
        q=q,
        target=jax.tree.map(jnp.copy, q),
        optimiser=init_moments(q),
        head=head,
        replay=init_replay(settings.capacity, obs_size, members, outcomes),
        step=zero,
        updates=zero,
        episodes=zero,
        version=zero,
        key=key,
    )


def begin(settings: Settings, learner: Learner, obs: Float[Array, "n D"]) -> Int32[Array, " n"]:
    """What to do at the very first observations."""
    phi = hidden(learner.q, scaled(settings.network, obs))
    key = _stream(learner, _ACT, jnp.int32(-1))
    return choose(settings, learner.head, learner.step, key, obs, phi, output(learner.q, phi)).action


def observe(
    settings: Settings, learner: Learner, transition: Transition, acting_obs: Float[Array, "n D"]
) -> tuple[Learner, Int32[Array, " n"], Progress]:
    """Takes in one transition of each of n environments, learns, and chooses what to do next.

    As in the paper's listing, the next action is chosen before anything is learned, the head learns before the
    Q-network, and the inverse counts take the visit in after the head has learned, with the features of before.

    Args:
      settings: what kind of agent this is.
      learner: what it knows; not changed.
      transition: what happened.
      acting_obs: where each environment now is: s', or the first observation of a new episode after a last step.

    Returns:
      the learner after it, the next actions, and what there is to tell.
    """
    n = len(transition.action)
    phi = hidden(learner.q, scaled(settings.network, jnp.concatenate([transition.obs, acting_obs])))
    key = _stream(learner, _ACT, learner.step)
    choice = choose(settings, learner.head, learner.step, key, acting_obs, phi[n:], output(learner.q, phi[n:]))

    before = learner
    fresh = member_targets(settings, learner.target, learner.q, transition.successors)
    learner = learner._replace(
        replay=insert(learner.replay, transition, acting_obs, choice.action, fresh, learner.version),
        step=before.step + n,
        episodes=before.episodes + transition.last.sum(dtype=jnp.int32),
    )
    nu = jnp.float64(0.0)
    if isinstance(settings.variance, LastLayer):
        visits = Visits(transition.obs, phi[:n], transition.action, transition.last, acting_obs, phi[n:], choice.action)
        learner, nu = _learn_head(settings, settings.variance, learner, visits)
    learner, loss, td_error = _learn_q(settings, learner, before, choice)
    if isinstance(settings.variance, LastLayer):
        learner = _refresh_head(settings, settings.variance, learner, before)
    return learner, choice.action, _progress(learner.updates - before.updates, loss, td_error, nu, choice, phi[:n])


def _learn_head(
    settings: Settings, variance: LastLayer, learner: Learner, visits: Visits
) -> tuple[Learner, Float64[Array, ""]]:
    assert learner.head is not None
    head, nu = learn_head(settings, variance, learner.head, visits, learner.step)
    if variance.replayed:
        drawn = words(jax.random.fold_in(learner.key, _HEAD_BATCH), learner.step, variance.replayed)
        places = sample(learner.replay, drawn)
        remembered = replayed_visits(settings, learner.q, learner.replay, places)
        head, _ = learn_head(settings, variance, head, remembered, learner.step)
    return learner._replace(head=absorb_visits(variance, head, visits.action, visits.phi)), nu


def _learn_q(
    settings: Settings, learner: Learner, before: Learner, choice: Choice
) -> tuple[Learner, Float[Array, ""], Float[Array, ""]]:
    """As many gradient steps as are due, with their mean loss and absolute TD error."""

    def one(_: Array, carry: tuple[Learner, Array, Array]) -> tuple[Learner, Array, Array]:
        learner, loss_sum, error_sum = carry
        drawn = words(jax.random.fold_in(learner.key, _BATCH), learner.updates, settings.batch)
        places = sample(learner.replay, drawn)
        rate = rate_at(settings.decay, settings.learning_rate, learner.step)
        step = q_step(
            settings,
            learner.q,
            learner.target,
            learner.optimiser,
            learner.head,
            learner.replay,
            learner.version,
            places,
            rate,
        )
        learner = learner._replace(
            q=step.q, optimiser=step.optimiser, head=step.head, replay=step.replay, updates=learner.updates + 1
        )
        if settings.copy.updates is not None:
            learner = _follow(learner, settings.copy.tau, learner.updates % settings.copy.updates == 0)
        return learner, loss_sum + step.loss, error_sum + step.td_error

    # loops that run once or not at all, rather than conditions: their buffers stay in place
    rounds = _due(learner.step, before.step, settings.train_every)
    due = jnp.where(learner.replay.inserted >= settings.warm_up, rounds * settings.gradient_steps, 0)
    due = jnp.where(choice.action[0] >= 0, due, 0)  # always; once it is chosen, the weights may change in place
    learner, loss, error = jax.lax.fori_loop(0, due, one, (learner, jnp.float32(0.0), jnp.float32(0.0)))
    if settings.copy.episodes is not None:
        ended = _due(learner.episodes, before.episodes, settings.copy.episodes) > 0
        learner = _follow(learner, settings.copy.tau, ended)
    per = jnp.maximum(due, 1).astype(jnp.float32)
    return learner, loss / per, error / per


def _follow(learner: Learner, tau: float, wanted: Array) -> Learner:
    """target <- (1 - tau) target + tau weights, where wanted."""

    def mix(old: Array, new: Array) -> Array:
        mixed: Array = old + jnp.float32(tau) * (new - old)
        return mixed

    def follow(_: Array, carry: tuple[Layers, Array]) -> tuple[Layers, Array]:
        target, version = carry
        return learner.q if tau == 1.0 else jax.tree.map(mix, target, learner.q), version + 1

    target, version = jax.lax.fori_loop(0, wanted.astype(jnp.int32), follow, (learner.target, learner.version))
    return learner._replace(target=target, version=version)


def _refresh_head(settings: Settings, variance: LastLayer, learner: Learner, before: Learner) -> Learner:
    """What is due now and then: exact inverses, and counts made anew with today's features."""
    assert learner.head is not None
    head = learner.head
    due = _due(learner.step, before.step, variance.refresh_every)
    head = jax.lax.fori_loop(0, due, lambda _, h: refresh_head(variance, h), head)
    if variance.rebuild_every:
        again = jnp.minimum(_due(learner.step, before.step, variance.rebuild_every), 1)
        q, replay = learner.q, learner.replay
        head = jax.lax.fori_loop(0, again, lambda _, h: rebuild_head(settings, variance, h, q, replay), head)
    return learner._replace(head=head)


def _due(now: Int[Array, ""], before: Int[Array, ""], every: int) -> Int32[Array, ""]:
    """How many multiples of `every` lie in (before, now]."""
    return (now // every - before // every).astype(jnp.int32)


def _stream(learner: Learner, name: int, index: Int[Array, ""]) -> jax.Array:
    return jax.random.fold_in(jax.random.fold_in(learner.key, name), index)


def _progress(
    updates: Int[Array, ""],
    loss: Float[Array, ""],
    td_error: Float[Array, ""],
    nu: Float64[Array, ""],
    choice: Choice,
    phi: Float[Array, "n F"],
) -> Progress:
    return Progress(
        loss=loss,
        td_error=td_error,
        updates=updates,
        epsilon=choice.epsilon,
        flipped=choice.flipped.mean(dtype=jnp.float32),
        nu=nu,
        w=choice.w.mean(dtype=jnp.float32),
        negative_w=(choice.w < 0.0).mean(dtype=jnp.float32),
        feature_norm=jnp.sqrt((phi * phi).sum(axis=-1)).mean(dtype=jnp.float32),
    )
