"""Nature on a labelled model: the worst of several options in each row, each with its own set and next label."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from urbe.ambiguity.entries import joined_rows, on_entries
from urbe.ambiguity.evidence import Extended, RowBound, RowEvidence, from_below, unproven
from urbe.ambiguity.nature import Nature, PlainNature, RowMemory, WorstCase, keep, recalled, width
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers


class Branch(NamedTuple):
    """An option on some rows, all of which lead to the same label.

    Attributes:
      at: the rows, increasing if they are all rows of a model.
      nature: nature on these rows, over the states without labels.
      label: the next label.
      option: its index among the options of a row, for the memory of sweeps.
    """

    at: IntArray
    nature: Nature
    label: int
    option: int


@dataclass(frozen=True, eq=False)
class LabelNature(PlainNature):
    """Nature that picks an option in each row, then a kernel of its set.

    Args:
      rows: the model's rows, over labelled states.
      discount: the model's discount.
      n_states: number of states without labels.
      branches: in the order of the options; together they contain every row at least once.
    """

    rows: Rows
    discount: float
    n_states: int
    branches: tuple[Branch, ...]

    @property
    def accuracy(self) -> float:
        return max((branch.nature.accuracy for branch in self.branches), default=0.0)

    @property
    def singleton(self) -> bool:
        once = sum(len(branch.at) for branch in self.branches) == self.rows.n_rows
        return once and all(branch.nature.singleton for branch in self.branches)

    @cached_property
    def _columns(self) -> list[int]:
        """Where the memory of each option begins, in every row, and the number of columns."""
        widest = [0] * (1 + max((branch.option for branch in self.branches), default=0))
        for branch in self.branches:
            widest[branch.option] = max(widest[branch.option], width(branch.nature.fresh()))
        return [0, *itertools.accumulate(widest)]

    def fresh(self) -> RowMemory:
        return np.zeros((self.rows.n_rows, self._columns[-1]))

    def values(
        self,
        v: FloatArray,
        shift: float = 0.0,
        workers: Workers = SERIAL,
        out: FloatArray | None = None,
        memory: RowMemory = None,
    ) -> FloatArray:
        out = np.empty(self.rows.n_rows) if out is None else out
        out[:] = np.inf
        for branch in self.branches:
            known = self._recalled(branch, memory)
            found = branch.nature.values(self._under(v, branch), shift, workers, None, known)
            out[branch.at] = np.minimum(out[branch.at], found)
            keep(memory, known, branch.at, self._columns[branch.option])
        return out

    def worst_case(self, v: FloatArray, memory: RowMemory = None) -> WorstCase:
        """Chooses the first option with the lowest value; rows of the answer lead to its label."""
        best = np.full(self.rows.n_rows, np.inf)
        owner = np.zeros(self.rows.n_rows, dtype=np.int64)
        found = []
        for k, branch in enumerate(self.branches):
            found.append(branch.nature.worst_case(self._under(v, branch), self._recalled(branch, memory)))
            lower = found[-1].value < best[branch.at]
            best[branch.at[lower]] = found[-1].value[lower]
            owner[branch.at[lower]] = k
        parts, sensitivity = [], np.zeros(self.rows.n_entries)
        for k, (branch, worst) in enumerate(zip(self.branches, found, strict=True)):
            own = np.flatnonzero(owner[branch.at] == k)
            if not len(own):
                continue
            parts.append((branch.at[own], self._lifted(worst.rows.take(own), branch.label)))
            m = replace(branch.nature.rows, probability=worst.sensitivity).take(own)
            self._place(branch.at[own], m, sensitivity)
        return WorstCase(best, joined_rows(self.rows, parts), sensitivity)

    def take(self, chosen: IntArray) -> LabelNature:
        branches = []
        for branch in self.branches:
            place = np.full(self.rows.n_rows, -1)
            place[branch.at] = np.arange(len(branch.at))
            inside = place[chosen] >= 0
            if inside.any():
                part = branch.nature.take(place[chosen[inside]])
                branches.append(branch._replace(at=np.flatnonzero(inside), nature=part))
        return replace(self, rows=self.rows.take(chosen), branches=tuple(branches))

    def excess(self, kernel: Rows) -> FloatArray:
        """`(R,)` how far a kernel leaves the set of the closest option; infinite if a row leads to several labels."""
        excess = np.full(self.rows.n_rows, np.inf)
        for branch, own in self._candidates(kernel):
            far = branch.nature.take(own).excess(self._below(branch, kernel, own))
            excess[branch.at[own]] = np.minimum(excess[branch.at[own]], far)
        return excess

    def dual_bound(self, v: FloatArray) -> FloatArray:
        return np.asarray(self._least()(v), dtype=np.float64)

    def evidence(self, kernel: Rows | None) -> RowEvidence:
        """Bounds Q; a row of a kernel is evidence for every option that holds it, and bounds the worst from above."""
        n_rows = self.rows.n_rows
        below = self._least(kernel is not None)
        if kernel is None:
            nothing = np.full(n_rows, -np.inf)
            return RowEvidence(unproven(n_rows, 1.0), below, nothing, np.zeros(n_rows, dtype=np.bool_))
        excess, outside = np.full(n_rows, np.inf), np.ones(n_rows, dtype=np.bool_)
        proven: list[tuple[Branch, IntArray, RowEvidence]] = []
        for branch, own in self._candidates(kernel):
            found = branch.nature.take(own).evidence(self._below(branch, kernel, own))
            excess[branch.at[own]] = np.minimum(excess[branch.at[own]], found.excess)
            if found.outside.all():
                continue
            if found.outside.any():
                own = own[~found.outside]
                found = branch.nature.take(own).evidence(self._below(branch, kernel, own))
            proven.append((branch, own, found))
            outside[branch.at[own]] = False
        above = unproven(n_rows, 1.0) if outside.any() else self._least_above(proven)
        return RowEvidence(above, below, excess, outside)

    def _candidates(self, kernel: Rows) -> Iterator[tuple[Branch, IntArray]]:
        """The branches, each with those of its rows that only lead to its label in a kernel."""
        used = kernel.probability != 0.0
        for branch in self.branches:
            inside = kernel.successor // self.n_states == branch.label
            stray = np.bincount(kernel.entry_row[used & ~inside], minlength=kernel.n_rows)[branch.at]
            own = np.flatnonzero(stray == 0)
            if len(own):
                yield branch, own

    def _least_above(self, proven: list[tuple[Branch, IntArray, RowEvidence]]) -> RowBound:
        def bound(v: FloatArray) -> Extended:
            out = np.full(self.rows.n_rows, np.inf, dtype=np.longdouble)
            for branch, own, evidence in proven:
                out[branch.at[own]] = np.minimum(out[branch.at[own]], evidence.above(self._under(v, branch)))
            return out

        return bound

    def _least(self, members: bool = True) -> RowBound:
        """The least of the lower bounds of all options."""
        parts = [from_below(branch.nature, members) for branch in self.branches]

        def bound(v: FloatArray) -> Extended:
            out = np.full(self.rows.n_rows, np.inf, dtype=np.longdouble)
            for branch, below in zip(self.branches, parts, strict=True):
                out[branch.at] = np.minimum(out[branch.at], below(self._under(v, branch)))
            return out

        return bound

    def _under(self, v: FloatArray, branch: Branch) -> FloatArray:
        """`(S,)` the values under the next label of a branch."""
        return v[branch.label * self.n_states : (branch.label + 1) * self.n_states]

    def _recalled(self, branch: Branch, memory: RowMemory) -> RowMemory:
        return recalled(branch.nature, memory, branch.at, self._columns[branch.option])

    def _lifted(self, rows: Rows, label: int) -> Rows:
        """Converts rows over states without labels to rows that lead to one label."""
        return replace(rows, n_states=self.rows.n_states, successor=rows.successor + label * self.n_states)

    def _below(self, branch: Branch, kernel: Rows, own: IntArray) -> Rows:
        """Returns the rows `own` of a branch in a kernel, which only lead to its label, over states without labels."""
        part = kernel.take(branch.at[own])
        part = part.select(part.successor // self.n_states == branch.label)
        return replace(part, n_states=self.n_states, successor=(part.successor % self.n_states).astype(np.int32))

    def _place(self, at: IntArray, m: Rows, out: FloatArray) -> None:
        """Writes numbers of a branch's entries to the model's entries with the same successors."""
        own = self.rows.take(at)
        bare = replace(own, n_states=self.n_states, successor=(own.successor % self.n_states).astype(np.int32))
        out[self.rows.entries_of(at)] = on_entries(bare, m)[0]
