"""The model-based agent: a belief about the model, a strategy that plans from it, noise on the plan's values.

Agents of this kind differ only in their strategy. This module does the rest: it locates transitions in the model, plans
when the strategy asks for it, chooses actions, and saves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from urbe import checks
from urbe.agents.base import Steps, Streams, Task
from urbe.agents.choose import Chooser, Noise
from urbe.agents.locate import Locator
from urbe.posteriors.beliefs import OnlinePosterior, PosteriorConfig, Visit
from urbe.posteriors.rewards import RewardBelief
from urbe.types import BoolArray, FloatArray, IntArray


class Knowledge(NamedTuple):
    """The beliefs of the replicates."""

    transitions: OnlinePosterior
    rewards: RewardBelief


class Strategy(Protocol):
    """When to plan, and how.

    Attributes:
      q, u: `(B, H, R)` values of the last plan and their variances, None if there is no noise; a single layer serves
        all steps.
    """

    @property
    def q(self) -> FloatArray:
        """Values."""

    @property
    def u(self) -> FloatArray | None:
        """Their variances."""

    @property
    def share(self) -> FloatArray | None:
        """`(B, H, R)` probabilities of rows if plans may randomise; else None."""

    def due(self, known: Knowledge, replicate: IntArray, step: int) -> BoolArray:
        """`(K,)` whether each replicate needs a new plan before it acts at `step` of an episode."""

    def plan(self, known: Knowledge, which: IntArray) -> None:
        """Makes new plans for the replicates `which`."""

    def observe(self, visit: Visit) -> None:
        """Observes a step, after the beliefs are updated."""

    def state(self) -> dict[str, Any]:
        """Returns the state needed to resume."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`."""


class ModelBasedAgent:
    """An `Agent` with a belief about the model, which acts by the plans of a strategy and noise."""

    def __init__(
        self, task: Task, streams: Streams, belief: PosteriorConfig, strategy: Strategy, noise: Noise, layers: int = 1
    ) -> None:
        fits = callable(getattr(belief, "start", None))
        checks.kind("belief", belief, fits, "a belief's configuration, such as Stationary()")
        n = len(streams.replicates)
        self.known = Knowledge(belief.start(task.prior, n, layers), RewardBelief(task.prior, n))
        self.strategy = strategy
        self._model = task.prior.model
        self._locate = Locator(self._model)
        self._choose = Chooser(self._model, noise, streams)

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        due = self.strategy.due(self.known, replicate, step)
        if due.any():
            which = replicate[due]
            self.strategy.plan(self.known, which)
            self.known.transitions.touched[which] = False
        if step == 0:
            self._choose.begin_episode(replicate)
        rows = self._choose(replicate, state, self.strategy.q, self.strategy.u, step, self.strategy.share)
        return self._model.action[rows]

    def observe(self, steps: Steps, step: int) -> None:
        row, entry = self._locate(steps)
        visit = Visit(steps.replicate, row, entry, np.full(len(row), step))
        self.known.transitions.observe(visit)
        self.known.rewards.observe(visit, steps.reward)
        self.strategy.observe(visit)

    def end_episode(self) -> None:
        self.known.transitions.end_episode()

    def state(self) -> dict[str, Any]:
        return {
            "transitions": self.known.transitions.state(),
            "rewards": self.known.rewards.state(),
            "strategy": self.strategy.state(),
            "choose": self._choose.state(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        self.known.transitions.load(state["transitions"])
        self.known.rewards.load(state["rewards"])
        self.strategy.load(state["strategy"])
        self._choose.load(state["choose"])
