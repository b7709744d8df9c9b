"""Bayesian credible regions: L1 balls that hold the true rows with the given posterior probability [Petrik2019]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from urbe.planners.base import PlannedSolution, PlanningTask, in_every_state
from urbe.planners.draws import number_of_draws, quantile_rank, uncertain_rows
from urbe.planners.l1_centre import ball_around
from urbe.posteriors.centred import credible_l1_centred
from urbe.posteriors.radius import credible_l1
from urbe.types import FloatArray


@dataclass(frozen=True)
class BCI:
    """The default: L1 balls around the posterior mean, each holding the true row with probability 1 - delta / R.

    Then all R uncertain rows lie in their balls at once with posterior probability 1 - delta or more, and the true
    value of *every* policy is at least its worst case: the set may be solved again with other rewards or policies, and
    its bounds are guaranteed all the same. That is more than the one returned policy needs, and what makes the balls
    large. Needed: the prior is right. The radius is an order statistic of posterior draws, taken so that the
    probability is exact on average over them.

    Args:
      optimised: move the centres to make the balls smaller; a few linear programs per row.

    >>> BCI()
    BCI(optimised=False)
    """

    optimised: bool = False

    def answer(self, task: PlanningTask) -> PlannedSolution:
        centre, radius = self._balls(task)
        model, ball = ball_around(task.posterior, centre, radius)
        return PlannedSolution(model, ball, task.solve(model, ball))

    def _balls(self, task: PlanningTask) -> tuple[FloatArray, FloatArray]:
        posterior = task.posterior
        n_rows = uncertain_rows(posterior)
        if n_rows == 0:
            return posterior.probability, np.zeros(posterior.model.n_rows)
        draws = number_of_draws(task.draws, n_rows, task.delta, rank=2)  # a draw must lie beyond the radius
        level = (draws + 1 - quantile_rank(n_rows, task.delta, draws)) / draws
        if self.optimised:
            return credible_l1_centred(posterior, level, task.rng, draws=draws, union=False)
        return posterior.probability, credible_l1(posterior, level, task.rng, draws=draws, union=False)

    def promise(self, confidence: float) -> str:
        return in_every_state(confidence)
