"""Values at risk: each action is worth a low quantile of its value over the posterior.

    V(s) = max_a  VaR_level over draws p of  sum_s' p(s') [r(s, a, s') + gamma V(s')]           [Lobo2023]

The uncertainty set is implied by V and no larger than needed: for every draw of the model, each row is at least as good
as its quantile unless it is among the worst `level` of draws for that row and that V.
"""

from __future__ import annotations

from dataclasses import dataclass

from urbe import checks
from urbe.ambiguity.scenarios import ValueAtRisk
from urbe.planners.base import PlannedSolution, PlanningTask, in_every_state
from urbe.planners.draws import drawn_rows, number_of_draws, quantile_rank, uncertain_rows


@dataclass(frozen=True)
class VaRBellman:
    """Dynamic programming on quantiles of posterior draws; the least conservative of the methods.

    With `union`, the level is delta / R for R uncertain rows. Then with posterior probability 1 - delta or more every
    row satisfies p(s, a) . z >= Q(s, a) at the returned V, so T_P V >= V for the returned policy and its true value is
    at least V. This requires that the prior is right and that there are enough draws for quantiles of p . z at the
    computed V to hold for the posterior too; rows need not be independent. The guarantee covers only the returned
    policy and V: another V has other quantiles.

    Args:
      union: divide the failure probability among the rows. Otherwise the level is delta itself: often a better
        policy, without a guarantee on its value.

    >>> VaRBellman()
    VaRBellman(union=True)
    """

    union: bool = True

    def __post_init__(self) -> None:
        checks.flag("union", self.union)

    def answer(self, task: PlanningTask) -> PlannedSolution:
        n_rows = uncertain_rows(task.posterior) if self.union else 1
        draws = number_of_draws(task.draws, n_rows, task.delta)
        level = quantile_rank(n_rows, task.delta, draws) / draws
        model = task.posterior.mean()
        nature = ValueAtRisk(drawn_rows(task.posterior, task.rng, draws, task.report), level)
        return PlannedSolution(model, nature, task.solve(model, nature))

    def promise(self, confidence: float) -> str:
        if not self.union:
            return (
                f"No guarantee: each row alone holds with posterior probability {confidence:g}, not all of them "
                "together; judge the policy by its held-out values."
            )
        return in_every_state(confidence)
