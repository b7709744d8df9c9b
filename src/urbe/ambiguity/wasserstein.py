"""Wasserstein balls: mass moves over a metric, at a cost proportional to distance.

    minimise  q . z   subject to  W(p, q) <= radius,      W(p, q) = min over plans of sum_ji x_ji d_ji,

where a plan x moves x_ji from successor j to state i. The dual

    max_{lam >= 0}  sum_j p_j min_i (z_i + lam d_ji) - lam radius

is concave and piecewise linear in lam; `urbe.ambiguity.budget_search` finds its maximum and two plans that attain it.
If every state may receive mass and rewards do not depend on the successor, the useful receivers from j, the lower
convex envelope of the points (d_ji, z_i), are the same for all rows and are computed once per sweep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.ambiguity import wasserstein_kernels as kernels
from urbe.ambiguity.budget_search import balanced
from urbe.ambiguity.dual_search import dual_by_bisection
from urbe.ambiguity.entries import on_entries, row_blocks, rows_of_keys
from urbe.ambiguity.moments import RowMoments, answers_with_itself
from urbe.ambiguity.nature import PlainNature, RowMemory, WorstCase, exponent, rescaled
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import require_all_rewards, values_under
from urbe.ambiguity.transport import transport_excess
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import Buffer, FloatArray, IntArray, Support
from urbe.workers import SERIAL, Workers


@dataclass(frozen=True, eq=False)
class WassersteinBall(RectangularSet):
    """U(s, a) = {q in simplex : W(pbar(s, a), q) <= radius(s, a)}, the 1-Wasserstein distance for `metric`.

    Args:
      radius: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, at least 0, in the units of `metric`.
      metric: `(S, S)` distances between states: finite, non-negative, symmetric, zero from a state to itself. The
        triangle inequality is not required.
      support: states that may receive mass: the row's own successors ("nominal"), or every state ("all").

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.wasserstein import WassersteinBall
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> WassersteinBall(0.2, metric=[[0.0, 1.0], [1.0, 0.0]], support="all").bind(mdp).values(np.array([0.0, 2.0]))
    array([0.3, 1.8])
    """

    radius: Any
    metric: ArrayLike
    support: Support = "nominal"

    def __post_init__(self) -> None:
        checks.numbers("radius", self.radius)
        checks.numbers("metric", self.metric)

    def bind(self, mdp: MDP) -> WassersteinNature:
        checks.one_of("support", self.support, ("nominal", "all"))
        radius = mdp.per_row("radius", self.radius)
        checks.row_range("radius", radius, 0.0, np.inf, mdp.row_name)
        metric, radius = balanced("metric", _metric(self.metric, mdp.n_states), radius)
        rows = mdp.rows.without_zeros
        everywhere = self.support == "all"
        if everywhere and mdp.rows.rewards_successors:
            rows = mdp.rows
            require_all_rewards(mdp)
        shared = (everywhere or rows.is_dense) and not rows.rewards_successors
        order = np.argsort(metric, axis=1, kind="stable").astype(np.int32) if shared else None
        return WassersteinNature(rows, mdp.discount, radius, metric, order)


@dataclass(frozen=True, eq=False)
class WassersteinNature(PlainNature):
    """Nature that transports mass.

    Args:
      rows: the rows that send mass and, without `order`, also receive it.
      discount: the model's discount.
      radius: `(R,)`.
      metric: `(S, S)`.
      order: `(S, S)` the states by distance from each state, if every state may receive mass; else None.
    """

    rows: Rows
    discount: float
    radius: FloatArray
    metric: FloatArray
    order: IntArray | None

    @property
    def accuracy(self) -> float:
        """As for `WeightedL1Ball`, sums of n terms in values, costs and shares of two plans."""
        return 9.0 * (self.rows.longest + 8) * 2.0**-53

    @property
    def singleton(self) -> bool:
        return not self.radius.any() and answers_with_itself(self)

    def fresh(self) -> FloatArray | None:
        return np.zeros(self.rows.n_rows)

    @cached_property
    def _donors(self) -> IntArray:
        return np.unique(self.rows.successor)

    @property
    def _loops(self) -> kernels.TransportLoops:
        return kernels.transport_loops(self.order is not None)

    def _problem(self, w: FloatArray) -> kernels.TransportProblem:
        ways = self.metric if self.order is None else kernels.envelopes(self._donors, self.order, self.metric, w)
        rows = self.rows
        return kernels.TransportProblem(rows.entry_start, rows.successor, rows.probability, self.radius, w, ways)

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, out: Buffer = None, memory: RowMemory = None
    ) -> FloatArray:
        rows, w = self.rows, self.discount * v
        out = np.empty(rows.n_rows) if out is None else out
        k = exponent(w, rows.entry_reward)
        if k:
            small = rescaled(self, -k).values(np.ldexp(w, -k), 0.0, workers, None, memory)
            out[:] = np.ldexp(small, k) + rows.row_reward + self.discount * shift
            return out
        hint = np.zeros(rows.n_rows) if memory is None else memory
        problem = self._problem(w)

        def task(first: int, last: int) -> None:
            self._loops.sweep(first, last, problem, rows.entry_reward, hint, np.empty((2, rows.longest)), out)

        workers.run(rows.entry_start, task)
        out += rows.row_reward
        out += self.discount * shift
        return out

    def worst_case(self, v: FloatArray, memory: RowMemory = None) -> WorstCase:
        rows, w = self.rows, self.discount * v
        k = exponent(w, rows.entry_reward)
        if k:
            _, kernel, m = rescaled(self, -k).worst_case(np.ldexp(w, -k))
            kernel = replace(kernel, reward=rows.reward)
            return WorstCase(values_under(kernel, w), kernel, np.ldexp(m, k))
        m, (costly, cheap) = np.empty(rows.n_entries), np.empty((2, rows.n_entries), dtype=np.int64)
        plans = kernels.TransportPlans(costly, cheap, np.empty(rows.n_rows))
        self._loops.plans(self._problem(w), rows.entry_reward, np.empty((2, rows.longest)), plans, m)
        p = rows.probability
        # mass that does not move stays exact, bit for bit
        first = np.where(plans.costly == plans.cheap, p, plans.share[rows.entry_row] * p)
        moved, receiver = np.concatenate([first, p - first]), np.concatenate([plans.costly, plans.cheap])
        row = np.tile(rows.entry_row, 2)
        if self.order is None:  # receivers are entries
            q = _sums(rows.entry_start[row] + receiver, moved, rows.n_entries)
            kernel = Rows(rows.n_states, rows.entry_start, rows.successor, q, rows.reward)
        else:  # receivers are states
            kernel = _collect(rows, row, receiver, moved)
        return WorstCase(values_under(kernel, w), kernel, m)

    def moments(
        self, v: FloatArray, shift: float, u: FloatArray, value: FloatArray | None = None, memory: RowMemory = None
    ) -> RowMoments:
        rows, w = self.rows, self.discount * v
        value, scatter, carried = (np.empty(rows.n_rows) for _ in range(3))
        hint = np.zeros(rows.n_rows) if memory is None else memory
        work, problem = np.empty((2, rows.longest)), self._problem(w)
        self._loops.moments(problem, rows.entry_reward, u, hint, work, value, scatter, carried)
        value += rows.row_reward
        value += self.discount * shift
        return RowMoments(value, scatter, carried)

    def take(self, chosen: IntArray) -> WassersteinNature:
        return replace(self, rows=self.rows.take(chosen), radius=self.radius[chosen])

    @property
    def ball_radius(self) -> FloatArray | None:
        return self.radius / self._unit()

    def excess(self, kernel: Rows) -> FloatArray:
        """Computes W(p, q) - radius by linear programs."""
        rows = self.rows
        outside = (on_entries(rows, kernel)[1] > 0.0) & (self.order is None)
        mass = kernel.row_sums(kernel.probability)
        least = np.minimum.reduceat(kernel.probability, kernel.entry_start[:-1]) if rows.n_rows else mass
        simplex = np.where(outside, np.inf, np.maximum(np.maximum(np.abs(mass - 1.0) - 1e-12, -least), 0.0))
        excess = transport_excess(rows, kernel, self.metric, self.radius, skip=mass < 0.5)
        return np.maximum(excess / self._unit(), simplex)

    def _unit(self) -> FloatArray:
        """`(R,)` the longest distance within each row, or from it to any state."""
        out = np.ones(self.rows.n_rows)
        for some, _, cost, _ in self._ways():
            out[some] = cost.max(axis=(1, 2))
        return np.where(out > 0.0, out, 1.0)

    def _ways(self) -> Iterator[tuple[IntArray, IntArray, FloatArray, IntArray]]:
        """Yields blocks of k rows: their indices, donors `(k, n)`, `(k, n, m)` distances to receivers, and entries."""
        anywhere = self.order is not None
        for some, entries in row_blocks(self.rows, self.rows.n_states if anywhere else 0):
            donors = self.rows.successor[entries]
            yield (
                some,
                donors,
                self.metric[donors] if anywhere else self.metric[donors[:, :, None], donors[:, None]],
                entries,
            )

    def dual_bound(self, v: FloatArray) -> FloatArray:
        rows, w = self.rows, self.discount * v
        k = exponent(w, rows.entry_reward)
        if k:
            return np.ldexp(rescaled(self, -k).dual_bound(np.ldexp(w, -k)), k) + rows.row_reward
        out = rows.row_reward.astype(np.longdouble)
        for some, donors, cost, entries in self._ways():
            z = np.broadcast_to(w, (len(some), rows.n_states))
            if self.order is None:
                z = w[donors] if rows.entry_reward is None else w[donors] + rows.entry_reward[entries]
            p = rows.probability[entries].astype(np.longdouble)
            out[some] += dual_by_bisection(p, z.astype(np.longdouble), cost, self.radius[some].astype(np.longdouble))
        return out.astype(np.float64)


def _metric(value: ArrayLike, n_states: int) -> FloatArray:
    metric = checks.float_array("metric", value)
    if metric.shape != (n_states, n_states):
        raise ValueError(
            f"metric has shape {metric.shape}, expected one distance per pair of states {(n_states,) * 2}."
        )
    checks.non_negative("metric", metric)
    loops = np.flatnonzero(np.diag(metric))
    if len(loops):
        s = int(loops[0])
        raise ValueError(f"metric[{s}, {s}] is {metric[s, s]:g}, expected 0, the distance of a state from itself.")
    skew = np.argwhere(metric != metric.T)
    if len(skew):
        i, j = skew[0]
        raise ValueError(
            f"metric[{i}, {j}] is {metric[i, j]:.17g} but metric[{j}, {i}] is {metric[j, i]:.17g}, expected equal "
            "numbers; if they differ by rounding, average the two directions, (metric + metric.T) / 2."
        )
    return metric


def _sums(group: IntArray, amount: FloatArray, n_groups: int) -> FloatArray:
    return np.bincount(group, amount, minlength=n_groups).astype(np.float64, copy=False)


def _collect(rows: Rows, row: IntArray, state: IntArray, mass: FloatArray) -> Rows:
    """Makes rows with `mass[k]` added to `state[k]` of `row[k]`, without successors of mass zero."""
    positive = mass > 0.0
    key, at = np.unique(row[positive].astype(np.int64) * rows.n_states + state[positive], return_inverse=True)
    return rows_of_keys(rows, key, _sums(at, mass[positive], len(key)))
