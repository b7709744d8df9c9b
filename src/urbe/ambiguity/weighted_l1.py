"""Weighted L1 balls around a model's own rows.

    minimise  q . z   subject to  sum_j w_j |q_j - p_j| <= radius,  q in the simplex

Moving a unit of mass from j to i costs w_j + w_i. With lam the price of the budget, the dual is

    max_{lam >= 0}  sum_j p_j min(z_j, nu(lam) + lam w_j) - lam radius,      nu(lam) = min_i z_i + lam w_i:

all moved mass goes to the one successor that attains nu, and leaves the successors above nu + lam w_j. For unequal
weights the best receiver and the order of the donors depend on lam, so a single greedy pass would be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe import checks
from urbe.ambiguity.budget_search import balanced, make_search
from urbe.ambiguity.dual_search import dual_by_bisection
from urbe.ambiguity.moments import make_sweep_and_moments
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import RowKernel, RowNature, bind_rows
from urbe.ambiguity.sweep import make_sweep
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, Support


@dataclass(frozen=True, eq=False)
class WeightedL1Ball(RectangularSet):
    """U(s, a) = {q in simplex : sum_j w_j |q_j - pbar_j(s, a)| <= radius(s, a)}.

    A high weight keeps a probability close to the model's; with all weights one the set is `L1Ball`. A row of n
    successors costs O(n) for each plan of the search (`urbe.ambiguity.budget_search`), usually fewer than ten.

    Args:
      radius: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, at least 0.
      weights: above 0: a number, `(S,)` one per state, or `(E,)` one per entry of `mdp.rows`; the last only with
        support "nominal" or where the model lists every state. When S = E, `(S,)` is meant.
      support: successors that may receive mass: the row's own ("nominal"), or every state ("all"; rows then list
        every state).

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.weighted_l1 import WeightedL1Ball
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> WeightedL1Ball(0.4, weights=[1.0, 3.0]).bind(mdp).values(np.array([0.0, 2.0]))
    array([0.4, 2. ])
    """

    radius: Any
    weights: Any
    support: Support = "nominal"

    def __post_init__(self) -> None:
        checks.numbers("radius", self.radius)
        checks.numbers("weights", self.weights)

    def bind(self, mdp: MDP) -> RowNature:
        checks.one_of("support", self.support, ("nominal", "all"))
        radius = mdp.per_row("radius", self.radius)
        checks.row_range("radius", radius, 0.0, np.inf, mdp.row_name)
        weights = checks.float_array("weights", self.weights)
        if weights.size and weights.min() <= 0.0:
            at = np.argwhere(weights <= 0.0)[0]
            raise ValueError(
                f"{checks.index_text('weights', at)} is {weights[tuple(at)]:g}, expected a number above 0. "
                "A successor whose probability may change freely has a small weight, not zero."
            )

        weights, radius = balanced("weights", weights, radius)

        def data(rows: Rows) -> FloatArray:
            return _entry_weights(weights, mdp, rows)[:, None]

        return bind_rows(KERNEL, mdp, radius, support=self.support, data=data)


def _entry_weights(weights: FloatArray, mdp: MDP, rows: Rows) -> FloatArray:
    """`(E,)` weights of the entries of `rows`, which are those of `mdp` with zeros left out or added."""
    if weights.ndim == 0:
        return np.full(rows.n_entries, float(weights))
    if weights.shape == (mdp.n_states,):
        return weights[rows.successor]
    if weights.shape == (mdp.rows.n_entries,):
        if rows.n_entries == mdp.rows.n_entries:
            return weights
        if rows.n_entries < mdp.rows.n_entries:
            return weights[mdp.rows.probability > 0.0]
        raise ValueError(
            f'weights has one number per entry {weights.shape}, but support="all" adds entries; '
            f"expected one per state ({mdp.n_states},)."
        )
    raise ValueError(
        f"weights has shape {weights.shape}, expected a number, one per state ({mdp.n_states},) "
        f"or one per entry of mdp.rows ({mdp.rows.n_entries},)."
    )


@register_jitable
def _receiver(lam, z, weight):
    """The entry that attains nu(lam), and nu(lam); ties may be broken either way."""
    best = 0
    level = z[0] + lam * weight[0]
    for i in range(1, z.shape[0]):
        here = z[i] + lam * weight[i]
        if here < level:
            best, level = i, here
    return best, level


@register_jitable
def _plan(lam, problem):
    p, z, weight = problem
    receiver, level = _receiver(lam, z, weight)
    bottom, base = z[receiver], weight[receiver]
    value = 0.0
    cost = 0.0
    for j in range(p.shape[0]):
        moves = z[j] > level + lam * weight[j]
        value += p[j] * (bottom if moves else z[j])
        cost += p[j] * (base + weight[j]) if moves else 0.0
    return value, cost


_search = make_search(_plan)


@register_jitable
def _worst(p, z, low, radius, data, hint, work):
    nominal = 0.0
    for j in range(p.shape[0]):
        nominal += p[j] * z[j]
    problem = (p, z, data[:, 0])
    value, lam, _, _, _ = _search(problem, radius, _plan(0.0, problem), (nominal, 0.0), hint)
    return value, lam


@register_jitable
def _minimiser(p, z, low, radius, data, work, q, m):
    weight = data[:, 0]
    nominal = 0.0
    for j in range(p.shape[0]):
        nominal += p[j] * z[j]
    problem = (p, z, weight)
    _, lam, lam_costly, lam_cheap, share = _search(problem, radius, _plan(0.0, problem), (nominal, 0.0), 0.0)
    q[:] = 0.0
    _follow_plan(lam_costly, share, p, z, weight, q)
    _follow_plan(lam_cheap, 1.0 - share, p, z, weight, q)
    _arrive(p, q)
    _, level = _receiver(lam, z, weight)
    for j in range(p.shape[0]):
        m[j] = min(z[j], level + lam * weight[j]) if radius > 0.0 else z[j]
    return 0.0


@register_jitable
def _both(p, z, u, low, u_low, radius, data, hint, work, m):
    weight = data[:, 0]
    nominal = 0.0
    for j in range(p.shape[0]):
        nominal += p[j] * z[j]
    problem = (p, z, weight)
    value, lam, lam_costly, lam_cheap, share = _search(problem, radius, _plan(0.0, problem), (nominal, 0.0), hint)
    q = work[0]
    q[:] = 0.0
    _follow_plan(lam_costly, share, p, z, weight, q)
    _follow_plan(lam_cheap, 1.0 - share, p, z, weight, q)
    _arrive(p, q)
    _, level = _receiver(lam, z, weight)
    carried = 0.0
    for j in range(p.shape[0]):
        m[j] = min(z[j], level + lam * weight[j]) if radius > 0.0 else z[j]
        carried += q[j] * u[j]
    return value, lam, carried


@register_jitable
def _follow_plan(lam, share, p, z, weight, change):
    """Adds a share of the plan's moves to `change`."""
    receiver, level = _receiver(max(lam, 0.0), z, weight)
    for j in range(p.shape[0]):
        if lam >= 0.0 and z[j] > level + lam * weight[j]:
            change[receiver] += share * p[j]
            change[j] -= share * p[j]


@register_jitable
def _arrive(p, change):
    """p + change in place of `change`, rounded towards p: a last bit too much may cost more than the whole budget."""
    for j in range(p.shape[0]):
        q = max(p[j] + change[j], 0.0)
        change[j] = np.nextafter(q, p[j]) if abs(q - p[j]) > abs(change[j]) else q


def _distance(q: Any, p: Any, data: FloatArray) -> Any:
    return (data[..., 0] * np.abs(q - p)).sum(axis=1)


def _largest_weight(data: FloatArray) -> FloatArray:
    largest: FloatArray = data[..., 0].max(axis=1)
    return largest


def _dual(p: Any, z: Any, low: Any, radius: Any, data: FloatArray) -> Any:
    """The transport form of the problem, by bisection on its multiplier."""
    weight = data[..., 0]
    cost = np.where(np.eye(p.shape[1], dtype=np.bool_), 0.0, weight[:, :, None] + weight[:, None, :])
    return dual_by_bisection(p, z, cost, radius)


# a plan's value and cost, and the share of each, are sums of n terms; lam times a cost is at most 2 max |z|
KERNEL = RowKernel(
    _minimiser,
    _distance,
    _dual,
    accuracy=64.0 * 2.0**-53,
    per_entry=8.0 * 2.0**-53,
    sweep=make_sweep(_worst),
    sweep_and_moments=make_sweep_and_moments(_both),
    centred=True,
    unit=_largest_weight,
)
