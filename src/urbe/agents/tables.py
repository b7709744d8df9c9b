"""Agents that do not learn: they act greedily on fixed tables of values.

Minimax    the robust policy of a fixed set around a fixed model
Oracle     the best policy of the current model, which no learner can beat
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from urbe import checks
from urbe.agents.base import Steps, Streams, Task
from urbe.agents.choose import Chooser, Noise
from urbe.ambiguity.operator import AmbiguitySet
from urbe.envs.finite import FiniteEnv
from urbe.mdp.model import MDP, check_model, check_same_pairs
from urbe.solvers.methods import BackwardInduction
from urbe.solvers.solve import solve
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Minimax:
    """Robust dynamic programming, once: the robust baseline of [Derman2019].

    Args:
      model: the nominal model, with the task's states and actions.
      nature: the ambiguity set; None is dynamic programming on the model itself.
    """

    model: MDP
    nature: AmbiguitySet | None

    def start(self, task: Task, streams: Streams) -> TableAgent:
        return TableAgent(task, streams, [_table(self.model, self.nature, task)], lambda _: 0)


@dataclass(frozen=True, eq=False)
class Oracle:
    """Knows the model of every phase and when phases change; an upper benchmark.

    Args:
      env: its environment, from episode 0 on.
    """

    env: FiniteEnv

    def start(self, task: Task, streams: Streams) -> TableAgent:
        checks.kind("env", self.env, isinstance(self.env, FiniteEnv), "a world such as FiniteEnv.of(model)")
        tables = [_table(phase.model, None, task) for phase in self.env.phases]
        return TableAgent(task, streams, tables, self.env.phase_of)


class QTable(NamedTuple):
    """`(H, R)` values of a policy's rows, and the probability with which it takes each."""

    q: FloatArray
    share: FloatArray


class TableAgent:
    """An `Agent` that is greedy in one of several tables.

    Args:
      task: the states and actions.
      streams: random streams for ties.
      tables: `(H, R)` values each, and the probabilities of rows.
      table_of: the table of an episode.
    """

    def __init__(self, task: Task, streams: Streams, tables: list[QTable], table_of: Callable[[int], int]) -> None:
        self._model = task.prior.model
        n = len(streams.replicates)
        self._tables = [QTable(*(np.tile(part, (n, 1, 1)) for part in table)) for table in tables]
        self._table_of = table_of
        self._choose = Chooser(self._model, Noise.NONE, streams)
        self._episode = 0

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        q, share = self._tables[self._table_of(self._episode)]
        return self._model.action[self._choose(replicate, state, q, None, step, share)]

    def observe(self, steps: Steps, step: int) -> None:
        """There is nothing to learn."""

    def end_episode(self) -> None:
        self._episode += 1

    def state(self) -> dict[str, Any]:
        return {"episode": self._episode, "choose": self._choose.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        self._episode = int(state["episode"])
        self._choose.load(state["choose"])


def _table(model: MDP, nature: AmbiguitySet | None, task: Task) -> QTable:
    """The optimal robust policy and its values."""
    check_model("model", model)
    check_same_pairs("model", model, "the task", task.prior.model)
    solution = solve(model, nature, BackwardInduction(task.horizon))
    share = np.array([policy.weights(model.n_rows) for policy in solution.policies])
    return QTable(solution.q[:, model.row_state, model.action], share)
