"""A log of transitions: columns of equal length, checked once.

    (state, action, reward, next_state), and optionally terminated, episode, step

`terminated` says that the process ended in `next_state`. An episode that was truncated by a time limit just stops: its
last transition is not marked, because the process would have continued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from urbe import checks
from urbe.mdp.labels import LARGEST_ID, NO_LABELS, Label, Labels
from urbe.types import BoolArray, FloatArray, IntArray

NEEDED = ("state", "action", "reward", "next_state")
OPTIONAL = ("terminated", "episode", "step")

SYNONYMS = {
    "state": ("s", "idstate", "idstatefrom", "obs", "observation"),
    "action": ("a", "idaction"),
    "reward": ("r",),
    "cost": ("costs",),
    "next_state": ("s_next", "s'", "idstateto", "next_obs", "next_observation"),
    "terminated": ("done", "terminal"),
    "episode": ("idepisode", "trajectory"),
    "step": ("t", "idstep"),
    "time": ("timestamp", "date", "datetime"),
    "probability": ("p", "prob"),
    "lower": ("low",),
    "upper": ("high",),
}
"""Alternative names of the columns; `time` orders the rows of an episode, and is not kept."""


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """Logged transitions, one per row; checked when made, and read-only by convention.

    Args:
      state, action, next_state: `(N,)` 0-based ids.
      reward: `(N,)` finite numbers.
      terminated: `(N,)` booleans (or 0 and 1), whether the process ended in `next_state`; None when not known.
      episode: `(N,)` the episode of each transition, numbered in the order of time; None when not known.
      step: `(N,)` the step within its episode, from 0; None when not known.
      labels: names of states and actions.
      notes: sentences on rows that were left out and on conclusions drawn when the log was read.

    >>> log = Transitions(state=[0, 1], action=[0, 0], reward=[0.0, 1.0], next_state=[1, 2], terminated=[0, 1])
    >>> log
    Transitions(2 rows: state, action, reward, next_state, terminated)
    >>> log.next_state
    array([1, 2], dtype=int32)
    """

    state: IntArray
    action: IntArray
    reward: FloatArray
    next_state: IntArray
    terminated: BoolArray | None = None
    episode: IntArray | None = None
    step: IntArray | None = None
    labels: Labels = NO_LABELS
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns: dict[str, Any] = {}
        for name in ("state", "action", "next_state"):
            meaning = "action" if name == "action" else "state"
            columns[name] = _ids(name, getattr(self, name), LARGEST_ID + 1, meaning).astype(np.int32, copy=False)
        columns["reward"] = _numbers("reward", self.reward)
        if self.terminated is not None:
            columns["terminated"] = _flags("terminated", self.terminated)
        for name in ("episode", "step"):
            if getattr(self, name) is not None:
                columns[name] = _ids(name, getattr(self, name), 2**62, name).astype(np.int64, copy=False)
        if not checks.same_length(columns):
            raise ValueError("There are no transitions; expected at least one.")
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        self._check_labels("state", self.labels.states)
        self._check_labels("action", self.labels.actions)

    def _check_labels(self, name: str, labels: tuple[Label, ...] | None) -> None:
        columns = (self.action,) if name == "action" else (self.state, self.next_state)
        largest = max(int(column.max()) for column in columns)
        if labels is not None and largest >= len(labels):
            raise ValueError(f"labels names {len(labels)} {name}s, expected one for each: the largest is {largest}.")

    @staticmethod
    def from_columns(
        columns: Any,
        *,
        names: Mapping[str, str] | None = None,
        missing: Literal["refuse", "drop"] = "refuse",
        missing_values: Sequence[str | float] = (),
        labels: bool | None = None,
    ) -> Transitions:
        """Builds a log from a table: a dict of columns, a pandas or polars frame, an Arrow table, an open NPZ file.

        Columns are found by their names or synonyms (`SYNONYMS`), in upper or lower case; others are ignored. Without a
        column `next_state`, the next state is that of the following row of the same `episode`, in the order of `step`
        or `time` (numbers or dates), or as the rows stand. A column `cost` in place of `reward` is taken with the sign
        changed. `Transitions.notes` says what was concluded and left out.

        Args:
          columns: the table.
          names: names of columns that differ from the usual ones, as in `{"state": "condition"}`.
          missing: what to do with rows that lack a value (None, NaN, NaT, an empty text, NA): "refuse" names the first,
            "drop" leaves them out and counts them. Rows around a gap are never joined.
          missing_values: other texts and numbers that stand for no value, such as `[-999, "?"]`.
          labels: True takes values of states and actions as labels, False as ids from 0; None takes texts (and
            categoricals) as labels and whole numbers as ids. Categoricals keep their order, other labels are sorted.

        >>> Transitions.from_columns({"s": [0], "a": [1], "r": [0.5], "s_next": [0], "done": [False]})
        Transitions(1 rows: state, action, reward, next_state, terminated)
        >>> log = Transitions.from_columns(
        ...     {"day": [1, 2, 3], "is": ["new", "old", "new"], "do": ["run", "mend", "run"], "profit": [5, -2, 5]},
        ...     names={"time": "day", "state": "is", "action": "do", "reward": "profit"},
        ... )
        >>> log.labels.state_texts(log.next_state), log.notes[0]
        (['old', 'new'], 'Next states are those of the following row, in 1 trajectory ordered by day.')
        """
        from urbe.mdp.log_columns import log_of

        return log_of(columns, names=names, missing=missing, missing_values=missing_values, labels=labels)

    @staticmethod
    def from_tuples(rows: Iterable[Sequence[Any]], names: Sequence[str] = NEEDED) -> Transitions:
        """Builds a log from one tuple per transition, whose fields are `names`.

        >>> Transitions.from_tuples([(0, 0, 1.0, 1), (1, 0, 0.0, 0)])
        Transitions(2 rows: state, action, reward, next_state)
        """
        found = column_names(names)
        rows = list(rows)
        for at, row in enumerate(rows):
            if len(row) != len(names):
                raise ValueError(
                    f"Row {at} has {len(row)} fields, expected {len(names)}: {', '.join(names)}. Say which fields "
                    "there are with names=(...)."
                )
        if not rows:
            raise ValueError("There are no transitions; expected at least one.")
        columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True))
        if "cost" in found:
            columns["reward"] = [-cost for cost in columns[found.pop("cost")]]
            found["reward"] = "reward"
        found.pop("time", None)
        return Transitions(**{name: columns[given] for name, given in found.items()})

    def columns(self) -> dict[str, Any]:
        """Name and array of each existing column."""
        return {name: getattr(self, name) for name in (*NEEDED, *OPTIONAL) if getattr(self, name) is not None}

    def select(self, which: IntArray | BoolArray | slice) -> Transitions:
        """The transitions `which`: positions, booleans or a slice."""
        return replace(self, **{name: column[which] for name, column in self.columns().items()})

    def in_terms_of(self, labels: Labels) -> Transitions:
        """Converts ids of states and actions to those of another set of labels.

        Ids without labels are kept, and so are labels that are numbers if there are no others.
        """
        if not self.labels:
            return self
        of_state = _renumbering("state", self.labels.states, labels.states, labels.state_ids)
        of_action = _renumbering("action", self.labels.actions, labels.actions, labels.action_ids)
        changed: dict[str, Any] = {"state": of_state(self.state), "next_state": of_state(self.next_state)}
        return replace(self, **changed, action=of_action(self.action), labels=labels)

    def __len__(self) -> int:
        return len(self.reward)

    def __repr__(self) -> str:
        return f"Transitions({len(self)} rows: {', '.join(self.columns())})"


def _renumbering(
    what: str, mine: tuple[Label, ...] | None, other: tuple[Label, ...] | None, ids: Callable[[str, Any], IntArray]
) -> Callable[[IntArray], IntArray]:
    """Maps ids of the log's labels to ids of the other labels."""
    if mine is None:
        return lambda column: column
    if other is None and not all(isinstance(label, int) and label >= 0 for label in mine):
        names = checks.listing([repr(label) for label in mine])
        raise ValueError(
            f"The log calls {what}s {names}, but the model has only numbers; "
            f"give it labels with model.with_labels({what}s=[...])."
        )
    table: IntArray = np.array(mine) if other is None else ids(f"{what}s of the log", mine)
    return lambda column: table[column]


def check_transitions(name: str, value: object) -> None:
    """Raises unless `value` is a log."""
    example = "a log, such as read_log(path) or Transitions.from_columns(frame)"
    checks.kind(name, value, isinstance(value, Transitions), example)


def column_names(given: Sequence[str], names: Mapping[str, str] | None = None) -> dict[str, str]:
    """Finds the column of a log for each of the `given` names; raises if one is missing or named twice.

    Args:
      given: names in the table.
      names: known assignments; other columns are found by name or synonym. `next_state` may be missing if `episode`,
        `step` or `time` orders the rows.
    """
    lowered = {g.strip().lower() for g in given if isinstance(g, str)}
    if not names and {"idstateto", "probability"} <= lowered:
        raise ValueError(
            "The columns idstateto and probability are those of a model, which urbe solve and urbe.read_mdp read, "
            "expected a log with a row for each step."
        )
    found = match_names(given, (*NEEDED, *OPTIONAL, "time", "cost"), names)
    paid = paid_name(found, names)
    ordered = not {"episode", "step", "time"}.isdisjoint(found)
    ends = () if ordered and "next_state" not in found else ("next_state",)
    require_names(found, given, ("state", "action", paid, *ends))
    return found


def match_names(given: Sequence[str], wanted: Sequence[str], names: Mapping[str, str] | None = None) -> dict[str, str]:
    """Finds which of the `given` names stands for which of the `wanted` columns, as far as there are any."""
    known = dict(names or {})
    for name, own in known.items():
        if name not in wanted:
            turned = f" It is the other way round: write {own}={name}." if own in wanted and name in given else ""
            raise ValueError(f"names has {name!r}, expected one of {', '.join(wanted)}.{turned}")
        if own not in given:
            raise ValueError(f"names[{name!r}] is {own!r}, expected a column of the table: {_listed(given)}.")
    found: dict[str, str] = {}
    free = [g for g in given if g not in known.values()]
    for name in wanted:
        matches = [g for g in free if isinstance(g, str) and g.strip().lower() in (name, *SYNONYMS[name])]
        if name in known:
            found[name] = known[name]
        elif len(matches) > 1:
            raise ValueError(f"{' and '.join(matches)} both name the column {name}, expected one of them.")
        elif matches:
            found[name] = matches[0]
    return found


def paid_name(found: dict[str, str], names: Mapping[str, str] | None) -> str:
    """`reward` or `cost`, whichever the table has; of both, the other one than `names` says is dropped."""
    if "cost" in found and "reward" in found:
        if {"cost", "reward"} <= set(names or ()):
            raise ValueError(
                f"names has both reward and cost, {found['reward']!r} and {found['cost']!r}; expected one."
            )
        found.pop("reward" if "cost" in (names or ()) else "cost")
    return "cost" if "cost" in found else "reward"


def require_names(found: Mapping[str, str], given: Sequence[str], needed: Sequence[str]) -> None:
    """Raises if a needed column was not found."""
    missing = [name for name in needed if name not in found]
    if missing:
        listed = "; ".join(f"{name} (or {', '.join(SYNONYMS[name])})" for name in missing)
        follow = "probability" not in needed and "next_state" in missing
        rows = " Or a column episode, step or time: then the next state is that of the following row." if follow else ""
        raise ValueError(f"found the columns {_listed(given)}, missing {listed}.{rows}")


def _listed(given: Sequence[str]) -> str:
    return checks.listing([str(name)[:40] for name in given], 10) or "none at all"


def _ids(name: str, values: Any, below: int, meaning: str) -> IntArray:
    return checks.int_array(name, _readable(name, values, "a whole number"), 0, below, meaning)


def _numbers(name: str, values: Any) -> FloatArray:
    return checks.float_array(name, _readable(name, values, "a number"), ndim=1)


def _flags(name: str, values: Any) -> BoolArray:
    given = _readable(name, values, "a number")
    flags = checks.float_array(name, given.astype(int) if given.dtype == bool else given, ndim=1)
    wrong = (flags != 0.0) & (flags != 1.0)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"{name}[{at}] is {flags[at]:g}, expected true or false, or 1 or 0.")
    ends: BoolArray = flags == 1.0
    return ends


def _readable(name: str, values: Any, expected: str) -> Any:
    """`values` as an array; raises naming the first row that is not a number, which NumPy's error does not."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return array
    except ValueError:  # rows of different lengths
        pass
    rows = [values] if isinstance(values, str) or not np.iterable(values) else list(values)
    for at, value in enumerate(rows):
        if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
            raise ValueError(f"{name}[{at}] is {value!r}, expected {expected}.")
    return np.array(rows)
