"""The smallest L1 ball that is safe for given value functions, row by row.

For successor values z of a row let g be the low quantile of p . z over posterior draws p. A ball is safe for z when its
worst case does not exceed g. Two rules ensure that [Petrik2019]:

    Hyperplane     the ball reaches the half-space {q : q . z <= g}
    QuantileDraw   the ball contains the one draw p with p . z = g

and both minimise the radius psi over all centres theta in the simplex, a linear program per row. The half-space needs
no variables for the point where it is reached: by the dual of the worst case (`urbe.ambiguity.l1`) it is reached iff

    sum_j theta_j min(z_j, tau) - psi / 2 (tau - min z) <= g        for every tau among the z_j.

Among all smallest balls, a second program takes the one whose centre is nearest to the posterior mean; otherwise the
centre could be anywhere below the hyperplane. The programs of the rows are independent, and solved as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from urbe.types import FloatArray


class Cut(NamedTuple):
    """The requirement of one value function on one row with K successors.

    Attributes:
      z: `(K,)` values of the successors.
      bound: g, which the worst case must not exceed; at least min z.
      draw: `(K,)` a distribution with draw . z = g, up to rounding or a little above.
    """

    z: FloatArray
    bound: float
    draw: FloatArray


class Program(NamedTuple):
    """Inequalities `matrix x <= bound` in x = (theta, psi, others), everything at least 0."""

    matrix: FloatArray
    bound: FloatArray


class SafetyRule(Protocol):
    """A definition of a safe ball."""

    def program(self, cuts: Sequence[Cut]) -> Program:
        """The balls that are safe for all of `cuts`, as linear inequalities."""

    def radius(self, centre: FloatArray, cut: Cut) -> float:
        """The least radius with which a ball around `centre` is safe for `cut`, in closed form."""


@dataclass(frozen=True)
class Hyperplane:
    """The ball reaches {q : q . z <= g}: the least that is safe. A single z is safe with radius 0."""

    def program(self, cuts: Sequence[Cut]) -> Program:
        """Inequalities are scaled so that z spans [0, 1]."""
        size = len(cuts[0].z)
        matrix, bound = [np.empty((0, size + 1))], [np.empty(0)]
        for cut in cuts:
            low, width = cut.z.min(), np.ptp(cut.z)
            if width == 0.0:
                continue
            y = (cut.z - low) / width
            tau = np.unique(y)[1:]
            matrix.append(np.column_stack((np.minimum(y, tau[:, None]), -0.5 * tau)))
            bound.append(np.full(len(tau), (cut.bound - low) / width))
        return Program(np.vstack(matrix), np.concatenate(bound))

    def radius(self, centre: FloatArray, cut: Cut) -> float:
        """psi = max_tau 2 (sum_j theta_j min(z_j, tau) - g) / (tau - min z)."""
        tau = np.unique(cut.z)[1:]
        over = np.minimum(cut.z, tau[:, None]) @ centre - cut.bound
        return float((2.0 * over / (tau - cut.z.min())).max(initial=0.0))


@dataclass(frozen=True)
class QuantileDraw:
    """The ball contains the draw at the quantile: simpler, and larger."""

    def program(self, cuts: Sequence[Cut]) -> Program:
        """`others` are u >= theta - draw, whose sum is half of ||theta - draw||_1."""
        size, n_cuts = len(cuts[0].z), len(cuts)
        others = np.eye(n_cuts * size)
        above = np.column_stack((np.tile(np.eye(size), (n_cuts, 1)), np.zeros(n_cuts * size), -others))
        within = np.column_stack(
            (np.zeros((n_cuts, size)), np.full(n_cuts, -0.5), np.kron(np.eye(n_cuts), np.ones(size)))
        )
        draws = np.concatenate([cut.draw for cut in cuts])
        return Program(np.vstack((above, within)), np.concatenate((draws, np.zeros(n_cuts))))

    def radius(self, centre: FloatArray, cut: Cut) -> float:
        return float(np.abs(centre - cut.draw).sum())


class Ball(NamedTuple):
    """Centre `(K,)` and radius of a row's ball."""

    centre: FloatArray
    radius: float


def smallest_balls(rule: SafetyRule, cuts: Sequence[Sequence[Cut]], nearest: Sequence[FloatArray]) -> list[Ball]:
    """For each row the smallest ball that is safe for its cuts, centred as near to `nearest` as that allows.

    Args:
      rule: the definition of safe.
      cuts: at least one for each row.
      nearest: `(K,)` a distribution for each row, such as the posterior mean.
    """
    programs = [rule.program(each) for each in cuts]
    centres = _centres(programs, nearest)
    return [
        Ball(centre, max(rule.radius(centre, cut) for cut in each)) for centre, each in zip(centres, cuts, strict=True)
    ]


def _centres(programs: Sequence[Program], nearest: Sequence[FloatArray]) -> list[FloatArray]:
    """Two linear programs over all rows: the least radii, then with those the least distances from `nearest`.

    The variables of a row are (theta, psi, others, excess), with excess >= theta - nearest: half the distance.
    """
    from scipy.sparse import block_diag, csr_array

    sizes = [len(p) for p in nearest]
    blocks, bounds, radius_at, excess_at, starts, at = [], [], [], [], [], 0
    for program, p, size in zip(programs, nearest, sizes, strict=True):
        width = program.matrix.shape[1]
        block = np.zeros((len(program.matrix) + size, width + size))
        block[: len(program.matrix), :width] = program.matrix
        block[len(program.matrix) :, :size] = np.eye(size)
        block[len(program.matrix) :, width:] = -np.eye(size)
        blocks.append(csr_array(block))
        bounds.append(np.concatenate((program.bound, p)))
        starts.append(at)
        radius_at.append(at + size)
        excess_at.append(np.arange(at + width, at + width + size))
        at += width + size
    matrix, bound = block_diag(blocks, format="csr"), np.concatenate(bounds)
    row = np.repeat(np.arange(len(sizes)), sizes)
    theta_at = np.concatenate([np.arange(start, start + size) for start, size in zip(starts, sizes, strict=True)])
    simplex = csr_array((np.ones(len(row)), (row, theta_at)), shape=(len(sizes), at))

    highest = np.full(at, np.inf)
    cost = np.zeros(at)
    cost[radius_at] = 1.0
    least = _minimise(cost, matrix, bound, simplex, highest)[radius_at]
    highest[radius_at] = np.maximum(least, 0.0) + FEASIBLE
    cost[:] = 0.0
    cost[np.concatenate(excess_at)] = 1.0
    theta = np.maximum(_minimise(cost, matrix, bound, simplex, highest), 0.0)
    found = [theta[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    return [each / each.sum() for each in found]


FEASIBLE = 1e-9
"""Slack of the radius in the second program, so that rounding does not make it infeasible."""


def _minimise(cost: FloatArray, matrix: object, bound: FloatArray, simplex: object, highest: FloatArray) -> FloatArray:
    from scipy.optimize import linprog

    result = linprog(
        cost, matrix, bound, simplex, np.ones(simplex.shape[0]),  # type: ignore[attr-defined]
        bounds=np.column_stack((np.zeros(len(highest)), highest)), method="highs",
    )  # fmt: skip
    if result.status != 0:
        raise RuntimeError(f"The linear program of the smallest balls was not solved: {result.message}")
    solution: FloatArray = result.x
    return solution
