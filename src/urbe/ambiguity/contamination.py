"""Contamination: with probability `fraction` nature chooses the next state.

U(s, a) = {(1 - R) p + R e : e any distribution on the support},      Q = (1 - R) p . z + R min z
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from urbe import checks
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import RowKernel, RowNature, bind_balls
from urbe.ambiguity.sweep import FAST, gather, in_order, make_sweep, row_function, whole
from urbe.mdp.model import MDP
from urbe.types import FloatArray, Support

SMALL = 1e-300
"""Smaller probabilities are not scaled: they would lose digits."""


@dataclass(frozen=True, eq=False)
class Contamination(RectangularSet):
    """U(s, a) = {(1 - R) pbar(s, a) + R e : e a distribution}, with R = fraction(s, a).

    Args:
      fraction: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, in [0, 1]; 0 is the model itself.
      support: where e may put mass: on the row's own successors ("nominal"), or on every state ("all").

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.contamination import Contamination
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> Contamination(0.2, support="all").bind(mdp).values(np.array([0.0, 2.0]))
    array([0.4, 1.8])
    """

    fraction: Any
    support: Support = "nominal"

    def __post_init__(self) -> None:
        checks.numbers("fraction", self.fraction)

    def bind(self, mdp: MDP) -> RowNature:
        return bind_balls(KERNEL, mdp, self.fraction, self.support, most=1.0, name="fraction", receiver=True)


@row_function
def _mean(p, z):
    total = 0.0
    for j in range(p.shape[0]):
        total += p[j] * z[j]
    return total


@in_order
def _worst(p, z, low, radius, data, hint, work):
    return (1.0 - radius) * _mean(p, z) + radius * low, hint


@register_jitable
def _minimiser(p, z, low, radius, data, work, q, m):
    receiver = -1
    for j in range(p.shape[0] - 1, -1, -1):
        q[j] = (1.0 - radius) * p[j] if p[j] > SMALL else p[j]
        m[j] = (1.0 - radius) * z[j]
        if z[j] == low:
            receiver = j
    if receiver >= 0:
        q[receiver] += radius
        return 0.0
    return radius


@njit(cache=True, nogil=True, fastmath=FAST)
def _sweep_and_moments(problem, r, reward, shift, u, u_outside, hint, work, out, scatter, carried):
    """The loop of `make_sweep_and_moments` without storing m = (1 - R) z, whose mean is the value minus R low."""
    start, successor, p, data, radius, outside, w = problem
    for row in range(len(start) - 1):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        row_p, row_successor, fraction = p[a : a + n], successor[a : a + n], radius[row]
        z, low = gather(a, n, successor, r, w, outside, work)
        value, _ = _worst(row_p, z, low, fraction, data, 0.0, work)
        out[row] = whole(value, shift, 0.0 if r is not None else reward[row])
        kept, mean = 1.0 - fraction, value - fraction * low
        first, square, mean_u, ties, u_low = 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            m = kept * z[j] - mean
            u_j = u[np.uint32(row_successor[j])]
            lowest = 1.0 if z[j] == low else 0.0
            first += row_p[j] * m
            square += row_p[j] * m * m
            mean_u += row_p[j] * u_j
            ties += lowest
            u_low += lowest * u_j
        scatter[row] = max(square - first * first, 0.0)
        carried[row] = kept * mean_u + fraction * (u_low / ties if ties > 0.0 else u_outside)


def _distance(q: Any, p: Any, data: FloatArray) -> Any:
    """Returns the least fraction for which q is a contamination of p: max_j 1 - q_j / p_j."""
    return np.where(p > 0.0, 1.0 - q / p, -np.inf).max(axis=1)


def _dual(p: Any, z: Any, low: Any, radius: Any, data: FloatArray) -> Any:
    """low + (1 - R) sum_j p_j (z_j - low), the dual value at the multiplier `low` of sum q = 1."""
    return low + (1.0 - radius) * (p * (z - low[:, None])).sum(axis=1)


# the value is a sum of n products and three more roundings, which the allowance for row sums covers
KERNEL = RowKernel(
    _minimiser,
    _distance,
    _dual,
    sweep=make_sweep(_worst),
    sweep_and_moments=_sweep_and_moments,
    centred=True,
    linear=True,
)
