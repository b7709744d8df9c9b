"""Distributionally robust sets by moments: bounds are known on the mean and the deviations of a row's random kernel.

A kernel p of each row is drawn at every visit, from a law on the distributions over the row's successors that satisfies
[YuXu2016]

    |E p_j - pbar_j| <= mean_error              the mean, of each successor
    E |p_j - pbar_j| <= deviation               the mean deviation from the model's row
    Pr(||p - pbar||_1 <= radius_i) >= confidence_i         nested balls, i = 1, .., n

The value of a row is linear in p, so only the mean E p matters. By convexity a worst distribution has one kernel in
each shell between two balls: with mu_i its probability and y_i = mu_i p_i,

    minimise  sum_i y_i . z   over  y_i, mu_i, t_i >= 0
      sum_j y_ij = mu_i,     sum_i mu_i = 1,     mu_1 + .. + mu_i >= confidence_i
      |y_ij - mu_i pbar_j| <= t_ij,     sum_j t_ij <= radius_i mu_i,     sum_i t_ij <= deviation
      |sum_i y_ij - pbar_j| <= mean_error

is the problem of a row, a linear program: the last shell has no radius. All rows are solved as one program.

Departure: in [YuXu2016] the actions of a state share a distribution, and constraints are conic. Here each row has its
own distribution, and constraints are polyhedral.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.ambiguity.coupled.moment_program import Block, minimise
from urbe.ambiguity.entries import on_entries
from urbe.ambiguity.evidence import RowEvidence, membership, of_minimum, under_kernel
from urbe.ambiguity.exact import Exact
from urbe.ambiguity.nature import Nature, PlainNature, RowMemory, WorstCase
from urbe.ambiguity.operator import ROUNDING
from urbe.ambiguity.rectangular import RectangularSet
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import Buffer, FloatArray, IntArray
from urbe.workers import SERIAL, Workers

ACCURACY = 1e-9
"""Values are proven to this share of their range; other answers raise an error."""


@dataclass(frozen=True, eq=False)
class MomentSet(RectangularSet):
    """Nature picks the distribution of each row's kernel, with given moments, on the row's own successors.

    Args:
      mean_error: bound on the distance of the mean from the model's row, for each successor: a number, `(R,)`, `(S, A)`
        or `{(s, a): number}`. 0 fixes the mean to the row; infinity, as a single number, means no bound.
      deviation: bound on the mean deviation E|p_j - pbar_j| of each successor, in the same forms.
      radius: `(n,)` increasing radii of L1 balls around the row.
      confidence: `(n,)` increasing, in [0, 1]: the least probability of each ball.

    >>> import numpy as np, urbe
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], discount=0.5)
    >>> urbe.MomentSet(radius=[0.4], confidence=[0.75]).bind(mdp).values(np.array([0.0, 2.0])).round(6)
    array([0.225, 1.225])
    """

    mean_error: Any = np.inf
    deviation: Any = np.inf
    radius: ArrayLike = ()
    confidence: ArrayLike = ()

    def __post_init__(self) -> None:
        for name in ("mean_error", "deviation"):
            checks.numbers(name, getattr(self, name))
        self._balls()

    def _balls(self) -> tuple[FloatArray, FloatArray]:
        radius, level = (
            checks.float_array(name, np.asarray(value, dtype=np.float64) if np.size(value) == 0 else value, ndim=1)
            for name, value in (("radius", self.radius), ("confidence", self.confidence))
        )
        if len(radius) != len(level):
            raise ValueError(
                f"confidence has {len(level)} entries, expected one for each of {len(radius)} balls of radius."
            )
        for name, each, most in (("radius", radius, np.inf), ("confidence", level, 1.0)):
            wrong = np.diff(np.concatenate(([0.0], each, [most]))) < 0.0
            if wrong.any():
                at = min(int(np.argmax(wrong)), len(each) - 1)
                raise ValueError(f"{name}[{at}] is {each[at]:g}, expected increasing numbers in [0, {most:g}].")
        return radius, level

    def bind(self, mdp: MDP) -> Nature:
        if not mdp.n_rows:  # all states are terminal
            return Exact().bind(mdp)
        limits = []
        for name, value in (("mean_error", self.mean_error), ("deviation", self.deviation)):
            unknown = isinstance(value, float) and value == np.inf
            of_rows = np.full(mdp.n_rows, np.inf) if unknown else mdp.per_row(name, value)
            checks.row_range(name, of_rows, 0.0, np.inf, mdp.row_name)
            limits.append(np.minimum(of_rows, 1.0))  # the largest difference of two distributions
        radius, level = self._balls()
        rows = mdp.rows.without_zeros
        return MomentNature(rows, mdp.discount, limits[0], limits[1], np.append(radius, 2.0), np.append(level, 1.0))


class Solved(NamedTuple):
    """The solution of the linear program of all rows.

    Attributes:
      mean: `(E,)` the means of the worst distributions.
      bound: `(R,)` lower bounds on the values by weak duality, which depend only on the multipliers.
      sensitivity: `(E,)` derivatives of the values by the model's probabilities.
    """

    mean: FloatArray
    bound: FloatArray
    sensitivity: FloatArray


@dataclass(frozen=True, eq=False)
class MomentNature(PlainNature):
    """Nature that solves the moment problems of all rows as one linear program.

    Args:
      rows: the model's rows, without successors of probability zero.
      discount: the model's discount.
      mean_error, deviation: `(R,)` at most 1.
      radius, confidence: `(n,)` the balls; the last contains all distributions.
    """

    rows: Rows
    discount: float
    mean_error: FloatArray
    deviation: FloatArray
    radius: FloatArray
    confidence: FloatArray

    @property
    def accuracy(self) -> float:
        """Bounds the error; values not proven to this accuracy raise. A range is at most twice the largest value."""
        return 2.0 * ACCURACY + (self.rows.longest + 8) * ROUNDING

    @property
    def singleton(self) -> bool:
        return not (self.mean_error * self.deviation).any()

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, out: Buffer = None, memory: RowMemory = None
    ) -> FloatArray:
        out = np.empty(self.rows.n_rows) if out is None else out
        z = self.rows.successor_values(self.discount * v)
        out[:] = self.rows.row_sums(self._solve(z).mean * z) + self.rows.row_reward + self.discount * shift
        return out

    def worst_case(self, v: FloatArray, memory: RowMemory = None) -> WorstCase:
        """Computes the worst case; the kernel is the mean of the worst distribution."""
        z = self.rows.successor_values(self.discount * v)
        mean, _, sensitivity = self._solve(z)
        kernel = replace(self.rows, probability=mean)
        return WorstCase(self.rows.row_sums(mean * z) + self.rows.row_reward, kernel, sensitivity)

    def take(self, chosen: IntArray) -> MomentNature:
        of_rows = {name: getattr(self, name)[chosen] for name in ("mean_error", "deviation")}
        return replace(self, rows=self.rows.take(chosen), **of_rows)

    def excess(self, kernel: Rows) -> FloatArray:
        """`(R,)` the largest difference, over successors, of a kernel from a feasible mean close to it."""
        return self._nearest(kernel)[0]

    def evidence(self, kernel: Rows | None) -> RowEvidence:
        """Duality from below; from above the feasible means closest to the kernel, whatever the program's precision."""
        found = of_minimum(self, None)
        if kernel is None:
            return found
        apart, means = self._nearest(kernel)
        excess, outside = membership(self.rows, kernel, apart, np.full(len(apart), np.nan))
        if outside.any():
            return found._replace(excess=excess, outside=outside)
        nothing = np.zeros(len(apart))
        above = under_kernel(self.rows, self.discount, means, nothing, np.full(len(apart), np.nan))
        return found._replace(above=above, excess=excess, outside=outside)

    def _nearest(self, kernel: Rows) -> tuple[FloatArray, Rows]:
        """`(R,)` the distance of a kernel from feasible means, and these."""
        x, stray = on_entries(self.rows, kernel)
        usable = np.nan_to_num(x, nan=0.0, posinf=1.0, neginf=0.0)
        split = self.rows.entry_start[1:-1]
        means = np.concatenate(
            [block.nearest(q) for block, q in zip(self._blocks, np.split(usable, split), strict=True)]
        )
        apart = np.maximum.reduceat(np.abs(x - means), self.rows.entry_start[:-1]).astype(np.float64)
        near = replace(self.rows, probability=means.astype(np.float64))
        return np.where((stray > 0.0) | np.isnan(apart), np.inf, apart), near

    def dual_bound(self, v: FloatArray) -> FloatArray:
        return self._solve(self.rows.successor_values(self.discount * v)).bound + self.rows.row_reward

    @cached_property
    def _blocks(self) -> list[Block]:
        centres = np.split(self.rows.probability, self.rows.entry_start[1:-1])
        limits = zip(centres, self.mean_error, self.deviation, strict=True)
        return [Block(p, float(error), float(far), self.radius, self.confidence) for p, error, far in limits]

    @cached_property
    def _program(self) -> tuple[Any, FloatArray, Any, FloatArray]:
        from scipy.sparse import block_diag

        matrix = block_diag([block.matrix for block in self._blocks], format="csr")
        equal = block_diag([block.equal for block in self._blocks], format="csr")
        bound = np.concatenate([block.bound for block in self._blocks])
        return matrix, bound, equal, np.concatenate([block.right for block in self._blocks])

    def _solve(self, z: FloatArray) -> Solved:
        """Solves one program for all rows, with values scaled to [0, 1] in each."""
        rows, blocks = self.rows, self._blocks
        low = np.minimum.reduceat(z, rows.entry_start[:-1])
        span = np.maximum.reduceat(z, rows.entry_start[:-1]) - low
        scaled = (z - low[rows.entry_row]) / np.where(span > 0.0, span, 1.0)[rows.entry_row]
        parts = np.split(scaled, rows.entry_start[1:-1])
        cost = np.concatenate([block.cost(part) for block, part in zip(blocks, parts, strict=True)])
        matrix, bound, equal, right = self._program
        answer = minimise(cost, matrix, bound, equal, right)
        sizes = [(block.matrix.shape[1], len(block.bound), len(block.right)) for block in blocks]
        cuts = np.cumsum(sizes, axis=0)[:-1].T
        found = zip(
            blocks, parts, np.split(answer.x, cuts[0]), np.split(answer.ineqlin.marginals, cuts[1]),
            np.split(answer.eqlin.marginals, cuts[2]), strict=True,
        )  # fmt: skip
        each = [block.read(part, x, price, level) for block, part, x, price, level in found]
        mean, sensitivity = (np.concatenate([one[k] for one in each]) for k in (0, 2))
        proven = np.array([one.bound for one in each])
        gap = np.abs(rows.row_sums(mean * scaled) - proven)
        if not (gap <= ACCURACY).all():
            row = int(np.argmax(~(gap <= ACCURACY)))
            raise RuntimeError(f"The moment problem of row {row} was solved only to {gap[row]:.3g} of its range.")
        return Solved(mean, low + span * proven, sensitivity * span[rows.entry_row])
