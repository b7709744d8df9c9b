"""An environment from finite MDPs, whose dynamics may change between episodes.

phases   model 1 for n_1 episodes, model 2 for the next n_2, ...; the last one stays
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from urbe import checks
from urbe.envs.base import Arrivals
from urbe.mdp.model import MDP, check_model, check_same_pairs
from urbe.mdp.rows import Rows
from urbe.rng import Draws
from urbe.types import FloatArray, IntArray


class Phase(NamedTuple):
    """A model and its number of episodes."""

    model: MDP
    episodes: int


@dataclass(frozen=True, eq=False)
class FiniteEnv:
    """Phases of models with the same states and actions; one phase is a plain MDP.

    Args:
      phases: at least one. Their models share states and actions; each needs an initial distribution.

    >>> import urbe
    >>> env = FiniteEnv.of(urbe.library.riverswim(6))
    >>> env.feasible
    MDP(6 states, 12 rows, 22 entries, discount 0.95)
    """

    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        if not self.phases:
            raise ValueError("phases is empty, expected at least one (model, episodes).")
        first = self.phases[0].model
        for k, (model, episodes) in enumerate(self.phases):
            check_model(f"phases[{k}].model", model)
            checks.whole_number(f"phases[{k}].episodes", episodes, 1)
            check_same_pairs(f"phases[{k}].model", model, "phases[0].model", first)
            if model.initial is None:
                raise ValueError(
                    f"phases[{k}].model has no initial distribution, so no episode can begin; build it with initial=."
                )
            ended = model.terminal & (model.initial > 0.0)
            if ended.any():
                at = int(np.argmax(ended))
                raise ValueError(
                    f"phases[{k}].model begins in state {at} with probability {model.initial[at]:g}, but that state is "
                    "terminal; expected episodes to begin where there are actions."
                )

    @staticmethod
    def of(model: MDP) -> FiniteEnv:
        """Makes the environment of a model that never changes."""
        return FiniteEnv((Phase(model, 1),))

    @cached_property
    def feasible(self) -> MDP:
        """The first model with every successor that is possible in some phase (new ones have probability zero).

        Rewards are those of the first phase in which the successor is possible.
        """
        models = [phase.model for phase in self.phases]
        first = models[0]
        if all(np.array_equal(model.rows.successor, first.rows.successor) for model in models) and all(
            np.array_equal(model.rows.entry_start, first.rows.entry_start) for model in models
        ):
            return first
        return _union(models)

    @property
    def changes(self) -> tuple[int, ...]:
        """The episodes at which a new phase begins."""
        return tuple(np.cumsum([phase.episodes for phase in self.phases[:-1]]).tolist())

    def phase_of(self, episode: int) -> int:
        """The index of the phase of an episode."""
        return int(np.searchsorted(self.changes, episode, side="right"))

    def start(self, generators: list[np.random.Generator]) -> FiniteReplicates:
        return FiniteReplicates(self, generators)


class FiniteReplicates:
    """Replicates of a `FiniteEnv`, which use one uniform number for each step and for each first state."""

    def __init__(self, env: FiniteEnv, generators: list[np.random.Generator]) -> None:
        self._env = env
        self._draws = Draws(generators, "uniform")
        self._everyone = np.arange(len(generators))
        self._world = [_world(phase.model) for phase in env.phases]
        self._phase = 0

    def begin(self, episode: int) -> IntArray:
        self._phase = self._env.phase_of(episode)
        draws = self._draws.need(1)
        x = draws.values[self._everyone, draws.at]
        draws.at += 1
        return self._world[self._phase].initial.searchsorted(x, side="right")

    def step(self, replicate: IntArray, state: IntArray, action: IntArray) -> Arrivals:
        world, draws, k = self._world[self._phase], self._draws.need(1), len(replicate)
        next_state, reward, terminated = np.empty(k, dtype=np.int64), np.empty(k), np.empty(k, dtype=np.bool_)
        bad = _step(
            replicate, state, action, *world.arrays, draws.values, draws.at, next_state, reward, terminated,
        )  # fmt: skip
        if bad >= 0:
            model = self._env.phases[self._phase].model
            model.row_of(int(state[bad]), int(action[bad]))  # raises, naming the actions there are
        return Arrivals(next_state, reward, terminated)

    def state(self) -> dict[str, Any]:
        return {"draws": self._draws.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        self._draws.load(state["draws"])


class _World(NamedTuple):
    """A model's arrays for `_step`, and the distribution function of its first state."""

    initial: FloatArray
    arrays: tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, FloatArray | None, FloatArray]


def _world(model: MDP) -> _World:
    assert model.initial is not None  # checked when the description was made
    below = np.cumsum(model.initial)
    rows = model.rows
    arrays = (
        model.row_start, model.action, rows.entry_start, rows.successor, rows.probability, rows.entry_reward,
        rows.row_reward,
    )  # fmt: skip
    return _World(below / below[-1], arrays)  # one from the last possible state on: no later one is drawn


@njit(cache=True, nogil=True)
def _step(
    replicate, state, action, row_start, row_action, entry_start, successor, p, entry_reward, row_reward, draws, at,
    next_state, reward, terminated,
):  # fmt: skip
    for k in range(len(replicate)):
        if not 0 <= state[k] < len(row_start) - 1:
            return k
        first, last = row_start[state[k]], row_start[state[k] + 1]
        row = first + np.searchsorted(row_action[first:last], action[k])
        if row == last or row_action[row] != action[k]:
            return k
        b = replicate[k]
        x = draws[b, at[b]]
        at[b] += 1
        j, end = entry_start[row], entry_start[row + 1] - 1
        while j < end:
            x -= p[j]
            if x < 0.0:
                break
            j += 1
        while p[j] <= 0.0 and j > entry_start[row]:  # rounding may carry past the last possible successor
            j -= 1
        next_state[k] = successor[j]
        terminated[k] = row_start[successor[j]] == row_start[successor[j] + 1]
        reward[k] = row_reward[row] if entry_reward is None else entry_reward[j]
    return -1


def _union(models: list[MDP]) -> MDP:
    """Returns the first model with the entries of all; rewards of pairs, or of successors if they agree."""
    first = models[0]
    keys = [model.rows.entry_row.astype(np.int64) * model.n_states + model.rows.successor for model in models]
    every = np.unique(np.concatenate(keys))
    probability = np.zeros(len(every))
    probability[np.searchsorted(every, keys[0])] = first.rows.probability
    reward = first.rows.reward
    if any(model.rows.rewards_successors for model in models):
        reward = np.zeros(len(every))
        for model, key in zip(reversed(models), reversed(keys), strict=True):
            reward[np.searchsorted(every, key)] = model.rows.reward_per_entry
    entry_start = np.searchsorted(every, np.arange(first.n_rows + 1) * first.n_states).astype(np.int32)
    successor = (every % first.n_states).astype(np.int32)
    return first.with_rows(Rows(first.n_states, entry_start, successor, probability, reward))
