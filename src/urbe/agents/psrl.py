"""Posterior sampling [Osband2013]: each episode follows the best policy of a model drawn from the posterior.

With an ambiguity set, the policy is optimal against the worst case around the drawn model: robust posterior sampling.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from urbe.agents.base import Streams, Task
from urbe.agents.choose import Noise
from urbe.agents.learner import ModelBasedAgent
from urbe.agents.robust_plans import Centre
from urbe.agents.urbe import RADIUS, URBE
from urbe.ambiguity.operator import AmbiguitySet, check_set
from urbe.posteriors.beliefs import PosteriorConfig, Stationary


@dataclass(frozen=True)
class PSRL:
    """Draws transitions and uncertain rewards before each episode, without tuning parameters.

    Args:
      belief: how the posterior follows the data.
      per_step: whether every step of an episode has its own transition counts.
      set: ambiguity set around the drawn model; None trusts the model.
    """

    belief: PosteriorConfig = field(default_factory=Stationary)
    per_step: bool = False
    set: AmbiguitySet | None = None

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        if self.set is not None:
            check_set("set", self.set)
        radius = 0.0 if self.set is None else RADIUS
        same = URBE(
            radius, 0.0, belief=self.belief, noise=Noise.NONE, per_step=self.per_step, centre=Centre.SAMPLE,
            set=self.set,
        )  # fmt: skip
        return same.start(task, streams)
