"""Rows side by side, for certificates: plain NumPy on `(k, n)` arrays in place of a loop over rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from urbe.ambiguity.widen import entry_keys
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray

BLOCK = 1 << 18
"""Numbers in an array that compares every successor of a row with every other."""


def row_blocks(rows: Rows, receivers: int = 0) -> Iterator[tuple[IntArray, IntArray]]:
    """Blocks of rows of one length n: `(k,)` the rows, and `(k, n)` their entries.

    Args:
      rows: each of them is in one block.
      receivers: for arrays `(k, n, receivers)`, where these are more than n.
    """
    for n in np.unique(rows.length):
        alike = np.flatnonzero(rows.length == n)
        step = max(BLOCK // (int(n) * max(int(n), receivers)), 1)
        for first in range(0, len(alike), step):
            some = alike[first : first + step]
            yield some, rows.entry_start[some][:, None] + np.arange(n)


def on_entries(rows: Rows, kernel: Rows) -> tuple[FloatArray, FloatArray]:
    """A kernel's probabilities `(E,)` on the entries of `rows`, and `(R,)` the sum of |q| on other successors."""
    keys, given = entry_keys(rows), entry_keys(kernel)
    at = np.minimum(np.searchsorted(keys, given), max(len(keys) - 1, 0))
    known = keys[at] == given if len(keys) else np.zeros(len(given), dtype=np.bool_)
    q = np.zeros(len(keys), dtype=kernel.probability.dtype)
    q[at[known]] = kernel.probability[known]
    stray = np.zeros(rows.n_rows)
    np.add.at(stray, kernel.entry_row[~known], np.abs(kernel.probability[~known]))
    return q, stray
