"""Runs one cell of the price of robustness: solves a model as it is and against its set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.operator import AmbiguitySet
from urbe.mdp.evaluate import start_weights
from urbe.mdp.model import MDP
from urbe.paper.models import MODELS
from urbe.paper.price_of_robustness import PriceCell, Row
from urbe.solvers import PartialPolicyIteration, Solution, evaluate_policy, solve
from urbe.types import FloatArray, IntArray

SETS: dict[str, Callable[[float], AmbiguitySet]] = {"L1": L1Ball, "KL": KLBall}

TOLERANCE = 1e-8
"""Wanted gap of every solve."""

TIE = 1e-6
"""Actions whose values differ by less count as equally good; the gap of the policy so chosen is held to this too."""


def run(cell: PriceCell, _: Path) -> list[Row]:
    """Solves one cell.

    Metrics of each policy: `nominal_lower`, `nominal_upper`, `worst_lower`, `worst_upper` bound its value from the
    start under the nominal model and in the worst case; `gap` is the widest certified interval of any state, for the
    robust policy that between what it is sure to get and what any policy could; `action[s]` is its action in state s.
    """
    mdp = MODELS[cell.model].build()
    nature = SETS[cell.set](cell.radius)
    start, method = start_weights(mdp), PartialPolicyIteration(tolerance=TOLERANCE)
    nominal = solve(mdp, None, method)
    best = solve(mdp, nature, method)
    robust, robust_worst = least_changed(mdp, nature, best, nominal.policy)
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


def least_changed(
    mdp: MDP, nature: AmbiguitySet, best: Solution, reference: IntArray | FloatArray
) -> tuple[IntArray | FloatArray, Solution]:
    """A policy optimal against nature that differs from `reference` only where it must, and its worst-case value.

    Args:
      mdp: the model.
      nature: what nature may do.
      best: the robust solution.
      reference: `(S,)` actions to keep where they are within `TIE` of the best.
    """
    method = PartialPolicyIteration(tolerance=TOLERANCE)
    states = np.arange(mdp.n_states)
    keep = mdp.terminal | (best.q[states, reference] >= best.q.max(axis=1) - TIE)
    policy = np.where(keep, reference, best.policy)
    worst = evaluate_policy(mdp, policy, nature, method)
    if (best.upper - worst.lower).max() > TIE:  # near-ties may add up along the way
        return best.policy, evaluate_policy(mdp, best.policy, nature, method)
    return policy, worst
