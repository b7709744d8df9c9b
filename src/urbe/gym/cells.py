"""Discretise continuous observations into equal cells of a box, and measure the error.

    cell(x) = floor((x - low) / width),    width = (high - low) / count    in each dimension, clipped to the box

A model on cells is accurate only if the dynamics hardly vary within a cell; `Cells.error_notes` states how far
observations are from the centres of their cells, and how many lie outside of the box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.types import FloatArray, IntArray

MOST_CELLS = 2**31 - 2


@dataclass(frozen=True, eq=False)
class Cells:
    """Equal cells of a box of D dimensions.

    Args:
      low, high: `(D,)` finite ends of the box, low < high; observations outside belong to the cell at the edge.
      count: number of cells in each dimension, a number or `(D,)`.
      names: names of the dimensions.

    >>> cells = Cells(low=[0.0, -1.0], high=[1.0, 1.0], count=[2, 4])
    >>> cells.number([[0.1, -0.9], [0.9, 0.9], [7.0, 0.0]])
    array([0, 7, 6])
    >>> cells.centre(np.array([0, 7]))
    array([[ 0.25, -0.75],
           [ 0.75,  0.75]])
    """

    low: FloatArray
    high: FloatArray
    count: IntArray | int
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        low, high = (checks.float_array(name, getattr(self, name), ndim=1) for name in ("low", "high"))
        if low.shape != high.shape or not len(low) or not (low < high).all():
            raise ValueError(f"low is {low} and high {high}, expected as many numbers in both, low below high.")
        given = checks.int_array("count", np.atleast_1d(self.count), 1, None, "number of cells")
        if len(given) not in (1, len(low)):
            raise ValueError(f"count has {len(given)} entries, expected a number or {len(low)}, one per dimension.")
        count = np.broadcast_to(given, low.shape)
        if float(np.prod(count.astype(float))) > MOST_CELLS:
            raise ValueError(f"count is {count.tolist()}, {np.prod(count.astype(float)):.3g} cells; expected fewer.")
        names = tuple(f"dimension {k}" for k in range(len(low))) if self.names is None else tuple(self.names)
        if len(names) != len(low):
            raise ValueError(f"names has {len(names)} entries, expected {len(low)}, one for each dimension.")
        for name, value in (("low", low), ("high", high), ("count", count), ("names", names)):
            object.__setattr__(self, name, value)

    @staticmethod
    def over(space: Any, count: ArrayLike, *, low: ArrayLike | None = None, high: ArrayLike | None = None) -> Cells:
        """Makes cells of a `Box`; if it has no finite ends, give `low` and `high`."""
        ends = (space.low if low is None else low, space.high if high is None else high)
        below, above = (np.asarray(end, dtype=np.float64).ravel() for end in ends)
        wide = ~(np.isfinite(below) & np.isfinite(above) & (np.abs(below) < 1e30) & (np.abs(above) < 1e30))
        if wide.any():
            at = int(np.argmax(wide))
            raise ValueError(
                f"Dimension {at} of the space goes from {below[at]:g} to {above[at]:g}, expected finite ends; give "
                "low= and high=, such as the smallest and largest values that matter."
            )
        return Cells(below, above, np.asarray(count))

    def number(self, observations: ArrayLike) -> IntArray:
        """`(N,)` the cell of each of `(N, D)` observations."""
        place = np.floor((self._rows(observations) - self.low) / self._width).astype(np.int64)
        place = np.clip(place, 0, np.asarray(self.count) - 1)
        cells: IntArray = np.ravel_multi_index(tuple(place.T), tuple(np.asarray(self.count).tolist()))
        return cells

    def centre(self, cells: IntArray) -> FloatArray:
        """`(N, D)` the centre of each cell."""
        place = np.stack(np.unravel_index(cells, tuple(np.asarray(self.count).tolist())), axis=1)
        centres: FloatArray = self.low + (place + 0.5) * self._width
        return centres

    def labels(self, cells: IntArray) -> tuple[str, ...]:
        """A text for each cell: its centre."""
        return tuple("(" + ", ".join(f"{x:.6g}" for x in centre) + ")" for centre in self.centre(cells).tolist())

    def error_notes(self, observations: ArrayLike) -> tuple[str, ...]:
        """States the error of the cells in each dimension, and how many observations lie outside of the box."""
        rows = self._rows(observations)
        off = np.abs(rows - self.centre(self.number(rows)))
        outside = int(np.count_nonzero(((rows < self.low) | (rows > self.high)).any(axis=1)))
        shape = " x ".join(map(str, np.asarray(self.count).tolist()))
        each = "; ".join(
            f"{name} {mean:.3g} on average, {most:.3g} at most"
            for name, mean, most in zip(self.names or (), off.mean(axis=0), off.max(axis=0), strict=True)
        )
        lost = f"{checks.some(outside, len(rows), 'observation', 'observations')} outside of the box."
        return (f"Observations fall into {shape} cells and differ from their centres by: {each}. {lost}",)

    @property
    def _width(self) -> FloatArray:
        width: FloatArray = (self.high - self.low) / np.asarray(self.count)
        return width

    def _rows(self, observations: ArrayLike) -> FloatArray:
        rows = checks.float_array("observations", observations)
        rows = rows.reshape(len(rows), -1)
        if rows.shape[1] != len(self.low):
            found = f"observations have {rows.shape[1]} numbers each"
            raise ValueError(f"{found}, expected {len(self.low)}, as many as the cells.")
        return rows
