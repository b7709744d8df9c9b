"""Record the steps of a policy, for pictures of the states it visits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float32, Int32

from urbe import checks
from urbe.evaluation.adaptation import MemoryPolicy
from urbe.evaluation.episodes import draws
from urbe.evaluation.grids import points_of
from urbe.evaluation.host import play, player
from urbe.evaluation.policies import Acting, policy_of, ways_of
from urbe.evaluation.rollouts import MOST, RolloutOutcome, blocks
from urbe.evaluation.worlds import SimulatorWorld, StepResult
from urbe.simulators import FiniteSimulator, Simulator
from urbe.types import BoolArray, FloatArray


class Trace(NamedTuple):
    """E episodes of at most T steps, where T is the longest length; step t leads from state t to state t + 1.

    `observation[:, :-1][alive]` and `action[alive]` list the observations and actions of all steps.

    Attributes:
      observation: the observations; after the end, the last one is repeated.
      action: -1 after the end.
      reward: 0 after the end.
      alive: whether the step was taken.
      terminated: whether an episode terminated.
      state: a pytree of arrays `(E, T + 1, ...)`, like `observation`.
    """

    observation: Float32[np.ndarray, "E T+1 D"]
    action: Int32[np.ndarray, "E T"]
    reward: Float32[np.ndarray, "E T"]
    alive: Bool[np.ndarray, "E T"]
    terminated: Bool[np.ndarray, " E"]
    state: Any


def trace(
    policy: Any,
    simulator: Simulator,
    params: Any = None,
    *,
    episodes: int = 200,
    seed: int = 0,
    acting: Acting = "greedy",
    time_limit: int | None = None,
) -> Trace:
    """Plays the episodes that `evaluate` plays with the same seed, and records every step.

    Args:
      policy: a policy as in `evaluate`.
      simulator: the environment.
      params: a NamedTuple or a mapping from names to numbers; parameters that are not named are nominal.
      episodes: number of episodes.
      seed: seed of the episodes.
      acting: "greedy" or "noisy".
      time_limit: steps after which an episode is truncated.

    >>> from types import SimpleNamespace
    >>> from urbe.simulators import CartPole
    >>> right = SimpleNamespace(predict=lambda obs: 1)
    >>> seen = trace(right, CartPole(), {"half_length": 0.75}, episodes=3)
    >>> seen.observation.shape, seen.alive.sum(axis=1), seen.terminated
    ((3, 14, 4), array([11, 13, 12]), array([ True,  True,  True]))
    """
    parts = list(_traces(policy, simulator, params, episodes, seed, acting, time_limit))
    longest = max(part.alive.shape[1] for part in parts)
    cut = [_lengthened(part, longest) for part in parts]
    whole: Trace = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:episodes], *cut)
    return whole


def visits(
    policy: Any,
    simulator: FiniteSimulator,
    params: Any = None,
    *,
    episodes: int = 200,
    seed: int = 0,
    acting: Acting = "greedy",
    time_limit: int | None = None,
) -> FloatArray:
    """Estimates the mean number of visits to each state in an episode: `(S,)`, as in `Performance.visits`.

    The state after the last step counts, so that the number of a terminal state is the share of episodes ending there.

    Args:
      policy: as for `trace`, like all other arguments.
      simulator: a simulator whose states are numbered.
    """
    total = np.zeros(simulator.n_states)
    for part in _traces(policy, simulator, params, episodes, seed, acting, time_limit):
        there = np.concatenate([np.ones((len(part.alive), 1), np.bool_), part.alive], axis=1)
        total += np.bincount(part.state[there], minlength=simulator.n_states)
    return total / episodes


def _traces(
    policy: Any,
    simulator: Simulator,
    params: Any,
    episodes: int,
    seed: int,
    acting: Acting,
    time_limit: int | None,
) -> Iterator[Trace]:
    """Traces of one block of episodes after another."""
    chosen, world = policy_of(policy), SimulatorWorld(simulator)
    if isinstance(chosen, MemoryPolicy):
        raise ValueError(
            "policy acts on a memory, expected one that acts on the observation alone: traces keep no memory. Use "
            "urbe.evaluate."
        )
    (way,) = ways_of(chosen, acting)
    checks.whole_number("episodes", episodes, 1)
    limit = simulator.time_limit if time_limit is None else checks.whole_number("time_limit", time_limit, 1)
    named: Mapping[str, float] = {} if params is None else params
    world.enter(points_of([named], simulator).points[0])
    cut = list(blocks(episodes, MOST))
    drawn = draws(seed, cut[-1][1])
    asked = player(chosen, world, world.reset(drawn.part(*cut[0]))[0], noisy=way == "noisy")
    for begin, end in cut:
        part, count = drawn.part(begin, end), min(end, episodes) - begin
        kept = _Recorder(world, world.reset(part))
        outcome = play(world, asked.choose(part), part, count, limit, kept.add)
        yield kept.taken(outcome, count)


class _Recorder:
    """Records what happens in a world."""

    def __init__(self, world: SimulatorWorld, first: np.ndarray) -> None:
        self._world = world
        self._seen, self._states = [first], [jax.device_get(world.state)]
        self._actions: list[np.ndarray] = []
        self._rewards: list[np.ndarray] = []
        self._alive: list[np.ndarray] = []

    def add(self, actions: Any, moved: StepResult, alive: BoolArray) -> None:
        self._seen.append(np.asarray(moved.observations))
        self._states.append(jax.device_get(self._world.state))
        self._actions.append(
            np.array([int(a) if lives else -1 for a, lives in zip(actions, alive, strict=True)], np.int32)
        )
        self._rewards.append(np.where(alive, moved.rewards, 0.0).astype(np.float32))
        self._alive.append(alive)

    def taken(self, outcome: RolloutOutcome, count: int) -> Trace:
        def stacked(parts: list[np.ndarray]) -> np.ndarray:
            return np.stack(parts, axis=1)[:count]

        states = jax.tree.map(lambda *leaves: stacked(list(leaves)), *self._states)
        return Trace(
            stacked(self._seen),
            stacked(self._actions),
            stacked(self._rewards),
            stacked(self._alive),
            outcome.terminated[:count],
            states,
        )


def _lengthened(part: Trace, steps: int) -> Trace:
    """Pads a trace to more steps."""
    more = steps - part.alive.shape[1]

    def stay(leaf: np.ndarray) -> np.ndarray:
        return np.concatenate([leaf, np.repeat(leaf[:, -1:], more, axis=1)], axis=1)

    def pad(leaf: np.ndarray, value: float) -> np.ndarray:
        return np.concatenate([leaf, np.full((len(leaf), more), value, leaf.dtype)], axis=1)

    return Trace(
        stay(part.observation),
        pad(part.action, -1),
        pad(part.reward, 0.0),
        pad(part.alive, False),
        part.terminated,
        jax.tree.map(stay, part.state),
    )
