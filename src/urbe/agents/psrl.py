"""Posterior sampling [Osband2013]: each episode follows the best policy of a model drawn from the posterior."""

from __future__ import annotations

from dataclasses import dataclass, field

from urbe.agents.base import Streams, Task
from urbe.agents.choose import Noise
from urbe.agents.learner import Learner
from urbe.agents.robust_plans import Centre
from urbe.agents.urbe import URBE
from urbe.posteriors.beliefs import BeliefKind, Stationary


@dataclass(frozen=True)
class PSRL:
    """Draws transitions and uncertain rewards before each episode; there is nothing to tune.

    Args:
      belief: how the posterior follows the data.
      per_step: whether every step of an episode has transition counts of its own.
    """

    belief: BeliefKind = field(default_factory=Stationary)
    per_step: bool = False

    def start(self, task: Task, streams: Streams) -> Learner:
        """See `AgentKind`."""
        same = URBE(0.0, 0.0, belief=self.belief, noise=Noise.NONE, per_step=self.per_step, centre=Centre.SAMPLE)
        return same.start(task, streams)
