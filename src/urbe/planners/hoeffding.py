"""Frequentist L1 balls: no prior, and the price of doing without one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from urbe.planners.base import PlannedSolution, PlanningTask
from urbe.planners.l1_centre import ball_around
from urbe.posteriors.radius import weissman


@dataclass(frozen=True)
class HoeffdingSets:
    """L1 balls around the observed frequencies, of the radius of [Weissman2003] at level delta / R.

        radius(s, a) = sqrt(2 / n log((2^K - 2) R / delta)),    n = transitions seen, K = feasible successors

    Whatever the true model, for at least a share 1 - delta of the data sets it could have produced, all rows lie in
    their balls and the true value of every policy is at least its worst case. No prior enters, except that it says
    which successors are feasible; nothing is promised about the data set at hand. Needed: transitions of a pair are
    independent draws of one fixed row, and none was forgotten. Rows never seen may be anything.

    >>> HoeffdingSets()
    HoeffdingSets()
    """

    def answer(self, task: PlanningTask) -> PlannedSolution:
        """No draws are used."""
        posterior, rows = task.posterior, task.posterior.model.rows
        seen = np.maximum(posterior.seen, 0.0)[rows.entry_row]
        counts = posterior.concentration - posterior.prior
        centre = np.where(seen > 0.0, counts / np.where(seen > 0.0, seen, 1.0), posterior.probability)
        model, ball = ball_around(posterior, centre, weissman(posterior, 1.0 - task.delta))
        return PlannedSolution(model, ball, task.solve(model, ball))

    def promise(self, confidence: float) -> str:
        return (
            f"Whatever the true model, in a share {confidence:g} or more of the data sets it could give, the policy is "
            "worth at least this in every state at once."
        )
