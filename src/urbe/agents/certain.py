"""Agents that follow their plan without exploring: certainty-equivalent, and robust around the mean."""

from __future__ import annotations

from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from urbe.agents.base import Streams, Task
from urbe.agents.choose import Noise
from urbe.agents.learner import ModelBasedAgent
from urbe.agents.robust_plans import Replan
from urbe.agents.urbe import RADIUS, URBE, SetOfRadius
from urbe.ambiguity.operator import AmbiguitySet
from urbe.posteriors.beliefs import PosteriorConfig, Stationary


@dataclass(frozen=True)
class Robust:
    """Takes the best action against the worst case of an ambiguity set around the posterior mean.

    Args:
      radius, belief, replan, per_step, set: as for `URBE`.
    """

    radius: ArrayLike = RADIUS
    belief: PosteriorConfig = field(default_factory=Stationary)
    replan: Replan = Replan.EPISODE
    per_step: bool = False
    set: AmbiguitySet | SetOfRadius | None = None

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        same = URBE(
            self.radius, 0.0, belief=self.belief, noise=Noise.NONE, replan=self.replan, per_step=self.per_step,
            set=self.set,
        )  # fmt: skip
        return same.start(task, streams)


@dataclass(frozen=True)
class CertaintyEquivalent:
    """Takes the best action of the posterior mean, as if it were the true model.

    Args:
      belief, replan, per_step: as for `URBE`.
    """

    belief: PosteriorConfig = field(default_factory=Stationary)
    replan: Replan = Replan.EPISODE
    per_step: bool = False

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        return Robust(0.0, self.belief, self.replan, self.per_step).start(task, streams)
