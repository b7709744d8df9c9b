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
            if reached >= level - SLACK:
                break
        return Answer.around(x, x, rescaled(members[k]), z)


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
