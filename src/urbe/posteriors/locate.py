"""Locate logged transitions in a model: the entry of each, or an error that names the first without one."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numba import njit

from urbe import checks
from urbe.mdp.model import MDP
from urbe.mdp.transitions import Transitions
from urbe.types import IntArray


def locate(model: MDP, transitions: Transitions) -> IntArray:
    """Returns `(N,)` the entry of `model` for each transition; -1 for loops of reward 0 at terminal states.

    Raises:
      ValueError: a transition is not in the model; the message says which, and what the model lists instead.
    """
    entry = np.empty(len(transitions), dtype=np.int64)
    rows = model.rows
    missing = _locate(
        transitions.state, transitions.action, transitions.next_state, transitions.reward, model.row_start,
        model.action, rows.entry_start, rows.successor, entry,
    )  # fmt: skip
    if missing >= 0:
        _refuse(model, transitions, missing)
    return entry


def _refuse(model: MDP, transitions: Transitions, at: int) -> NoReturn:
    state, action = int(transitions.state[at]), int(transitions.action[at])
    successor = int(transitions.next_state[at])
    labels = model.labels
    name, other = labels.state(state), labels.state(successor)
    step = f"Transition {at} leads from state {name} by action {labels.action(action)} to state {other}"
    n = model.n_states
    if max(state, successor) >= n:
        raise ValueError(f"{step}, expected states below {n}, the number the model has.")
    first, last = int(model.row_start[state]), int(model.row_start[state + 1])
    if first == last:
        raise ValueError(
            f"{step} with reward {transitions.reward[at]:g}, but state {name} is terminal; expected nothing but a "
            "self-loop of reward 0. Cut the log where the process ends, or give the state actions."
        )
    actions = model.action[first:last].tolist()
    if action not in actions:
        known = checks.listing(labels.action_texts(actions))
        raise ValueError(
            f"{step}, but state {name} has the actions {known}. Correct the log, or use a model that has the pair."
        )
    row = first + actions.index(action)
    listed = model.rows.successor[model.rows.entry_start[row] : model.rows.entry_start[row + 1]].tolist()
    known = checks.listing(labels.state_texts(listed))
    raise ValueError(
        f"{step}, but only the successors {known} are feasible there. Correct the log, or use a "
        "model that lists the successor too (probability 0 will do), or fit the whole log without a model."
    )


@njit(cache=True, nogil=True)
def _locate(state, action, successor, reward, row_start, row_action, entry_start, entry_successor, entry):
    """Fills `entry`; returns the first transition that is not in the model, or -1."""
    n_states = len(row_start) - 1
    for k in range(len(state)):
        if state[k] >= n_states:
            return k
        first, last = row_start[state[k]], row_start[state[k] + 1]
        if first == last and successor[k] == state[k] and reward[k] == 0.0:
            entry[k] = -1
            continue
        at = first + np.searchsorted(row_action[first:last], action[k])
        if at == last or row_action[at] != action[k]:
            return k
        first, last = entry_start[at], entry_start[at + 1]
        entry[k] = first + np.searchsorted(entry_successor[first:last], successor[k])
        if entry[k] == last or entry_successor[entry[k]] != successor[k]:
            return k
    return -1
