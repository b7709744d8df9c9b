"""Locate a transition in a model: the row of its pair and the entry of its successor; compiled."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numba import njit

from urbe.agents.base import Steps
from urbe.mdp.model import MDP
from urbe.types import IntArray


class Locator:
    """Finds rows and entries; raises for transitions that the model does not list.

    Args:
      model: pairs and feasible successors.
    """

    def __init__(self, model: MDP) -> None:
        self._model = model
        self._arrays = (model.row_start, model.action, model.rows.entry_start, model.rows.successor)

    def rows(self, steps: Steps) -> IntArray:
        """`(K,)` rows, for any successors."""
        row, _, no_row, _ = self._find(steps)
        if no_row >= 0:
            self._refuse(steps, row, no_row)
        return row

    def __call__(self, steps: Steps) -> tuple[IntArray, IntArray]:
        """`(K,)` rows and `(K,)` entries."""
        row, entry, _, no_entry = self._find(steps)
        if no_entry >= 0:
            self._refuse(steps, row, no_entry)
        return row, entry

    def _find(self, steps: Steps) -> tuple[IntArray, IntArray, int, int]:
        """Finds rows, entries, and the first steps without a row and without an entry, -1 if there are none."""
        row, entry = np.empty((2, len(steps.state)), dtype=np.int64)
        no_row, no_entry = _locate(steps.state, steps.action, steps.next_state, *self._arrays, row, entry)
        return row, entry, no_row, no_entry

    def _refuse(self, steps: Steps, row: IntArray, at: int) -> NoReturn:
        state, action, successor = int(steps.state[at]), int(steps.action[at]), int(steps.next_state[at])
        if row[at] < 0:
            self._model.row_of(state, action)  # raises, naming the available ones
        start, end = self._model.rows.entry_start[row[at] : row[at] + 2]
        known = self._model.rows.successor[start:end].tolist()
        raise ValueError(
            f"state {state}, action {action} led to state {successor}, which the prior rules out: it lists the "
            f"successors {known}. List every successor that is possible (with MDP.from_dense(..., keep_zeros=True), "
            "all of them are)."
        )


@njit(cache=True, nogil=True)
def _locate(state, action, successor, row_start, row_action, entry_start, entry_successor, row, entry):
    """Fills `row` and `entry`, with -1 where there is none."""
    no_row, no_entry = -1, -1
    for k in range(len(state) - 1, -1, -1):
        row[k], entry[k] = -1, -1
        if 0 <= state[k] < len(row_start) - 1:
            first, last = row_start[state[k]], row_start[state[k] + 1]
            at = first + np.searchsorted(row_action[first:last], action[k])
            if at < last and row_action[at] == action[k]:
                row[k] = at
                first, last = entry_start[at], entry_start[at + 1]
                j = first + np.searchsorted(entry_successor[first:last], successor[k])
                if j < last and entry_successor[j] == successor[k]:
                    entry[k] = j
        no_row = k if row[k] < 0 else no_row
        no_entry = k if entry[k] < 0 else no_entry
    return no_row, no_entry
