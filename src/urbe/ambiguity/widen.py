"""Rows that list more successors than the model's own."""

from __future__ import annotations

import numpy as np

from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows, index_type
from urbe.types import IntArray


def entry_keys(rows: Rows) -> IntArray:
    """`(E,)` row * S + successor: increasing, one number per listed successor."""
    keys: IntArray = rows.entry_row.astype(np.int64) * rows.n_states + rows.successor
    return keys


def widened_rows(mdp: MDP, keys: IntArray) -> Rows:
    """The rows of `mdp`, listing also the successors with `keys` (see `entry_keys`), at probability zero.

    Raises:
      ValueError: when a new successor has no reward because the model's rewards depend on the successor.
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
            "here depend on the successor, and this one has none: list it (MDP.from_dense(..., keep_zeros=True)), "
            "or use rewards r(s, a)."
        )
    union = np.union1d(own, new)
    probability = np.zeros(len(union))
    probability[np.searchsorted(union, own)] = rows.probability
    entry_start = np.zeros(rows.n_rows + 1, dtype=index_type(len(union)))
    np.cumsum(np.bincount(union // rows.n_states, minlength=rows.n_rows), out=entry_start[1:])
    return Rows(rows.n_states, entry_start, (union % rows.n_states).astype(np.int32), probability, rows.reward)
