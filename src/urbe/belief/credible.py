"""Credible sets and tail weights of a belief over members, for cautious decisions.

    C_alpha             the fewest members, by decreasing belief, that hold a mass of at least 1 - alpha
    tail_weights        w with  w . y = CVaR_level(y) = max_c c - sum_k b_k (c - y_k)^+ / level

A level of 1 weights members by the belief; as it falls, the lowest values count more, down to the worst of the support.
"""

from __future__ import annotations

from typing import Any

from urbe.belief.arrays import namespace

ROUNDING = 16
"""Sums of beliefs are compared up to this many units of their precision."""


def credible_set(belief: Any, alpha: float) -> Any:
    """`(..., K)` whether each member belongs to C_alpha; of equally likely ones the first counts first.

    Args:
      belief: `(..., K)` probabilities.
      alpha: the mass that may be left out, in [0, 1). 0 is the support.

    >>> import numpy as np
    >>> credible_set(np.array([0.05, 0.7, 0.25]), alpha=0.1)
    array([False,  True,  True])
    """
    xp = namespace(belief)
    if alpha == 0.0:
        return belief > 0.0
    order = xp.argsort(-belief, axis=-1, stable=True)
    ordered = xp.take_along_axis(belief, order, axis=-1)
    before = xp.cumsum(ordered, axis=-1) - ordered
    wanted = (before < 1.0 - alpha - ROUNDING * xp.finfo(belief.dtype).eps) & (ordered > 0.0)
    return xp.take_along_axis(wanted, xp.argsort(order, axis=-1, stable=True), axis=-1)


def tail_weights(belief: Any, values: Any, level: float) -> Any:
    """`(..., K)` weights of the mean of the lowest `level` of the values under the belief.

    Args:
      belief: `(..., K)` probabilities.
      values: `(..., K)` value of a decision under each member.
      level: in [0, 1]. 1 is the mean, 0 the lowest value of members with a positive belief.

    >>> import numpy as np
    >>> tail_weights(np.array([0.5, 0.3, 0.2]), np.array([3.0, 1.0, 2.0]), level=0.4)
    array([0.  , 0.75, 0.25])
    """
    xp = namespace(values)
    if level == 1.0:
        return belief
    if level == 0.0:
        lowest = xp.argmin(xp.where(belief > 0.0, values, xp.inf), axis=-1, keepdims=True)
        return (xp.arange(values.shape[-1]) == lowest).astype(values.dtype)
    order = xp.argsort(values, axis=-1, stable=True)
    ordered = xp.take_along_axis(belief, order, axis=-1)
    before = xp.cumsum(ordered, axis=-1) - ordered
    weights = xp.clip(level - before, 0.0, ordered) / level
    return xp.take_along_axis(weights, xp.argsort(order, axis=-1, stable=True), axis=-1)
