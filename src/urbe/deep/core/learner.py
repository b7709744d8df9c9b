"""The learning step of the whole family, a pure function from an agent's state and a transition to its new state.

              | no variance | last layer
    average   | DQN         | DQN-UBE
    worst     | robust DQN  | DQN-URBE

Every loop calls `begin` once and `observe` for each transition; nothing else learns.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float64, Int, Int32

from urbe.deep.core import tricks
from urbe.deep.core.explore import ExploringChoice, choose
from urbe.deep.core.keys import words
from urbe.deep.core.loss import q_step
from urbe.deep.core.replay import Replay, Transition, init_replay, insert, sample
from urbe.deep.core.schedules import due, rate_at
from urbe.deep.core.settings import Settings
from urbe.deep.core.targets import member_targets
from urbe.deep.core.variances import Visits


class LearnerState(NamedTuple):
    """The complete state of a learner."""

    q: Any  # weights of the network
    target: Any
    optimiser: Any  # state of the optimiser
    head: Any  # state of the variance, or None
    replay: Replay
    step: Int32[Array, ""]  # transitions seen
    updates: Int32[Array, ""]  # gradient steps
    episodes: Int32[Array, ""]  # finished ones
    version: Int32[Array, ""]  # number of updates of the target network
    key: jax.Array


@runtime_checkable
class Learned(Protocol):
    """The common interface of learners, of DQN or of another kind."""

    @property
    def q(self) -> Any:
        """The weights of the acting network."""

    @property
    def head(self) -> Any:
        """The state of the variance, or None."""

    @property
    def step(self) -> Int32[Array, ""]:
        """Transitions seen."""

    @property
    def updates(self) -> Int32[Array, ""]:
        """Gradient steps."""

    @property
    def episodes(self) -> Int32[Array, ""]:
        """Finished episodes."""


class Progress(NamedTuple):
    """Diagnostics of `observe`: means over its environments or, for the first two, over gradient steps."""

    loss: Float[Array, ""]
    td_error: Float[Array, ""]
    updates: Int32[Array, ""]
    epsilon: Float[Array, ""]
    flipped: Float[Array, ""]
    nu: Float64[Array, ""]
    w: Float[Array, ""]
    negative_w: Float[Array, ""]
    feature_norm: Float[Array, ""]
    decided: Float[Array, " K"] | None = None  # targets decided by each member; None for a single member


_WEIGHTS, _HEAD, _BATCH, _ACT, _HEAD_BATCH = range(5)  # streams of random numbers


def init_learner(
    settings: Settings, key: jax.Array, obs_size: int, n_actions: int, members: int, outcomes: int
) -> LearnerState:
    """A learner without data. The key is consumed."""
    q = settings.network.init(jax.random.fold_in(key, _WEIGHTS), obs_size, n_actions)
    zero = jnp.int32(0)
    return LearnerState(
        q=q,
        target=jax.tree.map(jnp.copy, q),
        optimiser=settings.optimiser.init(q),
        head=settings.variance.init(settings, jax.random.fold_in(key, _HEAD), obs_size, n_actions),
        replay=init_replay(settings.capacity, obs_size, members, outcomes),
        step=zero,
        updates=zero,
        episodes=zero,
        version=zero,
        key=key,
    )


def begin(settings: Settings, learner: LearnerState, obs: Float[Array, "n D"]) -> Int32[Array, " n"]:
    """Chooses actions at the very first observations."""
    phi = settings.network.features(learner.q, obs)
    key = _stream(learner, _ACT, jnp.int32(-1))
    return choose(settings, learner.head, learner.step, key, obs, phi, settings.network.values(learner.q, phi)).action


def observe(
    settings: Settings, learner: LearnerState, transition: Transition, acting_obs: Float[Array, "n D"]
) -> tuple[LearnerState, Int32[Array, " n"], Progress]:
    """Learns from one transition of each of n environments, and chooses the next actions.

    As in the paper's listing, the next action is chosen before learning, the head learns before the Q-network, and the
    inverse counts are updated after the head has learned, with the old features.

    Args:
      settings: settings of the agent.
      learner: its state; not changed.
      transition: the transition.
      acting_obs: observation for the next action: s', or the first one of a new episode after a last step.

    Returns:
      the new learner, the next actions, and diagnostics.
    """
    n, network = len(transition.action), settings.network
    phi = network.features(learner.q, jnp.concatenate([transition.obs, acting_obs]))
    key = _stream(learner, _ACT, learner.step)
    choice = choose(settings, learner.head, learner.step, key, acting_obs, phi[n:], network.values(learner.q, phi[n:]))

    before = learner
    fresh = member_targets(settings, learner.target, learner.q, transition.successors)
    learner = learner._replace(
        replay=insert(learner.replay, transition, acting_obs, choice.action, fresh, learner.version),
        step=before.step + n,
        episodes=before.episodes + transition.last.sum(dtype=jnp.int32),
    )
    visits = Visits(transition.obs, phi[:n], transition.action, transition.last, acting_obs, phi[n:], choice.action)
    learner, nu = _learn_variance(settings, learner, visits)
    learner, loss, td_error, decided = _learn_q(settings, learner, before, choice)
    head = settings.variance.refresh(settings, learner.head, learner.q, learner.replay, before.step, learner.step)
    learner = learner._replace(head=head)
    progress = _progress(learner.updates - before.updates, loss, td_error, nu, choice, phi[:n])
    return learner, choice.action, progress._replace(decided=decided)


def _learn_variance(
    settings: Settings, learner: LearnerState, visits: Visits
) -> tuple[LearnerState, Float64[Array, ""]]:
    def remembered(count: int) -> Visits:
        drawn = words(jax.random.fold_in(learner.key, _HEAD_BATCH), learner.step, count)
        places = sample(learner.replay, drawn)
        obs, next_obs = learner.replay.obs[places], learner.replay.next_obs[places]
        phi = settings.network.features(learner.q, jnp.concatenate([obs, next_obs]))
        action, last, next_action = (
            kept[places] for kept in (learner.replay.action, learner.replay.last, learner.replay.next_action)
        )
        return Visits(obs, phi[:count], action, last, next_obs, phi[count:], next_action)

    head, nu = settings.variance.learn(settings, learner.head, visits, remembered, learner.step)
    return learner._replace(head=head), nu


def _learn_q(
    settings: Settings, learner: LearnerState, before: LearnerState, choice: ExploringChoice
) -> tuple[LearnerState, Float[Array, ""], Float[Array, ""], Float[Array, " K"] | None]:
    """Takes the gradient steps that are due; returns mean loss, absolute TD error, and the deciding members."""
    members = learner.replay.target.shape[-1]

    def one(_: Array, carry: tuple[LearnerState, Array, Array, Any]) -> tuple[LearnerState, Array, Array, Any]:
        learner, loss_sum, error_sum, decided = carry
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
        decided = None if decided is None else decided + step.decided
        return learner, loss_sum + step.loss, error_sum + step.td_error, decided

    rounds = due(learner.step, before.step, settings.train_every)
    steps = jnp.where(learner.replay.inserted >= settings.warm_up, rounds * settings.gradient_steps, 0)
    steps = tricks.after(steps, choice.action[0])  # after the choice, the weights may change in place
    nobody = None if members == 1 else jnp.zeros(members, jnp.float32)
    learner, loss, error, decided = jax.lax.fori_loop(
        0, steps, one, (learner, jnp.float32(0.0), jnp.float32(0.0), nobody)
    )
    if settings.copy.episodes is not None:
        ended = due(learner.episodes, before.episodes, settings.copy.episodes) > 0
        learner = _follow(learner, settings.copy.tau, ended)
    per = jnp.maximum(steps, 1).astype(jnp.float32)
    return learner, loss / per, error / per, decided


def _follow(learner: LearnerState, tau: float, wanted: Array) -> LearnerState:
    """target <- (1 - tau) target + tau weights, if `wanted`."""

    def mix(old: Array, new: Array) -> Array:
        mixed: Array = old + jnp.float32(tau) * (new - old)
        return mixed

    def follow(_: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        target, version = carry
        return learner.q if tau == 1.0 else jax.tree.map(mix, target, learner.q), version + 1

    target, version = tricks.run_if(wanted, follow, (learner.target, learner.version))
    return learner._replace(target=target, version=version)


def _stream(learner: LearnerState, name: int, index: Int[Array, ""]) -> jax.Array:
    return jax.random.fold_in(jax.random.fold_in(learner.key, name), index)


def _progress(
    updates: Int[Array, ""],
    loss: Float[Array, ""],
    td_error: Float[Array, ""],
    nu: Float64[Array, ""],
    choice: ExploringChoice,
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
