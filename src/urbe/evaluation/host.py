"""Play step by step: any policy in any environment, with traces of its actions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int32, UInt32

from urbe.evaluation.episodes import EpisodeDraws, normal
from urbe.evaluation.policies import ActingRule, Ask, Predicts, Traceable, asker, takes_rows
from urbe.evaluation.rollouts import BAD_OBSERVATION, BAD_REWARD, FINE, RolloutOutcome
from urbe.evaluation.worlds import EpisodeWorld, Observations, StepResult
from urbe.types import BoolArray, FloatArray, IntArray

Choose = Callable[[Observations, BoolArray, int], Any]
"""Chooses actions for B episodes from their observations, a mask of those not ended, and the number of the step."""

OnStep = Callable[[Any, StepResult, BoolArray], None]
"""Receives the actions, their results, and a mask of the episodes that took part."""


ENDLESS = 200_000
"""Steps after which an episode without a time limit counts as endless."""


class Player(NamedTuple):
    """A policy, ready to choose actions.

    Attributes:
      rows: whether it accepts a batch of observations.
      choose: its choice, given the draws of the block that is played.
    """

    rows: bool
    choose: Callable[[EpisodeDraws], Choose]


def player(policy: Traceable | Predicts, world: EpisodeWorld, first: Any, *, noisy: bool) -> Player:
    """Prepares a policy to act in an environment.

    Args:
      policy: chooses the actions.
      world: the environment.
      first: an observation, to find out whether the policy accepts batches.
      noisy: whether a traceable policy acts with noise.
    """
    if isinstance(policy, Traceable):
        world.fit(policy.obs_size, policy.n_actions)
        return Player(True, lambda drawn: _traced(policy, world, drawn, noisy))
    ask = asker(policy)
    rows = isinstance(first, (np.ndarray, np.generic)) and takes_rows(ask, np.asarray(first), world.action_shape)
    choose = _together(ask) if rows else _one_by_one(ask)
    return Player(rows, lambda _: choose)


def play(
    world: EpisodeWorld, choose: Choose, drawn: EpisodeDraws, count: int, limit: int | None, on_step: OnStep | None
) -> RolloutOutcome:
    """Plays a block of episodes until all have ended, or a number is not finite.

    Args:
      world: the environment, with its parameters.
      choose: chooses the actions.
      drawn: random numbers of all episodes of the block.
      count: number of episodes to play, the first ones of the block.
      limit: steps after which an episode is truncated.
      on_step: called after every step.
    """
    seen = world.reset(drawn)
    n = len(seen)
    alive = np.arange(n) < count
    outcome = RolloutOutcome(np.zeros(n), np.zeros(n, np.int32), np.zeros(n, np.bool_), np.full(n, FINE, np.int32))
    step = 0
    while alive.any() and (limit is None or step < limit):
        actions = choose(seen, alive, step)
        moved = world.step(actions, alive)
        if on_step is not None:
            on_step(actions, moved, alive)
        lanes = np.flatnonzero(alive)
        outcome.episode_return[lanes] += moved.rewards[lanes]
        outcome.length[lanes] += 1
        outcome.terminated[lanes] = moved.terminated[lanes]
        seen = _where(alive, moved.observations, seen)
        outcome.fault[lanes] = _fault(seen, moved.rewards, lanes)
        alive = alive & ~moved.terminated & ~moved.truncated & (outcome.fault == FINE)
        step += 1
        if limit is None and step == ENDLESS and alive.any():
            raise ValueError(endless("Limit its length with time_limit=, or wrap"))
    return outcome


def endless(advice: str) -> str:
    """The message about an episode that does not end; `advice` ends in a verb for the environment."""
    return (
        f"An episode has lasted {ENDLESS} steps without ending. {advice} the environment: "
        "gymnasium.wrappers.TimeLimit(env, 1000)."
    )


def _where(alive: BoolArray, new: Observations, old: Observations) -> Observations:
    """The observations of episodes that are alive, and the last ones of the others."""
    if isinstance(new, np.ndarray):
        return np.where(alive.reshape(-1, *[1] * (new.ndim - 1)), new, old)
    return [each if lives else last for each, last, lives in zip(new, old, alive, strict=True)]


def _fault(seen: Observations, rewards: FloatArray, lanes: IntArray) -> IntArray:
    """Names which floating-point array is not finite in some episode."""
    if isinstance(seen, np.ndarray):
        fine = np.isfinite(seen[lanes]).all(axis=-1)
    else:
        fine = np.array([_is_finite(seen[lane]) for lane in lanes])
    return np.where(np.isfinite(rewards[lanes]), np.where(fine, FINE, BAD_OBSERVATION), BAD_REWARD)


def _is_finite(seen: Any) -> bool:
    numbers = isinstance(seen, (np.ndarray, np.generic)) and seen.dtype.kind == "f"
    return not numbers or bool(np.isfinite(seen).all())


def _traced(policy: Traceable, world: EpisodeWorld, drawn: EpisodeDraws, noisy: bool) -> Choose:
    rule, weights, words = policy.rule, policy.weights, drawn.noise if noisy else None

    def choose(seen: Observations, _alive: BoolArray, step: int) -> Any:
        return world.actions(np.asarray(_act(rule, policy.n_actions, weights, world.rows(seen), words, np.int32(step))))

    return choose


def _together(ask: Ask) -> Choose:
    def choose(seen: Observations, _alive: BoolArray, _step: int) -> Any:
        return np.asarray(ask(np.stack(seen)))

    return choose


def _one_by_one(ask: Ask) -> Choose:
    def choose(seen: Observations, alive: BoolArray, _step: int) -> list[Any]:
        return [ask(each) if lives else None for each, lives in zip(seen, alive, strict=True)]

    return choose


@partial(jax.jit, static_argnums=(0, 1))
def _act(
    rule: ActingRule,
    n_actions: int,
    weights: Any,
    obs: Float[Array, "B D"],
    words: UInt32[Array, "B 2"] | None,
    step: Int32[Array, ""],
) -> Int32[Array, " B"]:
    return rule(weights, obs, None if words is None else normal(words, step, n_actions))
