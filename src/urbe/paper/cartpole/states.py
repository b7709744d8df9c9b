"""Count the visited states of a cart and its pole on cells of (x, theta), and measure their span.

    span = area of the fewest cells that hold 95 % of the states

of a fixed grid, in metres times degrees: it does not grow with rare excursions or with a shift, and does not depend on
the shape of the visited region.
"""

from __future__ import annotations

import numpy as np

from urbe.types import FloatArray, IntArray

TRACK, LEAN = 2.4, 12.0
"""Ends of the plane: metres and degrees at which an episode ends."""

FINE = 96
"""Cells along each axis for the span: 0.05 m by a quarter of a degree."""

DRAWN = 48
"""Cells along each axis for pictures."""

SHARE = 0.95


def cell_of(values: FloatArray, end: float, cells: int) -> IntArray:
    """`(n,)` the cell along an axis from -end to end in which each value is; values outside count at the edge."""
    place = (np.asarray(values, np.float64) / end + 1.0) * 0.5 * cells
    return np.clip(place.astype(np.int64), 0, cells - 1)


def count_states(x: FloatArray, degrees: FloatArray, action: IntArray, cells: int) -> IntArray:
    """`(2, cells, cells)` visits with each action, by cell of x and of theta; values outside count at the edge.

    Args:
      x: `(n,)` positions in metres.
      degrees: `(n,)` angles.
      action: `(n,)` 0 or 1.
      cells: along each axis.
    """
    i, j = cell_of(x, TRACK, cells), cell_of(degrees, LEAN, cells)
    flat = np.bincount((action * cells + i) * cells + j, minlength=2 * cells * cells)
    return flat.reshape(2, cells, cells)


def span(counts: IntArray, share: float = SHARE) -> float:
    """Area of the fewest cells that hold a share of the visits, in metres times degrees.

    Args:
      counts: `(cells, cells)` visits, not all zero.
      share: within (0, 1].

    >>> counts = np.zeros((4, 4), np.int64)
    >>> counts[0, 0], counts[1, 1], counts[2, 2] = 90, 6, 4
    >>> span(counts) / span(np.eye(4, dtype=np.int64) * [9, 0, 0, 0])  # 90 + 6 of 100 are enough
    2.0
    """
    visits = np.sort(counts.ravel())[::-1]
    needed = np.ceil(share * visits.sum() - 1e-9)
    n = int(np.searchsorted(np.cumsum(visits), needed)) + 1
    return float(n * (2.0 * TRACK / counts.shape[0]) * (2.0 * LEAN / counts.shape[1]))


def middles(cells: int, end: float) -> FloatArray:
    """Middles of the cells along an axis."""
    edges = np.linspace(-end, end, cells + 1)
    return 0.5 * (edges[1:] + edges[:-1])
