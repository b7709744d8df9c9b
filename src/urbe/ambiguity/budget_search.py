"""Minimise under a budget by the best mixture of two plans, for sets in which moving mass has a cost.

    minimise  V(x)   subject to  C(x) <= budget,   x a mixture of plans

A plan determines where the mass of each entry goes; V is its value and C its cost. For a multiplier lam the best plan
is a separate choice for each entry, and

    max_{lam >= 0}  min_x  V(x) + lam (C(x) - budget)

is concave and piecewise linear in lam. The mixture of a costly plan (C > budget) and a cheap one (C <= budget) that
costs exactly the budget bounds the minimum from above. At the multiplier at which the two plans tie, either no plan is
better, and the mixture is optimal, or a plan with a cost strictly in between replaces one of them. There are finitely
many plans, so the search ends with the exact minimum and its minimiser, in practice after a few plans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe import checks
from urbe.types import FloatArray


def make_search(plan: Callable[..., Any]) -> Callable[..., Any]:
    """Makes the search for one kind of plans.

    Args:
      plan: `(lam, problem) -> value, cost` of the plan that minimises value + lam cost.

    Returns:
      `search(problem, budget, costly, cheap, hint) -> value, lam, lam_costly, lam_cheap, share`. `costly` is the pair
      value, cost of a plan at lam = 0, and `cheap` the pair of a plan of cost zero; `hint` is a multiplier to try
      first, or 0. The minimiser mixes the plan at `lam_costly`, with weight `share`, and the plan at `lam_cheap`, where
      -1 stands for the plan of cost zero.
    """

    @register_jitable
    def search(problem, budget, costly, cheap, hint):
        costly_value, costly_cost = costly
        cheap_value, cheap_cost = cheap
        if costly_cost <= budget:
            return costly_value, 0.0, 0.0, -1.0, 1.0
        lam_costly, lam_cheap = 0.0, -1.0
        lam = hint
        while True:
            tie = lam <= 0.0
            if tie:
                lam = (cheap_value - costly_value) / (costly_cost - cheap_cost)
            value, cost = plan(lam, problem)
            between = cheap_cost < cost and cost < costly_cost
            if tie and (not between or value + lam * cost >= costly_value + lam * costly_cost):
                break
            if between and cost > budget:
                costly_value, costly_cost, lam_costly = value, cost, lam
            elif between:
                cheap_value, cheap_cost, lam_cheap = value, cost, lam
            lam = 0.0
        share = (budget - cheap_cost) / (costly_cost - cheap_cost)
        return share * costly_value + (1.0 - share) * cheap_value, lam, lam_costly, lam_cheap, share

    return search


WIDEST = 1e150
"""Largest quotient of two costs: with larger quotients, products of costs and multipliers would overflow."""


def balanced(name: str, cost: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scales costs and radii by a power of two if costs are above 1e75 or below 1e-75.

    Raises:
      ValueError: costs differ by more than a factor of `WIDEST`.
    """
    positive = cost[cost > 0.0]
    if not positive.size:
        return cost, radius
    least, most = float(positive.min()), float(positive.max())
    if most / WIDEST > least:
        where = checks.index_text(name, np.argwhere(cost == least)[0])
        raise ValueError(
            f"{where} is {least:g} while the largest is {most:g}, expected costs within a factor of {WIDEST:g} of each "
            "other. Larger differences do not change the result: raise the small costs or lower the large ones."
        )
    if least >= WIDEST**-0.5 and most <= WIDEST**0.5:
        return cost, radius
    k = (int(np.frexp(least)[1]) + int(np.frexp(most)[1])) // 2
    with np.errstate(over="ignore"):
        return np.ldexp(cost, -k), np.minimum(np.ldexp(radius, -k), 1e200)
