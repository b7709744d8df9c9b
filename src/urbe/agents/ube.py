"""The uncertainty Bellman equation as an agent [ODonoghue2018]: URBE without balls."""

from __future__ import annotations

from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from urbe.agents.base import Streams, Task
from urbe.agents.choose import Noise
from urbe.agents.learner import ModelBasedAgent
from urbe.agents.robust_plans import Form, Replan
from urbe.agents.urbe import RADIUS, URBE
from urbe.ambiguity.operator import AmbiguitySet, check_set
from urbe.posteriors.beliefs import PosteriorConfig, Stationary


@dataclass(frozen=True)
class UBE:
    """Plans with the posterior mean and adds noise of the values' standard deviation.

    Args:
      scale, form, belief, noise, replan, per_step: as for `URBE`.
      set: the ambiguity set; None trusts the mean, and with a set this is `URBE`.
    """

    scale: ArrayLike = 1.0
    form: Form = Form.CALIBRATED
    belief: PosteriorConfig = field(default_factory=Stationary)
    noise: Noise = Noise.STEP
    replan: Replan = Replan.EPISODE
    per_step: bool = False
    set: AmbiguitySet | None = None

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        if self.set is not None:
            check_set("set", self.set)
        radius = 0.0 if self.set is None else RADIUS
        same = URBE(radius, self.scale, self.form, self.belief, self.noise, self.replan, self.per_step, set=self.set)
        return same.start(task, streams)
