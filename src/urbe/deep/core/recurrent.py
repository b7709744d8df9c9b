"""Deep recurrent Q-learning: a memory trained through time, and a Q-network that uses it [Kapturowski2019].

With x_t = [o_t | one-hot a_t | r_t | ended | o'_t - o_t] the numbers of a step (`urbe.simulators.stacked.frame`),

    h_{t+1} = GRU(h_t, x_t)                                           kept at the end of an episode if `survives`
    Q(o_t, h_t, .)                                                    any Q-network, on [o_t | h_t]
    y_t = r_t + gamma (not terminated) max_a Q_target(o'_t, h'_{t+1}, a)

and h' the hidden state of the target network's memory. A gradient step replays windows of `burn_in + length` steps.
Both memories begin with the hidden state stored at the window's first step; the first `burn_in` steps only update it to
the current weights, and the loss is over the others. No gradient passes the end of the burn-in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Int32

from urbe import checks
from urbe.deep.core.explore import ExploringChoice, choose
from urbe.deep.core.gru import GRU, gated, gru_step, init_gru
from urbe.deep.core.keys import words
from urbe.deep.core.loss import q_loss
from urbe.deep.core.networks import q_values
from urbe.deep.core.optimisers import optimise
from urbe.deep.core.schedules import due, rate_at
from urbe.deep.core.sequences import RecurrentStep, SequenceReplay, append, init_sequences, windows
from urbe.deep.core.settings import Settings
from urbe.simulators.stacked import frame, frame_size

_WEIGHTS, _MEMORY, _BATCH, _ACT = range(4)  # streams of random numbers


@dataclass(frozen=True)
class Memory:
    """Settings of a recurrent agent's memory.

    Args:
      units: H, the length of the hidden state.
      length: steps of a window in the loss. `Settings.batch // length` windows make a gradient step.
      burn_in: steps before them.
      survives: whether the hidden state survives the end of an episode, for dynamics that do not change there.
    """

    units: int = 48
    length: int = 16
    burn_in: int = 8
    survives: bool = True

    def __post_init__(self) -> None:
        checks.whole_number("units", self.units, 1)
        checks.whole_number("length", self.length, 1)
        checks.whole_number("burn_in", self.burn_in, 0)
        if not isinstance(self.survives, bool):
            raise ValueError(f"survives is {self.survives!r}, expected True or False.")

    @property
    def window(self) -> int:
        """Steps of a window."""
        return self.burn_in + self.length


class RecurrentWeights(NamedTuple):
    """The memory's weights and the Q-network's."""

    memory: GRU
    q: Any


class RecurrentLearner(NamedTuple):
    """The complete state of a recurrent learner."""

    q: RecurrentWeights
    target: RecurrentWeights
    optimiser: Any
    head: None
    replay: SequenceReplay
    step: Int32[Array, ""]
    updates: Int32[Array, ""]
    episodes: Int32[Array, ""]
    key: jax.Array


def init_recurrent(
    settings: Settings, memory: Memory, key: jax.Array, obs_size: int, n_actions: int
) -> RecurrentLearner:
    """A learner without data. The key is consumed."""
    weights = RecurrentWeights(
        init_gru(jax.random.fold_in(key, _MEMORY), frame_size(obs_size, n_actions), memory.units),
        settings.network.init(jax.random.fold_in(key, _WEIGHTS), obs_size + memory.units, n_actions),
    )
    zero = jnp.int32(0)
    return RecurrentLearner(
        q=weights,
        target=jax.tree.map(jnp.copy, weights),
        optimiser=settings.optimiser.init(weights),
        head=None,
        replay=init_sequences(settings.capacity, obs_size, memory.units),
        step=zero,
        updates=zero,
        episodes=zero,
        key=key,
    )


def remembered(memory: Memory, weights: RecurrentWeights, step: RecurrentStep, n_actions: int) -> Float[Array, " H"]:
    """The hidden state after a step."""
    x = frame(step.obs, step.action, step.reward, step.reached, step.last, n_actions)
    after = gru_step(weights.memory, step.hidden, x)
    return after if memory.survives else jnp.where(step.last, 0.0, after)


def choose_recurrent(
    settings: Settings,
    learner: RecurrentLearner,
    hidden: Float[Array, " H"],
    obs: Float[Array, " D"],
    index: Int[Array, ""],
) -> ExploringChoice:
    """Chooses the next action; `index` numbers the choices, from -1."""
    seen = jnp.concatenate([obs, hidden])[None]
    phi = settings.network.features(learner.q.q, seen)
    key = jax.random.fold_in(jax.random.fold_in(learner.key, _ACT), index)
    return choose(settings, None, learner.step, key, seen, phi, settings.network.values(learner.q.q, phi))


class WindowLosses(NamedTuple):
    """Means over the gradient steps that were due."""

    loss: Float[Array, ""]
    td_error: Float[Array, ""]


def learn(
    settings: Settings, memory: Memory, before: RecurrentLearner, step: RecurrentStep, n_actions: int
) -> tuple[RecurrentLearner, WindowLosses]:
    """Stores a step, and takes the gradient steps that are due on replayed windows."""
    learner = before._replace(
        replay=append(before.replay, step),
        step=before.step + 1,
        episodes=before.episodes + step.last.astype(jnp.int32),
    )
    count = max(settings.batch // memory.length, 1)

    def one(_: Array, carry: tuple[RecurrentLearner, Array, Array]) -> tuple[RecurrentLearner, Array, Array]:
        now, loss_sum, error_sum = carry
        drawn = windows(now.replay, words(jax.random.fold_in(now.key, _BATCH), now.updates, count), memory.window)
        wanted = window_targets(settings, memory, now.q, now.target, drawn, n_actions)
        (loss, td), gradient = jax.value_and_grad(
            lambda weights: window_loss(settings, memory, weights, drawn, wanted, n_actions), has_aux=True
        )(now.q)
        rate = rate_at(settings.decay, settings.learning_rate, now.step)
        q, optimiser = optimise(settings.optimiser, rate, now.q, now.optimiser, gradient, settings.clip_norm)
        now = now._replace(q=q, optimiser=optimiser, updates=now.updates + 1)
        if settings.copy.updates is not None:
            now = _follow(now, settings.copy.tau, now.updates % settings.copy.updates == 0)
        return now, loss_sum + loss, error_sum + jnp.abs(td).mean()

    rounds = due(learner.step, before.step, settings.train_every)
    ready = learner.replay.inserted >= max(settings.warm_up, memory.window)
    steps = jnp.where(ready, rounds * settings.gradient_steps, 0)
    learner, loss, error = jax.lax.fori_loop(0, steps, one, (learner, jnp.float32(0.0), jnp.float32(0.0)))
    if settings.copy.episodes is not None:
        ended = due(learner.episodes, before.episodes, settings.copy.episodes) > 0
        learner = _follow(learner, settings.copy.tau, ended)
    per = jnp.maximum(steps, 1).astype(jnp.float32)
    return learner, WindowLosses(loss / per, error / per)


class Unrolled(NamedTuple):
    """Hidden states of the steps in the loss, `(B, length, H)`: before each, and after it."""

    before: Array
    after: Array


def unroll(memory: Memory, gru: GRU, drawn: RecurrentStep, n_actions: int) -> Unrolled:
    """Computes hidden states along windows with these weights, from the ones stored at their first steps.

    `after` is the hidden state for the value of the reached observation; it is not reset at the end of an episode.
    """
    along: Any = jax.vmap(jax.vmap(partial(frame, n_actions=n_actions)))
    frames = along(drawn.obs, drawn.action, drawn.reward, drawn.reached, drawn.last)
    of_x = jnp.moveaxis(frames @ gru.inputs + gru.bias, 1, 0)
    forgets = jnp.moveaxis(drawn.last, 1, 0)[..., None] & (not memory.survives)

    def step(h: Array, now: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        inputs, forget = now
        after = gated(h, inputs, h @ gru.hidden)
        return jnp.where(forget, 0.0, after), (h, after)

    n = memory.burn_in
    h = drawn.hidden[:, 0]
    if n:
        h, _ = jax.lax.scan(step, h, (of_x[:n], forgets[:n]))
        h = jax.lax.stop_gradient(h)
    _, (before, after) = jax.lax.scan(step, h, (of_x[n:], forgets[n:]))
    return Unrolled(jnp.moveaxis(before, 0, 1), jnp.moveaxis(after, 0, 1))


def window_targets(
    settings: Settings,
    memory: Memory,
    online: RecurrentWeights,
    target: RecurrentWeights,
    drawn: RecurrentStep,
    n_actions: int,
) -> Float[Array, "B L"]:
    """y_t of the steps in the loss; with `settings.double` the action is the best one of the online network."""
    reached = drawn.reached[:, memory.burn_in :]

    def values(weights: RecurrentWeights) -> Array:
        hidden = unroll(memory, weights.memory, drawn, n_actions).after
        return q_values(settings.network, weights.q, jnp.concatenate([reached, hidden], axis=-1))

    q = values(target)
    if settings.double:
        v = jnp.take_along_axis(q, values(online).argmax(axis=-1)[..., None], axis=-1)[..., 0]
    else:
        v = q.max(axis=-1)
    return drawn.reward[:, memory.burn_in :] + drawn.weight[:, memory.burn_in :] * v


def window_loss(
    settings: Settings,
    memory: Memory,
    weights: RecurrentWeights,
    drawn: RecurrentStep,
    wanted: Float[Array, "B L"],
    n_actions: int,
) -> tuple[Float[Array, ""], Float[Array, " T"]]:
    """The TD loss of `urbe.deep.core.loss` over all steps after the burn-in, and the TD errors."""
    hidden = unroll(memory, weights.memory, drawn, n_actions).before
    seen = jnp.concatenate([drawn.obs[:, memory.burn_in :], hidden], axis=-1)
    flat = seen.reshape(-1, seen.shape[-1])
    return q_loss(settings, weights.q, flat, drawn.action[:, memory.burn_in :].ravel(), wanted.ravel())


def _follow(learner: RecurrentLearner, tau: float, wanted: Array) -> RecurrentLearner:
    """target <- (1 - tau) target + tau weights, if `wanted`."""
    share = jnp.where(wanted, jnp.float32(tau), jnp.float32(0.0))

    def mix(old: Array, new: Array) -> Array:
        mixed: Array = jnp.where(share == 1.0, new, old + share * (new - old))
        return mixed

    return learner._replace(target=jax.tree.map(mix, learner.target, learner.q))
