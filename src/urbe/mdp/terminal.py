"""The states where the process ends: their ids, and what a model may say of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray, IntArray


def terminal_ids(terminal: ArrayLike, n_states: int) -> IntArray:
    """Increasing ids of the states where the process ends, from ids or `(S,)` booleans."""
    ids = np.asarray(terminal)
    if ids.dtype == bool:
        return np.flatnonzero(checks.mask("terminal", ids, (n_states,)))
    return np.unique(checks.int_array("terminal", ids if ids.size else np.zeros(0, int), 0, n_states, "state"))


def with_terminal(mdp: MDP, states: Any) -> MDP:
    """See `MDP.with_terminal`."""
    kept = np.ones(mdp.n_states, dtype=bool)
    kept[_named_states(mdp, states)] = False
    rows, keep = mdp.rows, kept[mdp.row_state]
    entry = keep[rows.entry_row]
    length = np.where(kept, np.diff(mdp.row_start), 0)
    left = Rows(
        rows.n_states,
        np.append(0, np.cumsum(rows.length[keep])).astype(rows.entry_start.dtype),
        rows.successor[entry],
        rows.probability[entry],
        rows.reward[entry if rows.rewards_successors else keep],
    )
    return replace(
        mdp,
        row_start=np.append(0, np.cumsum(length)).astype(mdp.row_start.dtype),
        action=mdp.action[keep],
        rows=left,
        bounds=None if mdp.bounds is None else (mdp.bounds[0][entry], mdp.bounds[1][entry]),
    )


def _named_states(mdp: MDP, states: Any) -> IntArray:
    """The ids of states given by label, by id, by the name of a set of states, or as booleans."""
    if np.asarray(states).dtype == bool:
        return terminal_ids(states, mdp.n_states)
    given = list(states) if np.iterable(states) and not isinstance(states, str) else [states]
    called = set(mdp.labels.states or ())
    sets = [name for name in given if isinstance(name, str) and name in mdp.propositions and name not in called]
    one_by_one = [state for state in given if state not in sets]
    ids = [mdp.propositions[name] for name in sets]
    if one_by_one:
        ids.append(terminal_ids(mdp.labels.state_ids("terminal", one_by_one), mdp.n_states))
    return np.concatenate(ids) if ids else np.zeros(0, dtype=np.int64)


def require_actions(has_actions: BoolArray, ends: IntArray) -> None:
    """Raises if a state that is not terminal has no actions."""
    idle = ~has_actions
    idle[ends] = False
    if idle.any():
        states = np.flatnonzero(idle)
        raise ValueError(
            f"{checks.some(len(states), 0, 'state', 'states')} without actions: {checks.listing(states.tolist())}. "
            "Give each state at least one action, or declare where the process ends with terminal=[...]."
        )


def stay_after_terminal(
    s: IntArray, t: IntArray, possible: FloatArray | None, r: FloatArray, ends: IntArray, n_states: int
) -> BoolArray | None:
    """Which transitions do not leave a terminal state, or None if none does; only self-loops of reward 0 may."""
    if possible is None or not len(ends):
        return None
    is_end = np.zeros(n_states, dtype=bool)
    is_end[ends] = True
    leaves: BoolArray = is_end[s]
    if not leaves.any():
        return None
    harmful = leaves & (possible > 0.0) & ((t != s) | (r != 0.0))
    if harmful.any():
        at = int(np.argmax(harmful))
        raise ValueError(
            f"State {s[at]} is declared terminal, but transition {at} leads from it to state {t[at]} "
            f"with reward {r[at]:g}; expected nothing but a self-loop of reward 0."
        )
    return ~leaves
