"""L1 balls around rows estimated from data: Bayesian credible regions [Petrik2019], and frequentist confidence sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from urbe import checks
from urbe.ambiguity.l1 import L1Ball
from urbe.mdp.model import MDP
from urbe.planners.base import PlannedSolution, PlanningTask, in_every_state
from urbe.planners.draws import number_of_draws, quantile_rank, uncertain_rows
from urbe.posteriors.centred import credible_l1_centred
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.radius import credible_l1, weissman
from urbe.types import FloatArray

TRACE = 1e-9
"""Share of the posterior mean mixed into rows with zeros: an L1 ball reaches only successors its centre has."""


@dataclass(frozen=True)
class BCI:
    """The default: L1 balls around the posterior mean, each holding the true row with probability 1 - delta / R.

    Then all R uncertain rows lie in their balls simultaneously with posterior probability at least 1 - delta, and the
    true value of *every* policy is at least its worst case: the bounds remain valid if the set is solved again with
    other rewards or policies. The returned policy alone needs less, which is why the balls are large. This requires
    that the prior is right. The radius is an order statistic of posterior draws, chosen so that the probability is
    exact on average over them.

    Args:
      optimised: move the centres to make the balls smaller; a few linear programs per row.

    >>> BCI()
    BCI(optimised=False)
    """

    optimised: bool = False

    def __post_init__(self) -> None:
        checks.flag("optimised", self.optimised)

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
            return credible_l1_centred(posterior, level, task.rng, draws=draws, union=False, report=task.report)
        radius = credible_l1(posterior, level, task.rng, draws=draws, union=False, report=task.report)
        return posterior.probability, radius

    def promise(self, confidence: float) -> str:
        return in_every_state(confidence)


@dataclass(frozen=True)
class HoeffdingSets:
    """L1 balls around the observed frequencies, of the radius of [Weissman2003] at level delta / R.

        radius(s, a) = sqrt(2 / n log((2^K - 2) R / delta)),    n = transitions seen, K = feasible successors

    Whatever the true model, for at least a share 1 - delta of the data sets it could have produced, all rows lie in
    their balls and the true value of every policy is at least its worst case. The prior matters only for which
    successors are feasible; there is no guarantee for the data set at hand. This requires that the transitions of a
    pair are independent draws from one fixed row, and that none was forgotten. Rows never seen may be anything.

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
            f"For any true model, at least a share {confidence:g} of its possible data sets give a policy that is "
            "worth at least this in every state at once."
        )


def ball_around(posterior: Posterior, centre: FloatArray, radius: FloatArray) -> tuple[MDP, L1Ball]:
    """The model with the rows `centre`, `(E,)`, and a ball that contains all feasible q with ||q - centre|| <= radius.

    A feasible successor of probability zero gets a tiny probability, and the radius grows by as much.
    """
    rows = posterior.model.rows
    missing = rows.row_sums(((centre <= 0.0) & (posterior.concentration > 0.0)).astype(np.float64)) > 0.0
    share = np.where(missing, TRACE, 0.0)
    entry_share = share[rows.entry_row]
    mixed = (1.0 - entry_share) * centre + entry_share * posterior.probability
    return posterior.model_with(mixed), L1Ball(np.minimum(radius + 2.0 * share, 2.0))
