"""The protocol of agents: parallel replicates, each of which acts on its own observations.

Experiments need many runs of the same agent. All agents therefore keep B replicates at once, in arrays with a leading
axis, and every call names the replicates it concerns: they share the cost of Python, and the run of a replicate does
not depend on the others. Numbers among an agent's parameters may be given one per replicate. For a single run with
plain numbers see `Single`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from urbe import checks, rng
from urbe.posteriors.dirichlet import Posterior, check_posterior
from urbe.types import BoolArray, FloatArray, IntArray


class Task(NamedTuple):
    """The prior knowledge of an agent.

    Attributes:
      prior: pairs, feasible successors, rewards (known, or their prior), discount.
      horizon: steps after which an episode is truncated.
    """

    prior: Posterior
    horizon: int


def check_task(agent: object, task: object) -> None:
    """Raises unless the arguments are an agent's parameters and a valid task."""
    fits = callable(getattr(agent, "start", None))
    checks.kind("agent", agent, fits, "an agent's parameters, such as URBE(radius=0.3)")
    checks.kind("task", task, isinstance(task, Task), "a task, such as Task(Posterior.before(model), horizon=20)")
    assert isinstance(task, Task)
    check_posterior("task.prior", task.prior)
    checks.whole_number("task.horizon", task.horizon, 1)


class Steps(NamedTuple):
    """One step of the replicates that took one; all `(K,)`.

    Attributes:
      replicate: indices of the replicates.
      state, action, reward, next_state: the transition.
      terminated: whether the process terminated; truncated: whether the episode was truncated.
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
        """Returns one generator per replicate."""
        return rng.streams(self.seed, name, self.replicates)


class Agent(Protocol):
    """B learners in parallel."""

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        """Chooses `(K,)` actions of the replicates `replicate` in `state`; `step` counts from 0 in each episode."""

    def observe(self, steps: Steps, step: int) -> None:
        """Learns from the outcomes of the actions."""

    def end_episode(self) -> None:
        """Ends the episode of every replicate."""

    def state(self) -> dict[str, Any]:
        """Returns the whole state, nested dicts of arrays and plain values, from which `load` resumes bit for bit."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`, in an agent that was started in the same way."""


class AgentConfig(Protocol):
    """The parameters of an agent."""

    def start(self, task: Task, streams: Streams) -> Agent:
        """Starts new learners, one for each replicate of `streams`."""
