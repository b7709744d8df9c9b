"""Robust plans from a posterior, with their variances: the strategy of URBE and of all its special cases.

Each plan is the recursion of `urbe.agents.set_plan` around the posterior mean, or around a model drawn from it. Balls
have compiled loops over all replicates: `urbe.agents.l1_plan` for L1, the default, and `urbe.agents.ball_plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from urbe import checks, rng
from urbe.agents.ball_plan import balls_of, plan_with_balls
from urbe.agents.base import Streams, Task
from urbe.agents.l1_plan import L1Plan
from urbe.agents.learner import Knowledge
from urbe.agents.set_plan import CALIBRATED, COUNT, DIRICHLET, LocalUncertainty, Plan, SetPlan
from urbe.ambiguity.operator import AmbiguitySet
from urbe.posteriors.beliefs import Visit
from urbe.posteriors.sampling import ManyDirichlet
from urbe.types import BoolArray, FloatArray, IntArray


class Form(Enum):
    """The local uncertainty nu of a pair with K feasible successors and total concentration N.

    COUNT       scale^2 / N
    DIRICHLET   scale^2 (K - 1) / (N + 1)
    CALIBRATED  scale^2 Var[p . m], m the sensitivity of the worst case: scale = 1 is one posterior standard deviation
    """

    COUNT = COUNT
    DIRICHLET = DIRICHLET
    CALIBRATED = CALIBRATED


class Replan(Enum):
    """When a new plan is made: before each episode, or before each step."""

    EPISODE = "episode"
    STEP = "step"


class Centre(Enum):
    """The centre of sets: the posterior mean, or a model drawn from the posterior for every plan."""

    MEAN = "mean"
    SAMPLE = "sample"


class RobustPlans:
    """The `Strategy` of URBE: plans against the worst case of a set around a centre.

    Args:
      task: the prior knowledge.
      streams: random streams of the agent, used only for a random `centre`.
      nature: the ambiguity sets; `(B,)` radii of L1 balls, or a set for each replicate.
      scale: `(B,)` scale of the local uncertainty.
      form, replan, centre: see their classes.
    """

    def __init__(
        self,
        task: Task,
        streams: Streams,
        nature: FloatArray | Sequence[AmbiguitySet],
        scale: FloatArray,
        form: Form = Form.CALIBRATED,
        replan: Replan = Replan.EPISODE,
        centre: Centre = Centre.MEAN,
    ) -> None:
        for name, value, choices in (("form", form, Form), ("replan", replan, Replan), ("centre", centre, Centre)):
            checks.choice(name, value, choices)
        model = task.prior.mean()  # there, uncertain rewards depend only on the pair, whatever the rewards of the model
        self._plan: Plan
        self._nature: Any  # in the form that the plan takes
        self._balls: Callable[..., IntArray] | None = None  # plans for balls, and returns the replicates that are left
        if isinstance(nature, np.ndarray):
            self._plan = L1Plan(model, task.horizon, len(scale))
            self._nature = np.repeat(nature[:, None], model.n_rows, axis=1)
        else:
            for each in {id(each): each for each in nature}.values():
                each.operator(model)  # a set that does not fit the model is refused before the first episode
            self._plan, self._nature = SetPlan(model, task.horizon, len(scale)), nature.__getitem__
            balls = balls_of(nature, model)
            if balls is not None:
                self._balls = partial(plan_with_balls, self._plan, balls)
        self._form, self._scale, self._replan = form, scale, replan
        self._drawn = centre is Centre.SAMPLE
        if self._drawn:
            rows = model.rows.entry_start
            self._transitions = ManyDirichlet(streams("model, normal"), streams("model, uniform"), rows)
            self._rewards = streams("model, rewards")
        self._all = np.ones((len(scale), model.n_rows), dtype=np.bool_)

    @property
    def q(self) -> FloatArray:
        return self._plan.q

    @property
    def u(self) -> FloatArray:
        return self._plan.u

    @property
    def share(self) -> FloatArray | None:
        return self._plan.share

    def due(self, known: Knowledge, replicate: IntArray, step: int) -> BoolArray:
        """A plan remains valid while the posterior does not change, unless its centre is random."""
        if step > 0 and self._replan is Replan.EPISODE:
            return np.zeros(len(replicate), dtype=np.bool_)
        if self._drawn:
            return np.ones(len(replicate), dtype=np.bool_)
        return np.asarray(known.transitions.touched[replicate].any(axis=1))

    def plan(self, known: Knowledge, which: IntArray) -> None:
        belief, rewards = known
        alpha, mean, touched = belief.alpha, rewards.mean, belief.touched
        if self._drawn:
            alpha, touched, mean = np.empty_like(alpha), self._all, rewards.draw(self._rewards, which)
            n = belief.total[which][:, :, self._plan.model.rows.entry_row]
            alpha[which] = n * self._transitions.draw(which, belief.alpha)
        local = LocalUncertainty(self._form.value, self._scale, rewards.variance) if self._scale.any() else None
        if self._balls is not None:
            which = self._balls(which, alpha, belief.total, mean, local)
        self._plan.update(which, alpha, belief.total, mean, self._nature, touched, local=local)

    def observe(self, visit: Visit) -> None:
        """Does nothing: the beliefs hold all data."""

    def state(self) -> dict[str, Any]:
        if not self._drawn:
            return {"plan": self._plan.state()}
        drawn = {"transitions": self._transitions.state(), "rewards": rng.positions(self._rewards)}
        return {"plan": self._plan.state(), **drawn}

    def load(self, state: Mapping[str, Any]) -> None:
        self._plan.load(state["plan"])
        if self._drawn:
            self._transitions.load(state["transitions"])
            rng.go_to(self._rewards, state["rewards"])
