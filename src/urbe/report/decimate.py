"""Long lines with fewer points that look the same."""

from __future__ import annotations

import numpy as np

from urbe.types import FloatArray, IntArray

MOST = 600
"""Points a drawn line has at most."""


def decimate(x: FloatArray, y: FloatArray, most: int = MOST) -> IntArray:
    """Indices of the points to draw: all when there are few, else those that make the outline.

    The range of x is cut into equal bins, of each the first, the last, the lowest and the highest point stay: the line
    enters, leaves and reaches where it did, and no peak is lost. For a logarithmic axis give log(x).

    Args:
      x: `(n,)` increasing.
      y: `(n,)` heights; NaN where the line is broken.
      most: how many points to keep, at least 4.

    >>> decimate(np.arange(8.0), np.array([0, 1, 0, 9, 0, -9, 0, 1.0]), most=4).tolist()
    [0, 3, 5, 7]
    """
    n = len(x)
    if n <= most:
        return np.arange(n)
    bins = most // 4
    width = (x[-1] - x[0]) / bins
    which = np.minimum((x - x[0]) / width, bins - 1).astype(np.int64)
    first = np.searchsorted(which, np.arange(bins))  # of an empty bin, that of the next
    last = np.append(first[1:], n) - 1
    lowest = np.minimum.reduceat(np.where(np.isnan(y), np.inf, y), first)
    highest = np.maximum.reduceat(np.where(np.isnan(y), -np.inf, y), first)
    length = last - first + 1
    kept = [first, last]
    for extreme in (lowest, highest):
        hits = np.flatnonzero(y == np.repeat(extreme, length))
        bin_of_hit = np.searchsorted(first, hits, side="right") - 1
        kept.append(hits[np.unique(bin_of_hit, return_index=True)[1]])
    return np.unique(np.concatenate(kept))
