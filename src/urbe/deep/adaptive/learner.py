"""Replay-free Q(lambda) over pairs of observation and belief: one round of many lives, then a few gradient steps.

    y_t = nature over members of  sum_j P_kj [ r_j + d_j max_a Q(s_j, b_j, a) ]
    G_t = y_t + lambda rho_t d_t 1[a_{t+1} greedy] ( G_{t+1} - V(x_{t+1}) )
    loss = mean ( G_t - gap ( V(x_t) - Q(x_t, a_t) ) - Q(x_t, a_t) )^2

with rho_t = min(1, nature's / data's probability of the outcome). Every expectation over the next outcome is exact; the
acting network is also the bootstrap network, without a target network. After training, the weights averaged over rounds
act.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32

from urbe.deep.adaptive.lives import Experience, Life, begin_life, choose, inputs_of_life, live
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.deep.core.networks import q_values
from urbe.deep.core.optimisers import optimise
from urbe.deep.core.schedules import epsilon_at, rate_at

_WEIGHTS, _LIVES, _STEPS = range(3)  # streams of random numbers


class AdaptiveRun(NamedTuple):
    """The complete state of a run: saved and restored, it resumes bit for bit."""

    q: Any  # weights of the network
    average: Any  # average of the weights over rounds
    optimiser: Any
    lives: Life
    rounds: Int32[Array, ""]
    key: jax.Array


class RoundMeans(NamedTuple):
    """Diagnostics of a round: means over its steps, or over the episodes that ended in it (nan for none)."""

    loss: Float[Array, ""]
    value: Float[Array, ""]
    greedy: Float[Array, ""]
    episodes: Float[Array, ""]
    episode_return: Float[Array, ""]
    episode_length: Float[Array, ""]


def init_run(settings: AdaptiveSettings, model: BeliefModel, key: jax.Array) -> AdaptiveRun:
    """Makes a run before its first step. The key is consumed."""
    keys = jax.random.split(jax.random.fold_in(key, _LIVES), settings.lives)
    lives = jax.vmap(partial(begin_life, settings, model))(keys)
    size = jax.eval_shape(lambda: jax.vmap(partial(inputs_of_life, settings, model))(lives)).shape[-1]
    q = settings.network.init(jax.random.fold_in(key, _WEIGHTS), size, model.simulator.n_actions)
    return AdaptiveRun(q, jax.tree.map(jnp.copy, q), settings.optimiser.init(q), lives, jnp.int32(0), key)


def one_round(settings: AdaptiveSettings, model: BeliefModel, run: AdaptiveRun) -> tuple[AdaptiveRun, RoundMeans]:
    """Simulates `settings.length` steps of every life, and learns from them."""
    steps = run.rounds * settings.round
    epsilon = epsilon_at(settings.epsilon, steps)
    key = jax.random.fold_in(jax.random.fold_in(run.key, _STEPS), run.rounds)

    def step(lives: Life, key: jax.Array) -> tuple[Life, Experience]:
        for_choice, for_life = jax.random.split(key)
        x = jax.vmap(partial(inputs_of_life, settings, model))(lives)
        q = q_values(settings.network, run.q, x)
        keys = jax.random.split(for_choice, settings.lives)
        lives, action = jax.vmap(partial(choose, settings), in_axes=(0, 0, None, 0))(lives, q, epsilon, keys)
        keys = jax.random.split(for_life, settings.lives)
        return jax.vmap(partial(live, settings, model, run.q))(lives, x, q, action, keys)

    lives, seen = jax.lax.scan(step, run.lives, jax.random.split(key, settings.length))
    wanted = learned_values(settings, seen)
    rate = rate_at(settings.decay, settings.learning_rate, steps)
    q, optimiser, loss = _learn(settings, run.q, run.optimiser, rate, seen.inputs, seen.action, wanted)
    rounds = run.rounds + 1
    # first a mean over all rounds, then over about the last 1 / (1 - average)
    share = jnp.maximum(jnp.float32(1.0 - settings.average), 1.0 / rounds.astype(jnp.float32))
    average = jax.tree.map(lambda old, new: old + share * (new - old), run.average, q)
    ended = seen.ended.sum(dtype=jnp.float32)
    means = RoundMeans(
        loss,
        seen.bootstrap.mean(),
        seen.greedy.mean(dtype=jnp.float32),
        ended,
        jnp.where(seen.ended, seen.finished_return, 0.0).sum() / ended,
        jnp.where(seen.ended, seen.finished_length, 0.0).sum() / ended,
    )
    return AdaptiveRun(q, average, optimiser, lives, rounds, run.key), means


def learned_values(settings: AdaptiveSettings, seen: Experience) -> Float[Array, "T L"]:
    """The targets of the values of actions: traced returns, lowered if the action is inferior."""
    traced = traced_returns(settings.trace, seen.target, seen.ratio, seen.bootstrap, seen.greedy)
    wanted: Array = traced - jnp.float32(settings.gap) * seen.shortfall
    return wanted


def traced_returns(
    trace: float,
    target: Float[Array, "T L"],
    ratio: Float[Array, "T L"],
    bootstrap: Float[Array, "T L"],
    greedy: Bool[Array, "T L"],
) -> Float[Array, "T L"]:
    """G_t, from the last step to the first; the last one is its one-step target.

    Args:
      trace: lambda.
      target: y_t.
      ratio: rho_t d_t.
      bootstrap: V(x_{t+1}).
      greedy: whether a_t was.
    """

    def back(after: tuple[Array, Array], at: tuple[Array, Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        wanted_next, greedy_next = after
        y, rho, v, is_greedy = at
        wanted = y + jnp.float32(trace) * rho * jnp.where(greedy_next, wanted_next - v, 0.0)
        return (wanted, is_greedy), wanted

    start = (jnp.zeros_like(target[0]), jnp.zeros_like(greedy[0]))
    _, wanted = jax.lax.scan(back, start, (target, ratio, bootstrap, greedy), reverse=True)
    return wanted


def _learn(
    settings: AdaptiveSettings,
    q: Any,
    optimiser: Any,
    rate: Float[Array, ""],
    inputs: Float[Array, "T L I"],
    action: Int32[Array, "T L"],
    wanted: Float[Array, "T L"],
) -> tuple[Any, Any, Float[Array, ""]]:
    """Takes a gradient step for each group of lives."""

    def step(carry: tuple[Any, Any], batch: tuple[Array, Array, Array]) -> tuple[tuple[Any, Any], Array]:
        weights, memory, loss = gradient_step(settings, *carry, rate, *batch)
        return (weights, memory), loss

    def groups(leaf: Array) -> Array:
        by_life = jnp.swapaxes(leaf, 0, 1)
        return by_life.reshape(settings.minibatches, -1, *leaf.shape[2:])

    (q, optimiser), losses = jax.lax.scan(step, (q, optimiser), (groups(inputs), groups(action), groups(wanted)))
    return q, optimiser, losses.mean()


def gradient_step(
    settings: AdaptiveSettings,
    q: Any,
    optimiser: Any,
    rate: Float[Array, ""],
    inputs: Float[Array, "B I"],
    action: Int32[Array, " B"],
    wanted: Float[Array, " B"],
) -> tuple[Any, Any, Float[Array, ""]]:
    """New weights, new state of the optimiser, and the mean squared error before the step."""

    def loss_of(weights: Any) -> Float[Array, ""]:
        values = settings.network.training_values(weights, inputs)
        taken = jax.nn.one_hot(action, values.shape[-1], dtype=values.dtype)
        error = wanted - (values * taken).sum(axis=-1)
        return (error * error).mean()

    loss, gradient = jax.value_and_grad(loss_of)(q)
    q, optimiser = optimise(settings.optimiser, rate, q, optimiser, gradient, settings.clip_norm)
    return q, optimiser, loss
