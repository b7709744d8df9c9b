"""Robustification with sensible value functions (RSVF): balls only as large as the relevant values require.

A credible ball is valid for every value function, but only those that occur matter. Starting from the posterior mean,

    solve the robust MDP:  v
    for each row:  g(v) = the delta / R quantile of p . v over posterior draws
    stop if the worst case of every row at v is at most g(v)
    otherwise the row's ball becomes the smallest that is safe for all its v so far (`safety_rules`)

[Petrik2019]. At the end the true p of each row satisfies p . v >= g(v) >= worst case with posterior probability
1 - delta / R, hence T_P v >= v for the returned policy and its true value is at least v.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from urbe import checks
from urbe.ambiguity.l1 import L1Ball
from urbe.mdp.model import MDP
from urbe.planners.base import PlannedSolution, PlanningTask, in_every_state
from urbe.planners.draws import Quantiles, number_of_draws, quantile_rank, quantiles, uncertain_rows
from urbe.planners.l1_balls import ball_around
from urbe.planners.safety_rules import Cut, Hyperplane, SafetyRule, smallest_balls
from urbe.types import FloatArray

ROUNDING = 1e-12
"""Worst cases and quantiles are compared up to this share of the largest value."""


@dataclass(frozen=True)
class RSVF:
    """Fits balls to the value functions that occur while solving; their centres move, their radii stay small.

    The guarantee covers the returned policy and its guaranteed value, not the set: for another policy, reward or
    discount the balls may be too small. It requires that the prior is right, and enough draws that quantiles of p . v,
    at the v computed from them, hold for the posterior too.

    Args:
      rule: `Hyperplane()`, the smallest safe ball, or `QuantileDraw()`.
      tolerance: required distance of a worst case below its quantile, as a share of the span of values; it ensures
        that the rounds end.
      rounds: largest number of rounds; more raise an error.

    >>> RSVF()
    RSVF(rule=Hyperplane(), tolerance=1e-06, rounds=200)
    """

    rule: SafetyRule = field(default_factory=Hyperplane)
    tolerance: float = 1e-6
    rounds: int = 200

    def __post_init__(self) -> None:
        fits = callable(getattr(self.rule, "program", None))
        checks.kind("rule", self.rule, fits, "a rule for safe balls, such as Hyperplane()")
        if not checks.number("tolerance", self.tolerance, 0.0, 1.0) > 0.0:
            raise ValueError("tolerance is 0, expected a positive number, which ensures that the rounds end.")
        checks.whole_number("rounds", self.rounds, 1)

    def answer(self, task: PlanningTask) -> PlannedSolution:
        posterior, rows = task.posterior, task.posterior.model.rows
        n_uncertain = uncertain_rows(posterior)
        n_draws = number_of_draws(task.draws, n_uncertain, task.delta)
        rank = quantile_rank(n_uncertain, task.delta, n_draws)
        drawn = quantiles(posterior, task.rng, n_draws, rank, task.report)
        mean = posterior.probability

        centre, radius = mean.copy(), np.zeros(rows.n_rows)
        v: FloatArray | None = None
        cuts: list[list[Cut]] = [[] for _ in range(rows.n_rows)]
        for step in range(self.rounds):
            model, ball = ball_around(posterior, centre, radius)
            solution = task.solve(model, ball, start=v)
            v = solution.value
            asked = self._unsafe(model, ball, solution.lower, drawn)
            if not asked:
                return PlannedSolution(model, ball, solution)
            task.report("rounds", step + 1, self.rounds, f"{len(asked)} rows need larger balls")
            for row, cut in asked.items():
                cuts[row].append(cut)
            entries = [slice(*rows.entry_start[row : row + 2]) for row in asked]
            found = smallest_balls(self.rule, [cuts[row] for row in asked], [mean[each] for each in entries])
            for row, each, new in zip(asked, entries, found, strict=True):
                centre[each], radius[row] = new
        raise RuntimeError(
            f"RSVF has not converged: after {self.rounds} rounds {len(asked)} of {rows.n_rows} rows need larger balls. "
            "Use a larger tolerance, more rounds, or VaRBellman(), which needs none."
        )

    def promise(self, confidence: float) -> str:
        return in_every_state(confidence)

    def _unsafe(self, model: MDP, ball: L1Ball, v: FloatArray, drawn: Quantiles) -> dict[int, Cut]:
        """The rows whose worst case at v exceeds their quantile, and the cuts they need."""
        rows = model.rows
        if not rows.n_rows:
            return {}
        worst = ball.bind(model).values(v) - rows.row_reward
        z = rows.successor_values(model.discount * v)
        margin, slack = self.tolerance * np.ptp(z), ROUNDING * np.abs(z).max()
        bound, draw = drawn.lowest(z)
        out = {}
        for row in np.flatnonzero(worst > bound + slack).tolist():
            a, b = rows.entry_start[row : row + 2]
            wanted = max(float(bound[row]) - margin, float(z[a:b].min()))
            out[row] = Cut(z[a:b], wanted, draw[a:b])
        return out
