"""The posterior variance of robust values: one step of the uncertainty Bellman equations.

For the worst case g(p, v) = min_{q in U(p)} q . (r + gamma v) of a row whose centre p has a posterior, the envelope
theorem gives dg = m . dp + gamma q* . dv. To first order, with rows independent and successors' values V,

    Var[g] = Var[p . m] + gamma^2 sum_ij q*_i q*_j Cov[V_i, V_j].

The two forms differ in their treatment of the covariances:

    Jensen    u(k) = nu(k) + gamma^2 sum_j q*_j u(s'_j)              u(s) = sum_a pi(a|s) u(s, a)
    sharp     u(k) = nu(k) + gamma^2 sum_j E[q_j^2] u(s'_j)          u(s) = sum_a pi(a|s)^2 u(s, a)

The first is an upper bound whatever the covariances. The second takes the values of different successors to be
uncorrelated, and asks that no state be met twice. With nu of `local.Bound` the first is the uncertainty (robust)
Bellman equation of [ODonoghue2018] and [Derman2019]; with `local.Calibrated` nothing in it has to be tuned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from urbe import checks
from urbe.ambiguity.entries import entry_keys
from urbe.ambiguity.operator import Memory, PolicyRows
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray, IntArray
from urbe.variance.local import LocalStep, LocalTerm, Problem


class VarianceStep(NamedTuple):
    """One step backwards.

    Attributes:
      q, local, variance: `(R,)` values, local uncertainties and variances of the rows.
      value, value_variance: `(S,)` values and variances of the states under `policy`.
      policy: the one given, or the greedy one.
      memory: memory of the sweep.
    """

    q: FloatArray
    local: FloatArray
    variance: FloatArray
    value: FloatArray
    value_variance: FloatArray
    policy: PolicyRows
    memory: Memory


class Ahead(NamedTuple):
    """The data of the following step.

    Attributes:
      v, u: `(S,)` values of the successors, and their variances.
      policy: their policy; None at the end.
      memory: memory of the following step.
    """

    v: FloatArray
    u: FloatArray
    policy: PolicyRows | None = None
    memory: Memory = None


def variance_step(
    problem: Problem, term: LocalTerm, ahead: Ahead, policy: PolicyRows | None, sharp: bool
) -> VarianceStep:
    """Computes values and variances from those of the successors.

    Args:
      problem: posterior, set and its operator.
      term: the local uncertainty, bound to the problem.
      ahead: the following step.
      policy: the policy of this step; None takes the greedy one.
      sharp: which form, see the module.
    """
    value, q, policy, scatter, carried, memory = problem.operator.moments(ahead.v, ahead.u, policy, ahead.memory)
    if sharp:
        answer = squared_answer(problem, ahead.v, policy)
        carried = answer.row_sums(answer.probability * ahead.u[answer.successor])
    nu = term(LocalStep(scatter, ahead.v, ahead.policy))
    variance = nu + problem.centre.discount**2 * carried
    power = 2 if sharp else 1
    return VarianceStep(q, nu, variance, value, policy.average(problem.centre, variance, power), policy, memory)


def squared_answer(problem: Problem, v: FloatArray, policy: PolicyRows) -> Rows:
    """Returns nature's answer at v with E[q^2] instead of q."""
    answer = problem.operator.kernel(v, policy)
    check_acyclic(problem.centre, answer)
    return replace(answer, probability=second_moments(problem.centre.rows, answer, problem.posterior.total))


def second_moments(rows: Rows, answer: Rows, total: FloatArray) -> FloatArray:
    """E[q_j^2] of the entries of nature's answer, approximated by min(q_j^2 + Var[p_j], q_j).

    Exact where q = p. Elsewhere the variance of q_j is not that of p_j, but either is of second order: it multiplies
    variances of successors. E[q^2] <= E[q] holds for any random q in [0, 1].

    Args:
      rows: the posterior mean p.
      answer: nature's kernel q.
      total: `(R,)` N of each row, Var[p_j] = p_j (1 - p_j) / (N + 1).
    """
    q, p = answer.probability, rows.probability
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
