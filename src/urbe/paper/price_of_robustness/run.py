"""Runs one cell of the price of robustness: solves a nominal model and the robust problem of its set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.operator import AmbiguitySet
from urbe.mdp.evaluate import start_weights
from urbe.paper.models import MODELS
from urbe.paper.price_of_robustness import PriceCell, Row
from urbe.solvers import PartialPolicyIteration, evaluate_policy, solve
from urbe.solvers.sensitivity import least_changed

SETS: dict[str, Callable[[float], AmbiguitySet]] = {"L1": L1Ball, "KL": KLBall}

TOLERANCE = 1e-8
"""Tolerance of every solve."""


def run(cell: PriceCell, _: Path) -> list[Row]:
    """Solves one cell.

    Metrics of each policy: `nominal_lower`, `nominal_upper`, `worst_lower`, `worst_upper` bound its value from the
    start under the nominal model and in the worst case; `gap` is the widest certified interval of any state, for the
    robust policy between its guaranteed value and the bound for all policies; `action[s]` is its action in state s.
    """
    mdp = MODELS[cell.model].build()
    nature = SETS[cell.set](cell.radius)
    start, method = start_weights(mdp), PartialPolicyIteration(tolerance=TOLERANCE)
    nominal = solve(mdp, None, method)
    best = solve(mdp, nature, method)
    robust, robust_worst = least_changed(mdp, nature, best, nominal.policy, method)
    nominal_worst = evaluate_policy(mdp, nominal.policy, nature, method)

    rows: list[Row] = []
    for policy, actions, worst, ceiling in (
        ("robust", robust, robust_worst, best.upper),
        ("nominal", nominal.policy, nominal_worst, nominal_worst.upper),
    ):
        right = evaluate_policy(mdp, actions, None, method)
        numbers = {
            "nominal_lower": start @ right.lower,
            "nominal_upper": start @ right.upper,
            "worst_lower": start @ worst.lower,
            "worst_upper": start @ worst.upper,
            "gap": max(right.gap, (ceiling - worst.lower).max()),
        } | {f"action[{s}]": action for s, action in enumerate(actions)}
        rows += [
            Row(cell.model, cell.set, cell.radius, policy, metric, float(value)) for metric, value in numbers.items()
        ]
    return rows
