"""The uncertainty Bellman equation as an agent [ODonoghue2018]: URBE without balls."""

from __future__ import annotations

from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from urbe.agents.base import Streams, Task
from urbe.agents.choose import Noise
from urbe.agents.learner import Learner
from urbe.agents.robust_plans import Form, Replan
from urbe.agents.urbe import URBE
from urbe.posteriors.beliefs import BeliefKind, Stationary


@dataclass(frozen=True)
class UBE:
    """Plans with the posterior mean and adds noise of the values' standard deviation.

    Args:
      scale, form, belief, noise, replan, per_step: as for `URBE`.
    """

    scale: ArrayLike = 1.0
    form: Form = Form.CALIBRATED
    belief: BeliefKind = field(default_factory=Stationary)
    noise: Noise = Noise.STEP
    replan: Replan = Replan.EPISODE
    per_step: bool = False

    def start(self, task: Task, streams: Streams) -> Learner:
        """See `AgentKind`."""
        same = URBE(0.0, self.scale, self.form, self.belief, self.noise, self.replan, self.per_step)
        return same.start(task, streams)
