"""Use different sets for different states and actions: U(s, a) = U_k(s, a), with k chosen row by row.

For example, rows that were measured can be exact, and rows that were guessed can have a ball.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from urbe import checks
from urbe.ambiguity.entries import joined_rows
from urbe.ambiguity.evidence import Extended, RowBound, RowEvidence
from urbe.ambiguity.moments import RowMoments
from urbe.ambiguity.nature import Nature, RowMemory, WorstCase, keep, recalled, width
from urbe.ambiguity.rectangular import RectangularSet, check_rectangular
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import Buffer, FloatArray, IntArray
from urbe.workers import SERIAL, Workers


@dataclass(frozen=True, eq=False)
class PerRow(RectangularSet):
    """U(s, a) = U_choice(s, a)(s, a).

    Args:
      sets: sets that choose each row independently.
      choice: the index into `sets` of each row: a number, `(R,)`, `(S, A)` or `{(s, a): number}`.

    >>> import numpy as np, urbe
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], discount=0.5)
    >>> urbe.PerRow((urbe.Exact(), urbe.L1Ball(0.4)), [[0], [1]]).bind(mdp).values(np.array([0.0, 2.0]))
    array([0.5, 1.3])
    """

    sets: Sequence[RectangularSet]
    choice: Any

    def __post_init__(self) -> None:
        checks.sequence("sets", self.sets, "a list of at least one set, such as (Exact(), L1Ball(0.5))")
        for k, each in enumerate(self.sets):
            check_rectangular(f"sets[{k}]", each)

    def bind(self, mdp: MDP) -> PerRowNature:
        choice = mdp.per_row("choice", self.choice)
        checks.row_range("choice", choice, 0.0, len(self.sets) - 1.0, mdp.row_name)
        wrong = choice != np.floor(choice)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"choice of {mdp.row_name(row)} is {choice[row]:g}, expected a whole number.")
        parts = []
        for k, each in enumerate(self.sets):
            rows = np.flatnonzero(choice == k)
            if len(rows):
                parts.append(RowPart(rows, each.bind(mdp).take(rows)))
        return PerRowNature(mdp.rows, mdp.discount, tuple(parts))

    def choices(self) -> RectangularSet:
        return PerRow(tuple(each.choices() for each in self.sets), self.choice)


class RowPart(NamedTuple):
    """Some rows, and nature restricted to them."""

    rows: IntArray
    nature: Nature


@dataclass(frozen=True, eq=False)
class PerRowNature:
    """A nature made of parts that solve different rows.

    Args:
      model: the model's rows.
      discount: the model's discount.
      parts: together they contain every row once.
    """

    model: Rows
    discount: float
    parts: tuple[RowPart, ...]

    @cached_property
    def rows(self) -> Rows:
        return self._joined([nature.rows for _, nature in self.parts])

    @property
    def accuracy(self) -> float:
        return max((nature.accuracy for _, nature in self.parts), default=0.0)

    @property
    def singleton(self) -> bool:
        return all(nature.singleton for _, nature in self.parts)

    def fresh(self) -> RowMemory:
        return np.zeros((self.model.n_rows, max((width(nature.fresh()) for _, nature in self.parts), default=0)))

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, out: Buffer = None, memory: RowMemory = None
    ) -> FloatArray:
        out = np.empty(self.model.n_rows) if out is None else out
        for rows, nature in self.parts:
            part = recalled(nature, memory, rows)
            out[rows] = nature.values(v, shift, workers, None, part)
            keep(memory, part, rows)
        return out

    def worst_case(self, v: FloatArray, memory: RowMemory = None) -> WorstCase:
        found = [nature.worst_case(v, recalled(nature, memory, rows)) for rows, nature in self.parts]
        sensitivity = np.empty(self.rows.n_entries)
        for (rows, _), part in zip(self.parts, found, strict=True):
            sensitivity[self.rows.entries_of(rows)] = part.sensitivity
        return WorstCase(
            self._spread([part.value for part in found]), self._joined([x.rows for x in found]), sensitivity
        )

    def moments(
        self, v: FloatArray, shift: float, u: FloatArray, value: FloatArray | None = None, memory: RowMemory = None
    ) -> RowMoments:
        known = None if memory is None else value  # values are useless without the memory of their sweep
        found = []
        for rows, nature in self.parts:
            part = recalled(nature, memory, rows)
            found.append(nature.moments(v, shift, u, None if known is None else known[rows], part))
            keep(memory, part, rows)
        return RowMoments(*(self._spread([each[k] for each in found]) for k in range(3)))

    def take(self, chosen: IntArray) -> PerRowNature:
        owner, place = np.empty(self.model.n_rows, dtype=np.int64), np.empty(self.model.n_rows, dtype=np.int64)
        for k, (rows, _) in enumerate(self.parts):
            owner[rows], place[rows] = k, np.arange(len(rows))
        parts = []
        for k, (_, nature) in enumerate(self.parts):
            at = np.flatnonzero(owner[chosen] == k)
            if len(at):
                parts.append(RowPart(at, nature.take(place[chosen[at]])))
        return PerRowNature(self.model.take(chosen), self.discount, tuple(parts))

    @property
    def ball_radius(self) -> FloatArray | None:
        radii = [nature.ball_radius for _, nature in self.parts]
        return None if any(radius is None for radius in radii) else self._spread(radii)

    def excess(self, kernel: Rows) -> FloatArray:
        return self._spread([nature.excess(kernel.take(rows)) for rows, nature in self.parts])

    def dual_bound(self, v: FloatArray) -> FloatArray:
        return self._spread([nature.dual_bound(v) for _, nature in self.parts])

    def evidence(self, kernel: Rows | None) -> RowEvidence:
        found = [nature.evidence(None if kernel is None else kernel.take(rows)) for rows, nature in self.parts]
        return RowEvidence(
            self._bound([part.above for part in found]),
            self._bound([part.below for part in found]),
            self._spread([part.excess for part in found]),
            self._spread([part.outside for part in found], dtype=np.bool_),
        )

    def _bound(self, parts: list[RowBound]) -> RowBound:
        def bound(v: FloatArray) -> Extended:
            return self._spread([part(v) for part in parts], dtype=np.longdouble)

        return bound

    def _spread(self, parts: Sequence[Any], dtype: Any = np.float64) -> np.ndarray[Any, Any]:
        """Writes the numbers of each part to its rows, `(R,)`."""
        out = np.empty(self.model.n_rows, dtype=dtype)
        for (rows, _), numbers in zip(self.parts, parts, strict=True):
            out[rows] = numbers
        return out

    def _joined(self, parts: list[Rows]) -> Rows:
        return joined_rows(self.model, [(rows, part) for (rows, _), part in zip(self.parts, parts, strict=True)])
