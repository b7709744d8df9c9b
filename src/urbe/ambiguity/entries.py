"""Work with the entries of rows: keys, rows with additional successors, and blocks of rows of equal length.

Certificates process rows of one length at a time, as `(k, n)` NumPy arrays, instead of looping over rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows, index_type
from urbe.types import FloatArray, IntArray

BLOCK = 1 << 18
"""Maximum size of an array that compares every successor of a row with every other."""


def entry_keys(rows: Rows) -> IntArray:
    """`(E,)` row * S + successor: increasing, one number per listed successor."""
    keys: IntArray = rows.entry_row.astype(np.int64) * rows.n_states + rows.successor
    return keys


def widened_rows(mdp: MDP, keys: IntArray) -> Rows:
    """Adds the successors with `keys` (see `entry_keys`) to the rows of `mdp`, with probability zero.

    Raises:
      ValueError: a new successor has no reward because the model's rewards depend on the successor.
    """
    rows = mdp.rows
    own = entry_keys(rows)
    new = np.setdiff1d(keys, own)
    if not len(new):
        return rows
    if rows.rewards_successors:
        row, state = divmod(int(new[0]), rows.n_states)
        raise ValueError(
            f"The set allows successor {state} in {mdp.row_name(row)}, which the model does not list there. Rewards "
            "depend on the successor, and this one has no reward: list it (MDP.from_dense(..., keep_zeros=True)), "
            "or use rewards r(s, a)."
        )
    union = np.union1d(own, new)
    probability = np.zeros(len(union))
    probability[np.searchsorted(union, own)] = rows.probability
    return rows_of_keys(rows, union, probability)


def rows_of_keys(like: Rows, keys: IntArray, probability: FloatArray) -> Rows:
    """Makes as many rows as `like` has, with its rewards of pairs, that list the successors with `keys`."""
    entry_start = np.zeros(like.n_rows + 1, dtype=index_type(len(keys)))
    np.cumsum(np.bincount(keys // like.n_states, minlength=like.n_rows), out=entry_start[1:])
    return Rows(like.n_states, entry_start, (keys % like.n_states).astype(np.int32), probability, like.reward)


def joined_rows(like: Rows, parts: Sequence[tuple[IntArray, Rows]]) -> Rows:
    """Joins the rows of several parts, with the order and the kind of rewards of `like`.

    Args:
      like: the same number of rows.
      parts: pairs of positions and the rows to put there; together the positions cover all rows once.
    """
    length = np.empty(like.n_rows, dtype=np.int64)
    for at, part in parts:
        length[at] = part.length
    entry_start = np.zeros(len(length) + 1, dtype=index_type(int(length.sum())))
    np.cumsum(length, out=entry_start[1:])
    successor = np.empty(entry_start[-1], dtype=like.successor.dtype)
    probability = np.empty(len(successor))
    reward = np.empty(len(successor) if like.rewards_successors else len(length))
    out = Rows(like.n_states, entry_start, successor, probability, reward)
    for at, part in parts:
        entries = out.entries_of(at)
        successor[entries], probability[entries] = part.successor, part.probability
        reward[entries if like.rewards_successors else at] = part.reward
    return out


def row_blocks(rows: Rows, receivers: int = 0) -> Iterator[tuple[IntArray, IntArray]]:
    """Yields blocks of rows of one length n: `(k,)` the rows, and `(k, n)` their entries.

    Args:
      rows: the rows; each is in one block.
      receivers: bounds the blocks for arrays `(k, n, receivers)`, if larger than n.
    """
    for n in np.unique(rows.length):
        alike = np.flatnonzero(rows.length == n)
        step = max(BLOCK // (int(n) * max(int(n), receivers)), 1)
        for first in range(0, len(alike), step):
            some = alike[first : first + step]
            yield some, rows.entry_start[some][:, None] + np.arange(n)


def on_entries(rows: Rows, kernel: Rows) -> tuple[FloatArray, FloatArray]:
    """Returns a kernel's probabilities `(E,)` on the entries of `rows`, and `(R,)` sums of |q| on other successors."""
    keys, given = entry_keys(rows), entry_keys(kernel)
    at = np.minimum(np.searchsorted(keys, given), max(len(keys) - 1, 0))
    known = keys[at] == given if len(keys) else np.zeros(len(given), dtype=np.bool_)
    q = np.zeros(len(keys), dtype=kernel.probability.dtype)
    q[at[known]] = kernel.probability[known]
    stray = np.zeros(rows.n_rows)
    np.add.at(stray, kernel.entry_row[~known], np.abs(kernel.probability[~known]))
    return q, stray
