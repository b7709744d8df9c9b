"""A log of transitions: columns of equal length, checked once.

    (state, action, reward, next_state), and where known terminated, episode, step

`terminated` says that the process ended in `next_state`. An episode that was cut off by a time limit just stops: its
last transition is not marked, because the process would have gone on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.types import BoolArray, FloatArray, IntArray

NEEDED = ("state", "action", "reward", "next_state")
OPTIONAL = ("terminated", "episode", "step")

SYNONYMS = {
    "state": ("s", "idstatefrom", "obs", "observation"),
    "action": ("a", "idaction"),
    "reward": ("r",),
    "next_state": ("s_next", "s'", "idstateto", "next_obs", "next_observation"),
    "terminated": ("done", "terminal"),
    "episode": ("idepisode",),
    "step": ("t", "time", "idstep"),
}
"""Other names under which the columns are found."""

LARGEST_ID = 2**31 - 2  # ids and their number fit into 32 bits


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """Logged transitions, one per row; checked when made, and read-only by convention.

    Args:
      state, action, next_state: `(N,)` 0-based ids.
      reward: `(N,)` finite numbers.
      terminated: `(N,)` booleans (or 0 and 1), whether the process ended in `next_state`; None when not known.
      episode: `(N,)` the episode of each transition, numbered in the order of time; None when not known.
      step: `(N,)` the step within its episode, from 0; None when not known.

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

    @staticmethod
    def from_columns(columns: Mapping[str, ArrayLike]) -> Transitions:
        """A log from a mapping of names to columns: a dict, a pandas frame, an open NPZ file.

        Columns are found by their names or synonyms (`SYNONYMS`), in either case; others are ignored.

        >>> Transitions.from_columns({"s": [0], "a": [1], "r": [0.5], "s_next": [0], "done": [False]})
        Transitions(1 rows: state, action, reward, next_state, terminated)
        """
        found = column_names(list(columns))
        return Transitions(**{name: columns[given] for name, given in found.items()})  # type: ignore[arg-type]

    @staticmethod
    def from_tuples(rows: Iterable[Sequence[Any]], names: Sequence[str] = NEEDED) -> Transitions:
        """A log from one tuple per transition, whose fields are `names`.

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
        return Transitions(**{name: columns[given] for name, given in found.items()})

    def columns(self) -> dict[str, Any]:
        """Name and array of each column that is there."""
        return {name: getattr(self, name) for name in (*NEEDED, *OPTIONAL) if getattr(self, name) is not None}

    def select(self, which: IntArray | BoolArray | slice) -> Transitions:
        """The transitions `which`: positions, booleans or a slice."""
        return Transitions(**{name: column[which] for name, column in self.columns().items()})

    def __len__(self) -> int:
        return len(self.reward)

    def __repr__(self) -> str:
        return f"Transitions({len(self)} rows: {', '.join(self.columns())})"


def check_transitions(name: str, value: object) -> None:
    """Raises unless `value` is a log."""
    example = "a log, such as read_log(path) or Transitions.from_columns(frame)"
    checks.kind(name, value, isinstance(value, Transitions), example)


def column_names(given: Sequence[str]) -> dict[str, str]:
    """Which of the `given` names stands for which column; raises when one is missing or named twice."""
    found: dict[str, str] = {}
    for name in (*NEEDED, *OPTIONAL):
        wanted = (name, *SYNONYMS[name])
        matches = [g for g in given if isinstance(g, str) and g.strip().lower() in wanted]
        if len(matches) > 1:
            raise ValueError(f"{' and '.join(matches)} both name the column {name}, expected one of them.")
        if matches:
            found[name] = matches[0]
    missing = [name for name in NEEDED if name not in found]
    if missing:
        listed = "; ".join(f"{name} (or {', '.join(SYNONYMS[name])})" for name in missing)
        shown = checks.listing([str(name)[:40] for name in given], 10) or "none at all"
        raise ValueError(f"found the columns {shown}, missing {listed}.")
    return found


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
    """`values` as an array; raises naming the first row that is no number, where NumPy says only that one is not."""
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
