"""Convert the columns of a table to a log: column names, missing values, labels, next states.

`Transitions.from_columns` and the file readers use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from urbe import checks
from urbe.mdp.frames import Column, RowError, collected, flags, frame_column, frame_names, moments, numbers, opposite
from urbe.mdp.labels import Label, Labels, encode
from urbe.mdp.trajectories import END, NOWHERE, succession
from urbe.mdp.transitions import Transitions, column_names
from urbe.types import BoolArray, IntArray

Missing = Literal["refuse", "drop"]
"""How to treat rows that lack a value: raise an error that names the first, or leave them out and count them."""

NAME_THEM = " Say which column is which, as in names={'state': 'condition', 'action': 'decision'}."

PAID = ("reward", "cost")
"""The columns of amounts."""

CALLED = ("state", "action", "next_state")
"""The columns whose values may be labels."""

DROP = 'leave them out with missing="drop", or fill them in first.'

END_LABEL = "(end)"
"""The terminal state of a process whose last state has no row in the table."""


def log_of(
    table: Any,
    *,
    names: Mapping[str, str] | None = None,
    missing: Missing = "refuse",
    missing_values: Sequence[str | float] = (),
    labels: bool | None = None,
) -> Transitions:
    """Converts a table to a log; for the arguments see `Transitions.from_columns`."""
    checks.one_of("missing", missing, ("refuse", "drop"))
    if isinstance(missing_values, str):
        raise ValueError(f"missing_values is {missing_values!r}, expected a list of values, such as [-999, '?'].")
    table = collected(table)
    given = frame_names(table)
    try:
        found = column_names(given, names)
    except ValueError as error:
        raise ValueError(f"{error}{NAME_THEM}") from None
    columns = columns_of(table, found, missing_values, labels)
    log = (_given if "next_state" in columns else _followed)(columns, missing, labels)
    notes = [
        *probability_notes(given),
        *log.notes,
        *_alike("states", log.labels.states),
        *_alike("actions", log.labels.actions),
    ]
    if "cost" in found:
        notes.append(f"Rewards are minus the column {found['cost']}, so values are minus costs.")
    return with_id_notes(replace(log, notes=tuple(notes)))


def columns_of(
    table: Any, found: Mapping[str, Any], missing_values: Sequence[str | float], labels: bool | None
) -> dict[str, Column]:
    """Reads the columns `found` of a table of transitions, by their usual names; costs become rewards.

    Raises:
      ValueError: the table has no rows.
    """
    columns = {
        name: frame_column(
            table, own, missing_values, as_labels=bool(labels) and name in CALLED, as_amounts=name in PAID
        )
        for name, own in found.items()
    }
    if not checks.same_length(columns):
        raise ValueError("There are no transitions; expected at least one.")
    if "cost" in columns:
        columns["reward"] = opposite(columns.pop("cost"))
    return columns


def _given(columns: dict[str, Column], missing: Missing, labels: bool | None) -> Transitions:
    """Converts a table in which every row is a transition."""
    used = {name: column for name, column in columns.items() if name != "time"}
    keep, notes = complete_rows(used, missing, np.ones(len(columns["state"]), dtype=bool))
    state_ids, states = encoded([used["state"], used["next_state"]], keep, labels)
    action_ids, actions = encoded([used["action"]], keep, labels)
    rest: dict[str, Any] = {}
    if "terminated" in used:
        rest["terminated"] = flags(used["terminated"])[keep]
    if "episode" in used:
        rest["episode"] = _episode_ids(used["episode"], keep)
    if "step" in used:
        rest["step"] = numbers(_where(used["step"], keep))[keep]
    elif "time" in columns and "episode" in rest and not columns["time"].missing[keep].any():
        rest["step"] = _ranks(rest["episode"], moments(columns["time"])[keep])
    return Transitions(
        state_ids[0], action_ids[0], numbers(used["reward"])[keep], state_ids[1],
        **rest, labels=Labels(states, actions), notes=notes,
    )  # fmt: skip


def _followed(columns: dict[str, Column], missing: Missing, labels: bool | None) -> Transitions:
    """Converts a table in which the next state is that of the following row."""
    follows, ended, episode, step, repeats = succession(columns)
    state = columns["state"]
    lost = {"state": columns["state"], "action": columns["action"], "reward": columns["reward"]}
    arrives = np.where(follows >= 0, follows, 0)
    no_successor = (follows >= 0) & state.missing[arrives]
    clock = columns.get("step") or columns.get("time")
    steps = (follows != NOWHERE) & ~repeats
    if clock is not None:
        steps |= clock.missing
        lost["time"] = clock
    followed = Column(f"{state.name} of the next row", state.values, no_successor)
    keep, notes = complete_rows(lost | {"next_state": followed}, missing, steps)
    if not len(keep):
        raise ValueError(
            "No row is followed by another of its trajectory, so there are no transitions; expected trajectories of at "
            "least two rows. Name the column that says which rows belong together with names={'episode': ...}."
        )
    known = ~state.missing
    where = np.flatnonzero(known)
    (ids,), states = encoded([state], where, labels)
    of_row = np.full(len(state), -1, dtype=np.int64)
    of_row[where] = ids
    (action,), actions = encoded([columns["action"]], keep, labels)
    following = np.where(follows[keep] == END, int(ids.max()) + 1, of_row[arrives[keep]])
    if states is not None and (follows[keep] == END).any():
        states = (*states, END_LABEL)
    n_trajectories = len(np.unique(episode[keep]))
    shown = f"Next states are those of the following row, in {n_trajectories} trajector"
    shown += ("y" if n_trajectories == 1 else "ies") + ("." if clock is None else f" ordered by {clock.name}.")
    doubled = int(np.count_nonzero(repeats))
    more = [f"{checks.some(doubled, len(state), 'row', 'rows')} repeated and left out."] if doubled else []
    if clock is not None:
        more += _gaps(clock, keep[follows[keep] >= 0], arrives)
    alone = (follows == NOWHERE) & (step == 0) & ~repeats
    if clock is not None:
        alone &= ~clock.missing
    if alone.any():
        more.append(f"Rows that are alone in their trajectory give no transition: {int(np.count_nonzero(alone))}.")
    return Transitions(
        of_row[keep], action, numbers(_where(columns["reward"], keep))[keep], following,
        terminated=ended[keep] if "terminated" in columns else None, episode=episode[keep], step=step[keep],
        labels=Labels(states, actions), notes=(shown, *more, *notes),
    )  # fmt: skip


def _gaps(clock: Column, rows: IntArray, follows: IntArray) -> list[str]:
    """A note on next states that come later than usual, if most come after equal times: rows may be missing between."""
    when = moments(clock)
    apart = when[follows[rows]] - when[rows]
    times, counts = np.unique(apart, return_counts=True)
    if not len(rows) or 2 * counts.max() < len(rows):
        return []
    usual = times[counts.argmax()]
    late = apart > usual * 1.5
    if not late.any():
        return []
    row = int(rows[np.argmax(late)])
    values = clock.values
    return [
        f"{int(np.count_nonzero(late))} of {len(rows)} next states come later than usual, which is after "
        f"{_plain_time(usual)}: the first between {clock.name} {_plain_time(values[row])} and "
        f"{_plain_time(values[follows[row]])}. If rows are missing there, give the rest a trajectory of its own."
    ]


def _plain_time(value: Any) -> str:
    """A number, time or duration as people write it."""
    if isinstance(value, np.timedelta64):
        return str(value.astype("timedelta64[us]").item()).removesuffix(", 0:00:00")
    return f"{value:.12g}" if isinstance(value, (float, np.floating)) else str(value)


def _alike(what: str, labels: Sequence[Label] | None) -> list[str]:
    """A note on labels that differ only in case and blanks: they may be one thing, typed in several ways."""
    groups: dict[str, list[str]] = {}
    for label in labels or ():
        groups.setdefault(" ".join(str(label).casefold().split()), []).append(repr(label))
    found = [" and ".join(group) for group in groups.values() if len(group) > 1]
    if not found:
        return []
    return [f"Some {what} differ only in case or blanks: {checks.listing(found, 5)}. If they are one, rename them."]


def probability_notes(given: Sequence[Any]) -> tuple[str, ...]:
    """A note on a column of probabilities: the table may be a model, and no log."""
    found = [name for name in given if isinstance(name, str) and name.strip().lower() in ("probability", "prob")]
    if not found:
        return ()
    return (
        f"The column {found[0]} is ignored: every row counts as one transition that happened. If the table is a model, "
        "read it as one, with read_mdp(path, discount=...).",
    )


def with_id_notes(log: Transitions) -> Transitions:
    """Adds a note if ids do not begin at 0, since they may be labels."""
    said = []
    for what, named, columns in (
        ("state", log.labels.states, (log.state, log.next_state)),
        ("action", log.labels.actions, (log.action,)),
    ):
        least = min(int(column.min()) for column in columns)
        if named is None and least > 0:
            said.append(
                f"The smallest {what} is {least}, and ids begin at 0: {what} 0 never occurs. If numbers are names, "
                "take them as such with labels=True."
            )
    return replace(log, notes=(*log.notes, *said)) if said else log


def complete_rows(columns: Mapping[str, Column], missing: Missing, rows: BoolArray) -> tuple[IntArray, tuple[str, ...]]:
    """Which of the `rows` are complete, and how many lack each column."""
    lacks = {name: column.missing & rows for name, column in columns.items()}
    bad = np.logical_or.reduce(list(lacks.values()))
    keep = np.flatnonzero(rows & ~bad)
    if not bad.any():
        return keep, ()
    n_bad, n = int(np.count_nonzero(bad)), len(bad)
    if missing == "refuse":
        row = int(np.argmax(bad))
        name = next(name for name, lack in lacks.items() if lack[row])
        raise RowError(
            columns[name].name, row, f"is missing, expected a value. {checks.some(n_bad, n, 'row', 'rows')} without "
            f"some value; {DROP}",
        )  # fmt: skip
    if not len(keep):
        raise ValueError(f"All {n} rows lack some value, expected at least one that is complete.")
    counted = ", ".join(f"{columns[name].name} {int(lack.sum())}" for name, lack in lacks.items() if lack.any())
    return keep, (f"{checks.some(n_bad, n, 'row', 'rows')} left out for missing values: {counted}.",)


def encoded(
    columns: Sequence[Column], keep: IntArray, labels: bool | None
) -> tuple[list[IntArray], tuple[Label, ...] | None]:
    """Ids of the kept rows of columns that share their labels."""
    order = columns[0].order if all(column.order is not None for column in columns) else None
    labels = True if labels is None and order is not None else labels
    try:
        ids, names = encode({column.name: column.values[keep] for column in columns}, labels, order)
    except RowError as error:
        raise RowError(error.name, int(keep[error.row]), error.message) from None
    return [ids[column.name] for column in columns], names


def _episode_ids(column: Column, keep: IntArray) -> IntArray:
    """Numbers unchanged; anything else numbered in the order of the names."""
    values = column.values[keep]
    if values.dtype.kind in "iuf":
        return checks.int_array(column.name, values, 0, None, "episode")
    ids, _ = encode({column.name: values}, labels=True)
    return ids[column.name]


def _ranks(episode: IntArray, when: np.ndarray) -> IntArray:
    """The place of each row in its episode, by time."""
    order = np.lexsort((np.arange(len(when)), when, episode))
    first = np.flatnonzero(np.append(True, np.diff(episode[order]) != 0))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    return rank


def _where(column: Column, keep: IntArray) -> Column:
    """The column restricted to the rows to keep."""
    hidden = np.ones(len(column), dtype=bool)
    hidden[keep] = False
    return replace(column, missing=hidden)
