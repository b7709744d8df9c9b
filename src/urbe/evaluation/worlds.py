"""Worlds for policies that cannot be compiled: B episodes in parallel, step by step."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from jaxtyping import Array, Float, Int32, UInt32

from urbe.evaluation.episodes import EpisodeDraws
from urbe.evaluation.grids import Point
from urbe.evaluation.rollouts import MOST, advance, begin
from urbe.simulators import Simulator
from urbe.simulators.base import Arrival, Params, State, observation_size
from urbe.simulators.limits import with_params
from urbe.types import BoolArray, FloatArray, IntArray

Observations = Any
"""The observations of B episodes, in the form that `predict` receives."""


class StepResult(NamedTuple):
    """The result of a step of B episodes; entries of ended episodes are arbitrary."""

    observations: Observations
    rewards: FloatArray
    terminated: BoolArray
    truncated: BoolArray


class EpisodeWorld(Protocol):
    """B episodes under the same parameters."""

    @property
    def time_limit(self) -> int | None:
        """Steps after which the player truncates an episode; None leaves that to the world."""

    @property
    def action_shape(self) -> tuple[int, ...]:
        """The shape of one action; () for a number."""

    def enter(self, point: Point) -> None:
        """Sets the parameters."""

    def reset(self, drawn: EpisodeDraws) -> Observations:
        """Starts an episode for each of the draws, and returns the observations."""

    def step(self, actions: Any, alive: BoolArray) -> StepResult:
        """Acts in the episodes that are `alive`."""

    def rows(self, observations: Observations) -> Float[np.ndarray, "B D"]:
        """Converts observations to the input of a network: float32, flat."""

    def fit(self, obs_size: int, n_actions: int) -> None:
        """Raises ValueError if a network of these sizes cannot act here."""

    def actions(self, numbers: IntArray) -> Any:
        """Converts numbers from 0, one per episode, to actions."""


class ParallelWorld(EpisodeWorld, Protocol):
    """A world that knows how many episodes it can play in parallel."""

    @property
    def lanes(self) -> int:
        """The largest number of episodes in parallel."""

    def widen(self, count: int) -> None:
        """Makes room for `count` episodes in parallel, if that is possible."""


class SimulatorWorld:
    """A simulator, with the random numbers of `SimulatorEnv`.

    Args:
      simulator: the simulator.
    """

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self.time_limit: int | None = simulator.time_limit
        self.lanes = MOST
        self.action_shape: tuple[int, ...] = ()
        self.state: State = None
        self._params: Params = simulator.nominal()
        self._elapsed = 0

    def widen(self, count: int) -> None:
        """Does nothing: any number of episodes fits."""

    def enter(self, point: Point) -> None:
        self._params = with_params(self.simulator, self.simulator.nominal(), point)

    def reset(self, drawn: EpisodeDraws) -> Observations:
        self._words, self._elapsed = drawn.world, 0
        self.state, seen = _begin(self.simulator, drawn.world, self._params)
        return np.asarray(seen)

    def step(self, actions: Any, alive: BoolArray) -> StepResult:
        """Steps the episodes; ended episodes keep their state."""
        numbers = _action_numbers(actions, alive, self.simulator.n_actions)
        arrived, seen = _advance(
            self.simulator, self._words, np.int32(self._elapsed), self.state, numbers, self._params, alive
        )
        self.state, self._elapsed = arrived.state, self._elapsed + 1
        rewards, terminated = np.asarray(arrived.reward, np.float64), np.asarray(arrived.terminated)
        return StepResult(np.asarray(seen), rewards, terminated, np.zeros(len(alive), np.bool_))

    def rows(self, observations: Observations) -> Float[np.ndarray, "B D"]:
        return np.asarray(observations)

    def fit(self, obs_size: int, n_actions: int) -> None:
        same_sizes(type(self.simulator).__name__, observation_size(self.simulator), self.simulator.n_actions, obs_size,
                   n_actions)  # fmt: skip

    def actions(self, numbers: IntArray) -> Any:
        return numbers


def same_sizes(name: str, here: int, actions_here: int, obs_size: int, n_actions: int) -> None:
    """Raises if a policy expects other observations or actions."""
    if obs_size != here:
        raise ValueError(
            f"The policy takes observations of {obs_size} numbers, but {name} gives {here}; expected the "
            "environment it was trained on, or one with the same observations."
        )
    if n_actions != actions_here:
        raise ValueError(
            f"The policy chooses among {n_actions} actions, but {name} has {actions_here}; expected as many."
        )


def action_number(answer: Any, count: int, first: int = 0) -> int:
    """Converts an answer to one of `count` actions."""
    array = np.asarray(answer)
    if array.size == 1 and array.dtype.kind in "iuf":
        number = array.item()
        if first <= number < first + count and number == int(number):
            return int(number)
    raise ValueError(
        f"The policy gave the action {answer!r}, expected a whole number from {first} to {first + count - 1}."
    )


def _action_numbers(answers: Any, alive: BoolArray, count: int) -> IntArray:
    """Converts answers to actions; 0 for ended episodes."""
    if isinstance(answers, np.ndarray) and answers.shape == alive.shape and answers.dtype.kind in "iu":
        numbers = np.where(alive, answers, 0)
        if ((numbers >= 0) & (numbers < count)).all():
            return numbers.astype(np.int32)
    return np.array(
        [action_number(answers[lane], count) if lives else 0 for lane, lives in enumerate(alive)], dtype=np.int32
    )


@partial(jax.jit, static_argnums=0)
def _begin(simulator: Simulator, world: UInt32[Array, "B 2"], params: Params) -> tuple[State, Float[Array, "B D"]]:
    state = begin(simulator, world, params)
    return state, jax.vmap(simulator.observe)(state)


@partial(jax.jit, static_argnums=0)
def _advance(
    simulator: Simulator,
    world: UInt32[Array, "B 2"],
    elapsed: Int32[Array, ""],
    state: State,
    action: Int32[Array, " B"],
    params: Params,
    alive: Any,
) -> tuple[Arrival, Float[Array, "B D"]]:
    arrived = advance(simulator, world, elapsed, state, action, params, alive)
    return arrived, jax.vmap(simulator.observe)(arrived.state)
