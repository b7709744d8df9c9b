"""What an agent is: replicates side by side, each acting on what it alone has seen.

Experiments need many runs of the same agent. All agents therefore keep B replicates at once, in arrays with a leading
axis, and every call says which of them it is about: the cost of Python is shared, and a replicate's run does not depend
on who runs beside it. Numbers among an agent's parameters may be given one per replicate. For a single run with plain
numbers see `Single`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from urbe import checks, rng
from urbe.posteriors.dirichlet import Posterior, check_posterior
from urbe.types import BoolArray, FloatArray, IntArray


class Task(NamedTuple):
    """What an agent knows beforehand.

    Attributes:
      prior: pairs, feasible successors, rewards (known, or their prior), discount.
      horizon: steps after which an episode is cut off.
    """

    prior: Posterior
    horizon: int


def check_task(agent: object, task: object) -> None:
    """Raises unless these are an agent's parameters and a task of its own."""
    fits = callable(getattr(agent, "start", None))
    checks.kind("agent", agent, fits, "an agent's parameters, such as URBE(radius=0.3)")
    checks.kind("task", task, isinstance(task, Task), "a task, such as Task(Posterior.before(model), horizon=20)")
    assert isinstance(task, Task)
    check_posterior("task.prior", task.prior)
    checks.whole_number("task.horizon", task.horizon, 1)


class Steps(NamedTuple):
    """One step of the replicates that took one; all `(K,)`.

    Attributes:
      replicate: who.
      state, action, reward, next_state: what happened.
      terminated: whether the process ended there; truncated: whether it was cut off.
    """

    replicate: IntArray
    state: IntArray
    action: IntArray
    reward: FloatArray
    next_state: IntArray
    terminated: BoolArray
    truncated: BoolArray


class Streams(NamedTuple):
    """The random streams of all replicates of one agent, by name."""

    seed: int
    replicates: IntArray

    def __call__(self, name: str) -> list[np.random.Generator]:
        """One generator per replicate."""
        return rng.streams(self.seed, name, self.replicates)


class Agent(Protocol):
    """B learners side by side."""

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        """`(K,)` actions of the replicates `replicate`, now in `state`; `step` counts from 0 in each episode."""

    def observe(self, steps: Steps, step: int) -> None:
        """What came of the actions."""

    def end_episode(self) -> None:
        """The episode is over for every replicate."""

    def state(self) -> dict[str, Any]:
        """Everything, as nested dicts of arrays and plain values: `load` goes on bit for bit."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Takes up what `state` gave, in an agent started alike."""


class AgentConfig(Protocol):
    """A description of an agent: its parameters."""

    def start(self, task: Task, streams: Streams) -> Agent:
        """Fresh learners, one for each replicate of `streams`."""
