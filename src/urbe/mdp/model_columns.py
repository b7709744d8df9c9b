"""Convert the columns of a table to a model with labels: one row for each transition of positive probability.

    state,action,next_state,probability,reward[,lower,upper]      or cost in place of reward

`MDP.from_columns`, `MDP.from_transitions` with strings, and CSV files with labels use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.mdp import build
from urbe.mdp.frames import collected, frame_column, frame_names, numbers
from urbe.mdp.intervals import PairError
from urbe.mdp.labels import Labels
from urbe.mdp.log_columns import NAME_THEM, Missing, columns_of, complete_rows, encoded
from urbe.mdp.model import MDP
from urbe.mdp.start import first_states
from urbe.mdp.transitions import match_names, paid_name, require_names
from urbe.types import FloatArray, IntArray

WANTED = ("state", "action", "next_state", "probability", "reward", "cost", "lower", "upper")
NEEDED = ("state", "action", "next_state")
PROBABILITIES = ("probability", "lower", "upper")


def model_of(
    table: Any,
    *,
    discount: float,
    names: Mapping[str, str] | None = None,
    missing: Missing = "refuse",
    missing_values: Sequence[str | float] = (),
    labels: bool | None = None,
    terminal: Any = None,
    initial: Any = None,
    row_tolerance: float | None = None,
) -> MDP:
    """Converts a table to a model; for the arguments see `MDP.from_columns`."""
    checks.one_of("missing", missing, ("refuse", "drop"))
    table = collected(table)
    given = frame_names(table)
    try:
        found = match_names(given, WANTED, names)
        bounded = "lower" in found and "upper" in found
        needed = (*NEEDED, paid_name(found, names))
        require_names(found, given, needed if bounded else (*needed, "probability"))
    except ValueError as error:
        raise ValueError(f"{error}{NAME_THEM}") from None
    columns = columns_of(table, found, missing_values, labels)
    keep, _ = complete_rows(columns, missing, np.ones(len(columns["state"]), dtype=bool))
    (s, t), states = encoded([columns["state"], columns["next_state"]], keep, labels)
    (a,), actions = encoded([columns["action"]], keep, labels)
    named = Labels(states, actions)
    n_states = int(max(s.max(), t.max())) + 1
    ends = _successors_alone(s, t, n_states) if terminal is None else named.state_ids("terminal", terminal)
    _no_idle_states(s, ends, n_states, named)

    if row_tolerance is None:
        row_tolerance = checks.sum_tolerance(*(columns[name].values for name in PROBABILITIES if name in columns))

    def optional(name: str) -> FloatArray | None:
        return numbers(columns[name])[keep] if name in columns else None

    try:
        mdp = build.from_transitions(
            s,
            a,
            t,
            optional("probability"),
            numbers(columns["reward"])[keep],
            discount=discount,
            n_states=n_states,
            terminal=ends,
            row_tolerance=row_tolerance,
            lower=optional("lower") if bounded else None,
            upper=optional("upper") if bounded else None,
        )
    except PairError as error:
        raise PairError(error.state, error.action, in_labels(error, named)) from None
    mdp = replace(mdp, labels=named)
    return mdp if initial is None else replace(mdp, initial=first_states(mdp, "initial", initial))


def have_labels(state: Any, action: Any, next_state: Any) -> bool:
    """Whether states, or actions, are called by anything but numbers, or by categories."""

    def texts(column: Any) -> bool:
        if np.ndim(column) != 1:
            return False
        found = frame_column({"": column}, "")
        return found.order is not None or found.values.dtype.kind not in "iuf"

    return (texts(state) and texts(next_state)) or texts(action)


def table_of(named: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a function's arguments, a number repeated for every row."""
    n = len(named["state"])
    return {
        name: np.full(n, value) if np.ndim(value) == 0 else value for name, value in named.items() if value is not None
    }


def _successors_alone(s: IntArray, t: IntArray, n_states: int) -> IntArray:
    """States that are entered and never left."""
    entered = np.zeros(n_states, dtype=bool)
    entered[t] = True
    entered[s] = False
    return np.flatnonzero(entered)


def _no_idle_states(s: IntArray, ends: ArrayLike, n_states: int, labels: Labels) -> None:
    idle = np.ones(n_states, dtype=bool)
    idle[s] = False
    idle[np.asarray(ends, dtype=np.int64)] = False
    if idle.any():
        states = labels.state_texts(np.flatnonzero(idle))
        names = " Ids begin at 0; if they are names, take them as such with labels=True." if not labels.states else ""
        raise ValueError(
            f"{checks.some(len(states), 0, 'state', 'states')} without actions: {checks.listing(states)}. Give each "
            f"state at least one action, or declare where the process ends with terminal=[...].{names}"
        )


def in_labels(error: PairError, labels: Labels) -> str:
    """The message of an error with labels in place of ids."""
    pair = f"state {error.state}, action {error.action}"
    named = f"state {labels.state(int(error.state))}, action {labels.action(int(error.action))}"
    return error.message.replace(pair, named)
