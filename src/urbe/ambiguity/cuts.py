"""Nature on a budget: the best mixture of two plans, for sets in which moving mass costs something.

    minimise  V(x)   subject to  C(x) <= budget,   x a mixture of plans

A plan says where the mass of each entry goes; V is its value and C its cost. For a multiplier lam the best plan is a
choice for each entry on its own, and

    max_{lam >= 0}  min_x  V(x) + lam (C(x) - budget)

is concave and piecewise linear in lam. A dear plan (C > budget) and a cheap one (C <= budget) bound the answer from
above by the mixture of both that costs exactly the budget. At the multiplier at which the two tie, either no plan is
better, and the mixture is optimal, or a plan of a cost strictly in between replaces one of them. There are finitely
many plans, so the search ends with the exact answer and its minimiser; in practice after a handful of plans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe.types import FloatArray


def make_search(plan: Callable[..., Any]) -> Callable[..., Any]:
    """The search for plans of one kind.

    Args:
      plan: `(lam, problem) -> value, cost` of the plan that minimises value + lam cost.

    Returns:
      `search(problem, budget, dear, cheap, hint) -> value, lam, lam_dear, lam_cheap, share`. `dear` is the pair
      value, cost of a plan at lam = 0 and `cheap` that of a plan of cost zero; `hint` is a multiplier to try first,
      or 0. The minimiser is `share` of the plan at `lam_dear` and the rest of that at `lam_cheap`, where -1 stands
      for the plan of cost zero.
    """

    @register_jitable
    def search(problem, budget, dear, cheap, hint):  # type: ignore[no-untyped-def]
        dear_value, dear_cost = dear
        cheap_value, cheap_cost = cheap
        if dear_cost <= budget:
            return dear_value, 0.0, 0.0, -1.0, 1.0
        lam_dear, lam_cheap = 0.0, -1.0
        lam = hint
        while True:
            tie = lam <= 0.0
            if tie:
                lam = (cheap_value - dear_value) / (dear_cost - cheap_cost)
            value, cost = plan(lam, problem)
            between = cheap_cost < cost and cost < dear_cost
            if tie and (not between or value + lam * cost >= dear_value + lam * dear_cost):
                break
            if between and cost > budget:
                dear_value, dear_cost, lam_dear = value, cost, lam
            elif between:
                cheap_value, cheap_cost, lam_cheap = value, cost, lam
            lam = 0.0
        share = (budget - cheap_cost) / (dear_cost - cheap_cost)
        return share * dear_value + (1.0 - share) * cheap_value, lam, lam_dear, lam_cheap, share

    return search


def dual_by_bisection(p: FloatArray, z: FloatArray, cost: FloatArray, budget: float) -> float:
    """A lower bound on the value of moving mass p at `cost[j, i]` from j to value z_i: plain NumPy, slow.

        g(lam) = -lam budget + sum_j p_j min_i (z_i + lam cost[j, i])

    is a lower bound for every lam >= 0 by weak duality. Bisection on its slope finds the best one in double
    precision; g itself is then summed in extended precision.

    Args:
      p: `(n,)` the mass of each donor.
      z: `(m,)` the value at each receiver.
      cost: `(n, m)`, zero where mass stays in place.
      budget: what may be spent.
    """
    positive = cost[cost > 0.0]
    if not positive.size or z.max() == z.min():
        low, high = 0.0, 0.0
    else:
        low, high = 0.0, float((z.max() - z.min()) / positive.min())  # beyond it nothing moves
    candidates = [low, high]
    for _ in range(100):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        chosen = (z + middle * cost).argmin(axis=1)
        rises = p @ np.take_along_axis(cost, chosen[:, None], axis=1)[:, 0] > budget
        low, high = (middle, high) if rises else (low, middle)
    candidates += [low, high]
    bounds = []
    for lam in candidates:
        exact = z.astype(np.longdouble) + np.longdouble(lam) * cost
        bounds.append(p.astype(np.longdouble) @ exact.min(axis=1) - np.longdouble(lam) * np.longdouble(budget))
    return float(max(bounds))
