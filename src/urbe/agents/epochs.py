"""Epochs that end when a pair's visits have doubled, with the counts and frequencies for plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit

from urbe.agents.base import Streams
from urbe.mdp.model import MDP
from urbe.posteriors.beliefs import OnlinePosterior
from urbe.types import IntArray


class Epochs:
    """Epochs of B replicates, each with the frequencies of successors at its beginning.

    An epoch ends when some pair was visited in it as often as before it, and at least once. Counts are the difference
    between a belief's concentrations and its prior, in which old visits may count less.

    Args:
      model: the pairs.
      streams: gives the number of replicates.

    Attributes:
      index: `(B,)` number of the current epoch, from 1.
      over: `(B,)` whether it has ended.
      alpha, total: `(B, 1, E)` and `(B, 1, R)`: `alpha / total` are the frequencies at its beginning; the prior's means
        for pairs that were not visited. Unobserved feasible successors keep a trace, so that balls may use them.
      visits: `(B, R)` the counts at its beginning.
    """

    def __init__(self, model: MDP, streams: Streams) -> None:
        n, rows = len(streams.replicates), model.rows
        self._entry_start = rows.entry_start
        self.index = np.zeros(n, dtype=np.int64)
        self.over = np.ones(n, dtype=np.bool_)
        self.alpha, self.total = np.zeros((n, 1, rows.n_entries)), np.zeros((n, 1, rows.n_rows))
        self.visits, self._since = np.zeros((n, rows.n_rows)), np.zeros((n, rows.n_rows))

    def begin(self, which: IntArray, belief: OnlinePosterior) -> None:
        """Begins a new epoch for the replicates `which`."""
        _frequencies(
            which, self._entry_start, belief.prior.concentration, belief.alpha, self.alpha, self.total, self.visits
        )
        self.index[which] += 1
        self._since[which] = 0.0
        self.over[which] = False

    def visit(self, replicate: IntArray, row: IntArray) -> None:
        """Counts one step."""
        self._since[replicate, row] += 1.0
        self.over[replicate] |= self._since[replicate, row] >= np.maximum(self.visits[replicate, row], 1.0)

    def state(self) -> dict[str, Any]:
        """Returns the state needed to resume."""
        return {name.lstrip("_"): getattr(self, name).copy() for name in _KEPT}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`."""
        for name in _KEPT:
            getattr(self, name)[:] = state[name.lstrip("_")]


TRACE = 1e-200

_KEPT = ("index", "over", "alpha", "total", "visits", "_since")


@njit(cache=True, nogil=True)
def _frequencies(which, entry_start, prior, belief, alpha, total, visits):
    for b in which:
        for row in range(len(entry_start) - 1):
            n, before = 0.0, 0.0
            for j in range(entry_start[row], entry_start[row + 1]):
                alpha[b, 0, j] = max(belief[b, 0, j] - prior[j], TRACE if prior[j] > 0.0 else 0.0)
                n += alpha[b, 0, j] if alpha[b, 0, j] > TRACE else 0.0
                before += prior[j]
            if n == 0.0:
                for j in range(entry_start[row], entry_start[row + 1]):
                    alpha[b, 0, j] = prior[j]
            visits[b, row], total[b, 0, row] = n, n if n > 0.0 else before
