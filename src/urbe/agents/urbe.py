"""The uncertainty robust Bellman equation as an agent: robust plans, and noise of the posterior's size.

Before each episode the robust Q of the posterior's L1 balls and its variance u are planned (`urbe.agents.l1_plan`);
each step takes argmax_a Q_h(s, a) + zeta sqrt(u_h(s, a)) with zeta ~ Normal(0, 1) [Derman2019] Algorithm 1.

    Form.COUNT, DIRICHLET    nu as in the paper, scale^2 / N and scale^2 (K - 1) / (N + 1); `scale` is its beta
    Form.CALIBRATED          nu = scale^2 Var[p . m]: scale = 1 is one posterior standard deviation

A radius of zero is UBE [ODonoghue2018]; no noise besides is the certainty-equivalent agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Steps, Streams, Task
from urbe.agents.choose import Noise
from urbe.agents.l1_plan import CALIBRATED, COUNT, DIRICHLET, Local, Plan
from urbe.agents.learner import Knowledge, Learner
from urbe.posteriors.beliefs import BeliefKind, Stationary, Visit
from urbe.types import BoolArray, FloatArray, IntArray


class Form(Enum):
    """Local uncertainty; see the module."""

    COUNT = COUNT
    DIRICHLET = DIRICHLET
    CALIBRATED = CALIBRATED


class Replan(Enum):
    """When a new plan is made: before each episode (the paper's text), or before each step (its listing)."""

    EPISODE = "episode"
    STEP = "step"


@dataclass(frozen=True)
class URBE:
    """The agent's parameters; numbers may be given one per replicate.

    Args:
      radius: psi of every L1 ball, in [0, 2].
      scale: beta of the paper, or the number of posterior standard deviations (`Form.CALIBRATED`).
      form: local uncertainty.
      belief: how the posterior follows the data.
      noise: when zeta is drawn.
      replan: when plans are made.
      per_step: whether every step of an episode has transition counts of its own.
    """

    radius: ArrayLike = 0.3
    scale: ArrayLike = 1.0
    form: Form = Form.CALIBRATED
    belief: BeliefKind = field(default_factory=Stationary)
    noise: Noise = Noise.STEP
    replan: Replan = Replan.EPISODE
    per_step: bool = False

    def start(self, task: Task, streams: Streams) -> Learner:
        """See `AgentKind`."""
        n = len(streams.replicates)
        radius = checks.per_replicate("radius", self.radius, n, 0.0, 2.0)
        scale = checks.per_replicate("scale", self.scale, n, 0.0, np.inf)
        strategy = RobustPlans(task, radius, scale, self.form, self.replan)
        return Learner(task, streams, self.belief, strategy, self.noise, task.horizon if self.per_step else 1)


class RobustPlans:
    """See the module; a `Strategy`."""

    def __init__(self, task: Task, radius: FloatArray, scale: FloatArray, form: Form, replan: Replan) -> None:
        n, model = len(radius), task.prior.model
        self._plan = Plan(model, task.horizon, n)
        self._radius = np.repeat(radius[:, None], model.n_rows, axis=1)
        self._form, self._scale = form, scale
        self._replan = replan

    @property
    def q(self) -> FloatArray:
        """See `Strategy`."""
        return self._plan.q

    @property
    def u(self) -> FloatArray:
        """See `Strategy`."""
        return self._plan.u

    def due(self, known: Knowledge, replicate: IntArray, step: int) -> BoolArray:
        """See `Strategy`; a plan whose posterior has not moved is still good."""
        if step > 0 and self._replan is Replan.EPISODE:
            return np.zeros(len(replicate), dtype=np.bool_)
        return np.asarray(known.transitions.touched[replicate].any(axis=1))

    def plan(self, known: Knowledge, which: IntArray) -> None:
        """See `Strategy`."""
        belief, rewards = known
        local = Local(self._form.value, self._scale, rewards.variance) if self._scale.any() else None
        self._plan.update(which, belief.alpha, belief.total, rewards.mean, self._radius, belief.touched, local=local)

    def observe(self, known: Knowledge, visit: Visit, steps: Steps) -> None:
        """See `Strategy`; the beliefs know all."""

    def state(self) -> dict[str, Any]:
        """See `Strategy`."""
        return self._plan.state()

    def load(self, state: Mapping[str, Any]) -> None:
        """See `Strategy`."""
        self._plan.load(state)
