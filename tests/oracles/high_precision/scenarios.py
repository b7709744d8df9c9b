"""Worst case, quantile and tail mean over finitely many distributions."""

from oracles.high_precision.numbers import Answer, D, dot, precise, rescaled

SLACK = D("1e-12")
"""Sums of weights reach a level up to this, as `ValueAtRisk` documents."""


def worst(members: list[list[D]], z: list[D]) -> Answer:
    """min_k p_k . z."""
    with precise():
        members = [rescaled(p) for p in members]
        q = min(members, key=lambda p: dot(p, z))
        return Answer.around(dot(q, z), dot(q, z), q, z)


def quantile(members: list[list[D]], z: list[D], weights: list[D], level: D) -> Answer:
    """The smallest x with P(p_k . z <= x) >= level."""
    with precise():
        reached = D(0)
        for x, k in _ranked(members, z, weights):
            reached += weights[k]
            value, chosen = x, k
            if reached >= level - SLACK:
                break
        return Answer.around(value, value, rescaled(members[chosen]), z)


def tail_mean(members: list[list[D]], z: list[D], weights: list[D], level: D) -> Answer:
    """The mean of the lowest `level` of the p_k . z; the dual is max_tau tau - E[(tau - x)_+] / level."""
    with precise():
        weights = rescaled(weights)
        ranked = _ranked(members, z, weights)
        left, q, tau = D(1), [D(0)] * len(z), ranked[0][0]
        for x, k in ranked:
            share = left if not level else min(left, weights[k] / level)
            q = [a + share * b for a, b in zip(q, rescaled(members[k]), strict=True)]
            left -= share
            tau = x
            if left <= 0:
                break
        short = sum((weights[k] * max(tau - x, D(0)) for x, k in ranked), D(0))
        return Answer.around(tau - short / level if level else tau, dot(q, z), q, z)


def _ranked(members: list[list[D]], z: list[D], weights: list[D]) -> list[tuple[D, int]]:
    """`(value, scenario)` in increasing order, without those of weight zero."""
    return sorted((dot(rescaled(p), z), k) for k, p in enumerate(members) if weights[k])


def outside_mixtures(members: list[list[D]], q: list[D], weights: list[D], level: D) -> D:
    """The L1 distance of q from the mixtures sum_k y_k p_k, 0 <= y_k <= weight_k / level.

    It is max_z min_y sum_k y_k p_k . z - q . z over |z_j| <= 1. A linear program in double precision finds z, and the
    difference at this z is exact: a q outside may be said to be closer than it is, but one inside is never said to be
    outside.
    """
    import numpy as np
    from scipy.optimize import linprog

    columns = np.array([[float(x) for x in rescaled(p)] for p in members]).T
    n, count = columns.shape
    most = [float(min(w / level, D(1))) if level else float(bool(w)) for w in rescaled(weights)]
    a_eq = np.block([[columns, np.eye(n), -np.eye(n)], [np.ones((1, count)), np.zeros((1, 2 * n))]])
    cost = np.concatenate([np.zeros(count), np.ones(2 * n)])
    bounds = [(0.0, x) for x in most] + [(0.0, None)] * (2 * n)
    found = linprog(cost, A_eq=a_eq, b_eq=np.append([float(x) for x in q], 1.0), bounds=bounds)
    assert found.status == 0, found.message
    z = [D(float(x)) for x in np.clip(-found.eqlin.marginals[:n], -1.0, 1.0)]
    return max(tail_mean(members, z, weights, level).low - dot(q, z), D(0))
