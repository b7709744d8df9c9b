"""The posterior variance of robust values: one step of the uncertainty Bellman equations.

For the worst case g(p, v) = min_{q in U(p)} q . (r + gamma v) of a row whose centre p has a posterior, the envelope
theorem gives dg = m . dp + gamma q* . dv. To first order, with rows independent and successors' values V,

    Var[g] = Var[p . m] + gamma^2 sum_ij q*_i q*_j Cov[V_i, V_j].

The two forms differ in what they do about the covariances:

    Jensen    u(k) = nu(k) + gamma^2 sum_j q*_j u(s'_j)              u(s) = sum_a pi(a|s) u(s, a)
    sharp     u(k) = nu(k) + gamma^2 sum_j E[q_j^2] u(s'_j)          u(s) = sum_a pi(a|s)^2 u(s, a)

The first is an upper bound whatever the covariances. The second takes the values of different successors to be
uncorrelated, and asks that no state be met twice. With nu of `local.Bound` the first is the uncertainty (robust)
Bellman equation of [ODonoghue2018] and [Derman2019]; with `local.Calibrated` nothing in it has to be tuned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from urbe import checks
from urbe.ambiguity.base import Nature
from urbe.ambiguity.moments import moments
from urbe.ambiguity.widen import entry_keys
from urbe.bellman.local import LocalTerm, Problem, Step
from urbe.bellman.operators import is_randomised, midrange
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray, IntArray

Weights = IntArray | FloatArray
"""A policy: `(S,)` its row in each state (-1 where terminal), or `(R,)` probabilities of rows."""


class VarianceStep(NamedTuple):
    """One step backwards; all `(R,)`: values, local uncertainties and variances of the rows."""

    q: FloatArray
    local: FloatArray
    variance: FloatArray


def variance_step(
    problem: Problem, term: LocalTerm, v: FloatArray, u: FloatArray, weights: Weights | None, sharp: bool
) -> VarianceStep:
    """Values and variances of the rows from those of their successors.

    Args:
      problem: posterior, set and nature.
      term: the local uncertainty, bound to the problem.
      v: `(S,)` values of the successors.
      u: `(S,)` their variances.
      weights: the policy behind v; None when nothing follows.
      sharp: which form, see the module.
    """
    middle = midrange(v)
    q, scatter, carried = moments(problem.nature, v - middle, middle, u)
    if sharp:
        answer = problem.nature.worst_case(v - middle).rows
        check_acyclic(problem.centre, answer)
        carried = answer.row_sums(second_moments(problem.nature, answer, problem.posterior.total) * u[answer.successor])
    nu = term(Step(scatter, v, weights))
    return VarianceStep(q, nu, nu + problem.centre.discount**2 * carried)


def of_policy(mdp: MDP, weights: Weights, x: FloatArray, sharp: bool = False) -> FloatArray:
    """`(S,)` sum_a pi(a|s) x(s, a), or with pi squared when `sharp`; zero where terminal."""
    if is_randomised(weights):
        power = weights**2 if sharp else weights
        return np.bincount(mdp.row_state, power * x, minlength=mdp.n_states).astype(np.float64, copy=False)
    out = np.zeros(mdp.n_states)
    live = weights >= 0
    out[live] = x[weights[live]]
    return out


def weighted_rows(weights: Weights) -> tuple[IntArray, FloatArray]:
    """The rows a policy takes, and the probability of each."""
    if is_randomised(weights):
        taken = np.flatnonzero(weights > 0.0)
        return taken, weights[taken]
    rows = np.asarray(weights, dtype=np.int64)[weights >= 0]
    return rows, np.ones(len(rows))


def second_moments(nature: Nature, answer: Rows, total: FloatArray) -> FloatArray:
    """E[q_j^2] of the entries of nature's answer, approximated by min(q_j^2 + Var[p_j], q_j).

    Exact where q = p. Elsewhere the variance of q_j is not that of p_j, but either is of second order: it multiplies
    variances of successors. E[q^2] <= E[q] holds for any random q in [0, 1].

    Args:
      nature: bound to the posterior mean p.
      answer: its kernel q.
      total: `(R,)` N of each row, Var[p_j] = p_j (1 - p_j) / (N + 1).
    """
    rows, q = nature.rows, answer.probability
    p = rows.probability
    if answer.successor is not rows.successor:  # successors were added or left out
        known, asked = entry_keys(rows), entry_keys(answer)
        at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        p = np.where(known[at] == asked, p[at], 0.0)
    return np.minimum(q**2 + p * (1.0 - p) / (total[answer.entry_row] + 1.0), q)


def check_acyclic(mdp: MDP, answer: Rows) -> None:
    """Raises, naming states, when the model or nature's answer may lead back to a state."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    head, tail = (np.concatenate(ends) for ends in zip(_arrows(mdp, mdp.rows), _arrows(mdp, answer), strict=True))
    graph = coo_array((np.ones(len(head)), (head, tail)), shape=(mdp.n_states, mdp.n_states))
    _, component = connected_components(graph.tocsr(), directed=True, connection="strong")
    on_cycle: BoolArray = np.bincount(component)[component] > 1
    on_cycle[head[head == tail]] = True
    if on_cycle.any():
        states = np.flatnonzero(on_cycle).tolist()
        raise ValueError(
            "sharp=True needs a model in which no state is met twice, but "
            f"{checks.some(len(states), mdp.n_states, 'state', 'states')} on a cycle: {checks.listing(states)}. "
            "sharp=False gives an upper bound for any model; otherwise make the time left a part of the state."
        )


def _arrows(mdp: MDP, rows: Rows) -> tuple[IntArray, IntArray]:
    positive = rows.probability > 0.0
    return mdp.row_state[rows.entry_row[positive]].astype(np.int64), rows.successor[positive].astype(np.int64)
