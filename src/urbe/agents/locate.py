"""Where a transition stands in a model: the row of its pair and the entry of its successor; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from urbe.agents.base import Steps
from urbe.mdp.model import MDP
from urbe.types import IntArray


class Locator:
    """Finds rows and entries; what the model does not list is an error that says so.

    Args:
      model: pairs and feasible successors.
    """

    def __init__(self, model: MDP) -> None:
        self._model = model

    def __call__(self, steps: Steps) -> tuple[IntArray, IntArray]:
        """`(K,)` rows and `(K,)` entries."""
        model, k = self._model, len(steps.state)
        row, entry = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
        _locate(
            steps.state, steps.action, steps.next_state, model.row_start, model.action, model.rows.entry_start,
            model.rows.successor, row, entry,
        )  # fmt: skip
        if k and entry.min() < 0:
            self._refuse(steps, row, int(np.argmin(entry)))
        return row, entry

    def _refuse(self, steps: Steps, row: IntArray, at: int) -> None:
        state, action, successor = int(steps.state[at]), int(steps.action[at]), int(steps.next_state[at])
        if row[at] < 0:
            self._model.row_of(state, action)
        start, end = self._model.rows.entry_start[row[at] : row[at] + 2]
        known = self._model.rows.successor[start:end].tolist()
        raise ValueError(
            f"state {state}, action {action} led to state {successor}, which the prior rules out: it lists the "
            f"successors {known}. List every successor that is possible (with MDP.from_dense(..., keep_zeros=True), "
            "all of them are)."
        )


@njit(cache=True, nogil=True)
def _locate(state, action, successor, row_start, row_action, entry_start, entry_successor, row, entry):  # type: ignore[no-untyped-def]
    for k in range(len(state)):
        first, last = row_start[state[k]], row_start[state[k] + 1]
        at = first + np.searchsorted(row_action[first:last], action[k])
        if at == last or row_action[at] != action[k]:
            row[k], entry[k] = -1, -1
            continue
        row[k] = at
        first, last = entry_start[at], entry_start[at + 1]
        j = first + np.searchsorted(entry_successor[first:last], successor[k])
        entry[k] = j if j < last and entry_successor[j] == successor[k] else -1
