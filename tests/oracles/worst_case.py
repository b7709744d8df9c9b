"""Worst cases over polyhedral sets as linear programs (HiGHS).

HiGHS accepts 1e-7 of infeasibility per row and of reduced cost, so its optimum is good to LP_TOLERANCE times the
spread of the values only: the oracle, not the kernel, sets that tolerance.
"""

import numpy as np
from scipy.optimize import linprog

from urbe.mdp.model import MDP

LP_TOLERANCE = 1e-6


def one_row_model(p, *, keep_zeros=False, by_successor=False):
    """A model whose only row, of state 0, is p; with discount 1 and reward 0 the values v are the row's z.

    With `by_successor` the zero reward is given for each successor: sets then take their path for r(s, a, s').
    """
    n = len(p)
    transition = np.zeros((n, 1, n))
    transition[0, 0] = p
    reward = np.zeros((n, 1, n)) if by_successor else 0.0
    return MDP.from_dense(transition, reward, discount=1.0, terminal=range(1, n), keep_zeros=keep_zeros)


def worst_by_lp(cost, a_ub=None, b_ub=None, a_eq=None, b_eq=None, bounds=(0, None)):
    """min cost @ x; raises when the program has no solution."""
    answer = linprog(cost, a_ub, b_ub, a_eq, b_eq, bounds=bounds, method="highs")
    assert answer.status == 0, answer.message
    return answer.fun


def l1(p, z, radius, weights=1.0, receivers=None):
    """min q @ z with sum w |q - p| <= radius over the simplex on `receivers` (default: p > 0), in (q, |q - p|)."""
    p, z = np.asarray(p, float), np.asarray(z, float)
    n, eye = len(p), np.eye(len(p))
    w = np.broadcast_to(np.asarray(weights, float), n)
    allowed = p > 0 if receivers is None else np.asarray(receivers)
    a_ub = np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, n)), w[None]]])
    bounds = [(0, None if ok else 0) for ok in allowed] + [(0, None)] * n
    a_eq = np.r_[np.ones(n), np.zeros(n)][None]
    return worst_by_lp(np.r_[z, np.zeros(n)], a_ub, np.r_[p, -p, radius], a_eq, [1.0], bounds)


def box(lower, upper, z):
    """min q @ z with lower <= q <= upper over the simplex."""
    return worst_by_lp(z, a_eq=np.ones((1, len(z))), b_eq=[1.0], bounds=list(zip(lower, upper, strict=True)))


def wasserstein(p, z, metric, radius, receivers=None):
    """min q @ z with W(p, q) <= radius, in the transport plan x[j, i]; receivers default to where p > 0."""
    p, z, metric = np.asarray(p, float), np.asarray(z, float), np.asarray(metric, float)
    n = len(p)
    allowed = p > 0 if receivers is None else np.asarray(receivers)
    a_eq = np.kron(np.eye(n), np.ones((1, n)))
    bounds = [(0, None if allowed[i] else 0) for _ in range(n) for i in range(n)]
    return worst_by_lp(np.tile(z, n), metric.ravel()[None], [radius], a_eq, p, bounds)


def contamination(p, z, fraction, receivers=None):
    """min q @ z with q >= (1 - fraction) p over the simplex on the receivers (default: where p > 0)."""
    p = np.asarray(p, float)
    allowed = p > 0 if receivers is None else np.asarray(receivers)
    lower = (1 - fraction) * p
    return box(lower, np.where(allowed, 1.0, lower), z)


def cvar(x, weights, level):
    """min y @ x over 0 <= y <= weights / level, sum y = 1: the lower tail as a worst case over mixtures."""
    return worst_by_lp(x, a_eq=np.ones((1, len(x))), b_eq=[1.0], bounds=[(0, w / level) for w in weights])
