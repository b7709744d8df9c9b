"""Nature that weights scenarios: the sweeps of `Scenarios`, `ValueAtRisk` and `ConditionalValueAtRisk`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from urbe.ambiguity.entries import on_entries
from urbe.ambiguity.evidence import RowEvidence, of_minimum, of_value
from urbe.ambiguity.nature import PlainNature, RowMemory, WorstCase
from urbe.ambiguity.sweep import FAST, named_after, when_called
from urbe.mdp.rows import Rows
from urbe.types import Buffer, FloatArray, IntArray
from urbe.workers import SERIAL, Workers

LEVEL_SLACK = 1e-12
"""Tolerance for sums of weights to reach a level; 8 x 0.1 is below 0.8 in floating point."""

BLOCK = 1 << 20
"""Probabilities that are processed together."""


class ScenarioRule(NamedTuple):
    """How nature weights the scenarios of a row.

    Attributes:
      mix: compiled loop `(first, last, start, successor, members, r, w, level, weight, value, mixture)` that writes
        the rows' `value`, and the `(R, K)` weights of the scenarios if `mixture` is not None.
      excess: `(q, members, level, weight) -> float`, the distance of q from nature's choices in a row.
      dual: `(x, level, weight) -> float`, a lower bound on the value from the scenarios' values x in extended
        precision, written independently of `mix`.
      attained: whether the value is the minimum over a set of distributions, as `excess` measures it.
    """

    mix: Callable[..., None]
    excess: Callable[[FloatArray, FloatArray, float, FloatArray], float]
    dual: Callable[[Any, float, FloatArray], float]
    attained: bool = True


@dataclass(frozen=True, eq=False)
class ScenarioNature(PlainNature):
    """Nature on scenarios.

    Args:
      rule: the weighting of the scenarios.
      rows: the model's rows, listing every successor of every scenario.
      discount: the model's discount.
      members: `(E, K)` the scenarios' probabilities on the entries of `rows`.
      level: `(R,)` in [0, 1].
      weight: `(K,)` the scenarios' own probabilities, positive.
    """

    rule: ScenarioRule
    rows: Rows
    discount: float
    members: FloatArray
    level: FloatArray
    weight: FloatArray

    @property
    def accuracy(self) -> float:
        """Bounds the error of a sum over successors, then over scenarios with weights that are sums."""
        return (self.rows.longest + 3 * len(self.weight) + 8) * 2.0**-53

    @property
    def singleton(self) -> bool:
        return False

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, out: Buffer = None, memory: RowMemory = None
    ) -> FloatArray:
        out = np.empty(self.rows.n_rows) if out is None else out
        workers.run(self.rows.entry_start, lambda first, last: self._mix(first, last, v, out, None))
        out += self.rows.row_reward
        out += self.discount * shift
        return out

    def worst_case(self, v: FloatArray, memory: RowMemory = None) -> WorstCase:
        """Computes the worst case; the sensitivity is zero, since scenarios do not depend on the model."""
        rows = self.rows
        value, mixture = np.empty(rows.n_rows), np.zeros((rows.n_rows, len(self.weight)))
        self._mix(0, rows.n_rows, v, value, mixture)
        q = np.empty(rows.n_entries)
        step = max(BLOCK // len(self.weight), 1)
        for first in range(0, rows.n_entries, step):  # blocks need less memory than the scenarios
            entries = slice(first, first + step)
            np.einsum("ek,ek->e", self.members[entries], mixture[rows.entry_row[entries]], out=q[entries])
        kernel = Rows(rows.n_states, rows.entry_start, rows.successor, q, rows.reward)
        return WorstCase(value + rows.row_reward, kernel, np.zeros(rows.n_entries))

    def take(self, chosen: IntArray) -> ScenarioNature:
        members = np.ascontiguousarray(self.members[self.rows.entries_of(chosen)])
        return replace(self, rows=self.rows.take(chosen), members=members, level=self.level[chosen])

    def excess(self, kernel: Rows) -> FloatArray:
        """`(R,)` L1 distances of the kernel from the closest scenario, or largest differences from a valid mixture."""
        q, stray = on_entries(self.rows, kernel)
        out = np.where(stray > 0.0, np.inf, 0.0)
        for row in range(self.rows.n_rows):
            a, b = self.rows.entry_start[row : row + 2]
            out[row] += self.rule.excess(q[a:b], self.members[a:b], float(self.level[row]), self.weight)
        return out

    def dual_bound(self, v: FloatArray) -> FloatArray:
        rows = self.rows
        z = rows.successor_values((self.discount * v).astype(np.longdouble))
        out = np.array(rows.row_reward, dtype=np.float64)
        for row in range(rows.n_rows):
            a, b = rows.entry_start[row : row + 2]
            out[row] += self.rule.dual(z[a:b] @ self.members[a:b], float(self.level[row]), self.weight)
        return out

    def evidence(self, kernel: Rows | None) -> RowEvidence:
        """Bounds Q; a quantile is not a minimum over a set, and its `dual_bound` is the quantile itself."""
        return of_minimum(self, kernel) if self.rule.attained else of_value(self, kernel)

    def _mix(self, first: int, last: int, v: FloatArray, value: FloatArray, mixture: FloatArray | None) -> None:
        self.rule.mix(
            first, last, self.rows.entry_start, self.rows.successor, self.members, self.rows.entry_reward,
            self.discount * v, self.level, self.weight, value, mixture,
        )  # fmt: skip


@when_called
def make_mix(weigh: Callable[..., Any]) -> Callable[..., None]:
    """Makes the loop over rows around `weigh(x, order, level, weight, y)`, which writes the mixture y of a row.

    `order` is a permutation of the scenarios that is passed from row to row; each row may permute it.
    """

    @njit(cache=True, nogil=True, fastmath=FAST)
    @named_after(weigh)
    def mix(first, last, start, successor, members, r, w, level, weight, value, mixture):
        n_scenarios = len(weight)
        x, y = np.empty(n_scenarios), np.empty(n_scenarios)
        order = np.arange(n_scenarios)
        for row in range(first, last):
            x[:] = 0.0
            for e in range(start[row], start[row + 1]):
                z = w[np.uint32(successor[e])]
                if r is not None:
                    z += r[e]
                for k in range(n_scenarios):
                    x[k] += members[e, k] * z
            weigh(x, order, level[row], weight, y)
            total = 0.0
            for k in range(n_scenarios):
                total += y[k] * x[k]
            value[row] = total
            if mixture is not None:
                mixture[row] = y

    return mix


@register_jitable
def _insertion_sort(x, order):
    """Sorts `order` by increasing x, ties by index. Rows often rank scenarios similarly: the last order is close."""
    for i in range(1, len(order)):
        k = order[i]
        j = i
        while j > 0 and (x[order[j - 1]] > x[k] or (x[order[j - 1]] == x[k] and order[j - 1] > k)):
            order[j] = order[j - 1]
            j -= 1
        order[j] = k


@register_jitable
def _select(x, order, level, weight):
    """Finds the scenario at which weights, summed by increasing x, ties by index, reach the level; permutes `order`.

    Quickselect: with thousands of scenarios, such as draws from a posterior, sorting would take most of the time.
    """
    first, last = 0, len(order) - 1
    below = 0.0  # weight of the scenarios before `first`
    while first < last:
        pivot = order[(first + last) // 2]
        i, j = first, last
        while i <= j:
            while x[order[i]] < x[pivot] or (x[order[i]] == x[pivot] and order[i] < pivot):
                i += 1
            while x[order[j]] > x[pivot] or (x[order[j]] == x[pivot] and order[j] > pivot):
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        reached = below
        for k in range(first, j + 1):
            reached += weight[order[k]]
        if reached >= level - LEVEL_SLACK and j >= first:
            last = j
            continue
        if i - j == 2:  # only the pivot is between the two parts
            reached += weight[pivot]
            if reached >= level - LEVEL_SLACK or i > last:
                return pivot
        below, first = reached, i
    return order[first]


@register_jitable
def _weigh_quantile(x, order, level, weight, y):
    y[:] = 0.0
    y[_select(x, order, level, weight)] = 1.0


@register_jitable
def _weigh_tail(x, order, level, weight, y):
    _insertion_sort(x, order)
    y[:] = 0.0
    left = 1.0
    for k in order:
        y[k] = left if weight[k] >= level * left else weight[k] / level
        left -= y[k]
        if left <= 0.0:
            break


def _distance_to_closest(q: FloatArray, members: FloatArray, level: float, weight: FloatArray) -> float:
    return float(np.abs(q[:, None] - members).sum(axis=0).min())


def _distance_to_mixtures(q: FloatArray, members: FloatArray, level: float, weight: FloatArray) -> float:
    """The largest entry of |members y - q| for a nearly optimal y with 0 <= y <= weight / level, sum y = 1.

    Non-negative least squares of  members y = q,  y + spare = min(weight / level, 1)  find y up to their tolerance,
    then y is made exactly feasible.
    """
    from scipy.optimize import nnls

    n_scenarios = len(weight)
    with np.errstate(divide="ignore", over="ignore"):
        most = np.minimum(weight / level, 1.0) if level > 0.0 else np.ones(n_scenarios)
    eye = np.eye(n_scenarios)
    system = np.block([[members, np.zeros_like(members)], [eye, eye]])
    found, _ = nnls(system, np.concatenate([q, most]))
    y = np.minimum(found[:n_scenarios], most).astype(np.longdouble)
    missing, room = 1.0 - y.sum(), most - y
    if missing > 0.0 and room.sum() > 0.0:
        y += room * min(missing / room.sum(), 1.0)
    return float(np.abs(members @ (y / y.sum()) - q).max())


def _lowest(x: Any, level: float, weight: FloatArray) -> float:
    return float(x.min())


def _quantile(x: Any, level: float, weight: FloatArray) -> float:
    """The lowest x_k at which the weights of all x <= x_k reach the level; without sorting."""
    reached = (x[:, None] <= x).T @ weight.astype(np.longdouble) >= level - LEVEL_SLACK
    return float(x[reached].min()) if reached.any() else float(x.max())


def _tail(x: Any, level: float, weight: FloatArray) -> float:
    """max over tau among the x_k of tau - E[max(tau - x, 0)] / level."""
    if level == 0.0:
        return float(x.min())
    short = np.maximum(x[:, None] - x, 0.0) @ weight.astype(np.longdouble)
    return float((x - short / np.longdouble(level)).max())


CLOSEST = ScenarioRule(make_mix(_weigh_tail), _distance_to_closest, _lowest)
QUANTILE = ScenarioRule(make_mix(_weigh_quantile), _distance_to_closest, _quantile, attained=False)
TAIL = ScenarioRule(CLOSEST.mix, _distance_to_mixtures, _tail)
