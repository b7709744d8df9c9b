"""Nature while options run: each row mixes nature's answers to the actions of an option, at values of that option.

z_o  = (1 - end_o) v(., o) + end_o v              the value of a successor while option o runs
Q(k) = r(k) + gamma sum_i weight_i min_{p in U(i)} p . z_o          over the base rows i of row k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from urbe.ambiguity.evidence import (
    LARGEST_EXCESS,
    Extended,
    RowBound,
    RowEvidence,
    attained,
    expectation,
    from_above,
    from_below,
    largest_value,
    unproven,
)
from urbe.ambiguity.moments import RowMoments
from urbe.ambiguity.nature import Nature, WorstCase
from urbe.ambiguity.operator import ROUNDING
from urbe.mdp.rows import Rows, index_type
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers

PROBES = 4
"""Directions in which rows that mix several actions are compared with the sets."""


class Running(NamedTuple):
    """An option on some rows.

    Attributes:
      at: the rows.
      nature: on the base rows they use, each once, without rewards.
      reach: the nature that minimises over the same kernels without discounting; it tells what the sets contain.
      pick: which of these, for the rows one after another.
      weight: the probability of each.
      first: where those of a row begin.
      option: its number.
      ends: `(S,)` probabilities of ending on arrival.
    """

    at: IntArray
    nature: Nature
    reach: Nature
    pick: IntArray
    weight: FloatArray
    first: IntArray
    option: int
    ends: FloatArray


@dataclass(frozen=True, eq=False)
class OptionNature:
    """Nature on a model with options.

    Args:
      rows: of the model with options.
      discount: the model's.
      n_states: number of states without options.
      parts: one for each option; together they have every row once.
    """

    rows: Rows
    discount: float
    n_states: int
    parts: tuple[Running, ...]

    @property
    def accuracy(self) -> float:
        return max((p.nature.accuracy for p in self.parts), default=0.0) + (2 * self._most_actions + 8) * ROUNDING

    @property
    def _most_actions(self) -> int:
        """The largest number of actions that a row mixes."""
        return max((int(np.diff(np.append(p.first, len(p.pick))).max(initial=1)) for p in self.parts), default=1)

    @property
    def singleton(self) -> bool:
        return all(p.nature.singleton for p in self.parts)

    def fresh(self) -> FloatArray | None:
        return None

    def values(
        self,
        v: FloatArray,
        shift: float = 0.0,
        workers: Workers = SERIAL,
        out: FloatArray | None = None,
        memory: FloatArray | None = None,
    ) -> FloatArray:
        out = np.empty(self.rows.n_rows) if out is None else out
        for p in self.parts:
            out[p.at] = _mixed(p, p.nature.values(self._ahead(p, v), 0.0, workers))
        out += self.discount * shift + self.rows.reward
        return out

    def worst_case(self, v: FloatArray, memory: FloatArray | None = None) -> WorstCase:
        """Nothing moves with the model's own rows, which are mixtures: the sensitivity is zero."""
        value, lifted = np.empty(self.rows.n_rows), []
        for p in self.parts:
            found = p.nature.worst_case(self._ahead(p, v))
            value[p.at] = _mixed(p, found.value)
            lifted.append((p, p.option, found.rows.take(p.pick)))
        rows = lifted_rows(self.n_states, self.rows.n_states, self.rows.reward, lifted)
        return WorstCase(value + self.rows.reward, rows, np.zeros(self.rows.n_entries))

    def moments(
        self,
        v: FloatArray,
        shift: float,
        u: FloatArray,
        value: FloatArray | None = None,
        memory: FloatArray | None = None,
    ) -> RowMoments:
        """Refused: rows of options share the rows of the model, so that their posteriors are not independent."""
        raise ValueError(
            "The posterior variance of values under options is not available: options share the rows of the model, and "
            "the variance equations take rows for independent. Use one_step(mdp), or the model without options."
        )

    def take(self, chosen: IntArray) -> OptionNature:
        parts = []
        for p in self.parts:
            place = np.full(self.rows.n_rows, -1)
            place[p.at] = np.arange(len(p.at))
            inside = np.flatnonzero(place[chosen] >= 0)
            if not len(inside):
                continue
            mine = place[chosen[inside]]
            length = np.diff(np.append(p.first, len(p.pick)))[mine]
            first = np.concatenate([[0], np.cumsum(length)[:-1]])
            at = np.repeat(p.first[mine] - first, length) + np.arange(int(length.sum()))
            used, pick = np.unique(p.pick[at], return_inverse=True)
            natures = p.nature.take(used), p.reach.take(used)
            parts.append(Running(inside, *natures, pick, p.weight[at], first, p.option, p.ends))
        return replace(self, rows=self.rows.take(chosen), parts=tuple(parts))

    @property
    def ball_radius(self) -> FloatArray | None:
        """Mixtures of sets have no centre."""
        return None

    def excess(self, kernel: Rows) -> FloatArray:
        """By how much a kernel leaves the set, relative to its radius where that is above one.

        Rows of one action are held to the set of that action; rows that mix several are compared with what nature could
        do at a few values, and other departures are not seen. Certificates do not rest on them but on members of the
        sets (`evidence`).
        """
        matrix, n = kernel.matrix(), self.n_states
        mass, out = kernel.row_sums(np.abs(kernel.probability)), np.full(self.rows.n_rows, np.inf)
        for p in self.parts:
            own = matrix[p.at]
            ended, both = own[:, :n], own[:, :n] + own[:, n * (1 + p.option) : n * (2 + p.option)]
            split = abs(ended - both.multiply(p.ends[None, :])).max(axis=1).toarray().ravel()
            elsewhere = np.abs(mass[p.at] - np.asarray(abs(both).sum(axis=1)).ravel())
            out[p.at] = np.maximum(split, elsewhere)
            single = np.flatnonzero(np.diff(np.append(p.first, len(p.pick))) == 1)
            if len(single):
                at, alone = p.at[single], p.reach.take(p.pick[p.first[single]])
                radius = np.nan if alone.ball_radius is None else alone.ball_radius
                far = alone.excess(_rows(both.tocsr()[single])) / np.fmax(1.0, radius)
                out[at] = np.maximum(out[at], far)
        mixing = self._mixing()
        total = np.abs(kernel.row_sums(kernel.probability) - 1.0) - 1e-12
        out = np.where(mixing, np.maximum(out, total), out)
        for j in range(1, PROBES + 1 if mixing.any() else 1):
            v = np.sin(j * np.arange(1.0, self.rows.n_states + 1.0))
            short = -(matrix @ v)
            for p in self.parts:
                short[p.at] += _mixed(p, p.reach.dual_bound(self._ahead(p, v)))
            out = np.where(mixing, np.maximum(out, short), out)
        return out

    def dual_bound(self, v: FloatArray) -> FloatArray:
        return np.asarray(self._bound([from_below(p.nature) for p in self.parts], -1.0)(v), dtype=np.float64)

    def evidence(self, kernel: Rows | None) -> RowEvidence:
        """Bounds Q by duality or by members of the sets, and by the kernel itself."""
        n_rows, known = self.rows.n_rows, kernel is not None
        below = self._bound([from_below(p.nature, known) for p in self.parts], -1.0)
        above = self._bound([from_above(p.nature, known) for p in self.parts], 1.0)
        if kernel is None:
            return RowEvidence(above, below, np.full(n_rows, -np.inf), np.zeros(n_rows, dtype=np.bool_))
        answer = expectation(self.rows, self.discount, kernel)
        above, below = attained(above, answer, 1.0), attained(below, answer, -1.0)
        excess = self.excess(kernel)
        outside = ~(excess <= LARGEST_EXCESS)
        return RowEvidence(unproven(n_rows, 1.0) if outside.any() else above, below, excess, outside)

    def _bound(self, bounds: list[RowBound], side: float) -> RowBound:
        """The parts' bounds, mixed, and widened by the rounding of the sum and of the values they are asked for."""
        eps = (self._most_actions + 8) * float(np.finfo(np.longdouble).eps)

        def mixed(v: FloatArray) -> Extended:
            asked = 8.0 * ROUNDING * self.discount * float(np.abs(v).max(initial=0.0))
            out = np.empty(self.rows.n_rows, dtype=np.longdouble)
            for p, bound in zip(self.parts, bounds, strict=True):
                out[p.at] = _mixed(p, bound(self._ahead(p, v)))
            return out + self.rows.reward + side * (asked + eps * largest_value(self.rows, self.discount, v))

        return mixed

    def _ahead(self, p: Running, v: FloatArray) -> FloatArray:
        """`(S,)` z_o."""
        n = self.n_states
        z: FloatArray = p.ends * v[:n] + (1.0 - p.ends) * v[n * (1 + p.option) : n * (2 + p.option)]
        return z

    def _mixing(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """`(R,)` whether a row mixes several actions."""
        out = np.zeros(self.rows.n_rows, dtype=np.bool_)
        for p in self.parts:
            out[p.at] = np.diff(np.append(p.first, len(p.pick))) > 1
        return out


def _mixed(p: Any, numbers: Any) -> Any:
    """`(len(at),)` sums of an option's base rows by their weights."""
    return np.add.reduceat(p.weight * numbers[p.pick], p.first) if len(p.at) else np.zeros(0)


def lifted_rows(n_states: int, n_wide: int, reward: FloatArray, parts: Sequence[tuple[Any, int, Rows]]) -> Rows:
    """Rows over states and running options.

    Args:
      n_states: without options.
      n_wide: with options.
      reward: `(R,)` of the rows.
      parts: of each option its rows (`at`, `weight`, `first`, `ends`), its number, and the base rows they mix, one
        after another as in `pick`.
    """
    from scipy.sparse import coo_array

    row, column, data = [], [], []
    for p, option, base in parts:
        length = np.diff(np.append(p.first, len(p.pick)))
        at = np.repeat(p.at, length)[base.entry_row]
        mass = np.repeat(p.weight, base.length) * base.probability
        ends = p.ends[base.successor]
        for share, shift in ((ends, 0), (1.0 - ends, n_states * (1 + option))):
            used = share > 0.0
            row.append(at[used])
            column.append(base.successor[used].astype(np.int64) + shift)
            data.append((share * mass)[used])
    entries = (np.concatenate(data), (np.concatenate(row), np.concatenate(column)))
    total = coo_array(entries, shape=(len(reward), n_wide)).tocsr()  # equal successors of several actions are added
    return replace(_rows(total), reward=reward)


def _rows(matrix: Any) -> Rows:
    """Rows of a sparse matrix, without rewards."""
    matrix.sort_indices()
    start = matrix.indptr.astype(index_type(matrix.nnz))
    return Rows(matrix.shape[1], start, matrix.indices.astype(np.int32), matrix.data, np.zeros(matrix.shape[0]))
