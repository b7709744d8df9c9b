"""Find next states from consecutive rows of a log that has states and times but no next states.

    machine  date        condition  decision  profit          transition
    M01      2026-01-01  good       run       8.4             good --run--> worn
    M01      2026-01-02  worn       run       6.1             worn --run--> good
    M01      2026-01-03  good       run       8.0             none: what followed is not known
    M02      2026-01-01  good       repair   -4.0             ...

The last row of a trajectory only gives the next state of the row before, and may lack action and reward. If it is
marked `terminated` and has an action, that action ended the process, in an extra state; without an action, the process
ended in the state of the row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from urbe.mdp.frames import Column, RowError, flags, moments
from urbe.mdp.labels import encode
from urbe.types import BoolArray, IntArray

NOWHERE, END = -1, -2


class Succession(NamedTuple):
    """The successor of each row of a table; all `(N,)`.

    Attributes:
      follows: the row that comes next in the trajectory, `NOWHERE`, or `END` where the process ended.
      ended: whether the process ended with the step of the row.
      episode: number of the trajectory, in the order of their first time stamps, or of their names.
      step: position within it, from 0.
      repeats: whether the row repeats another row.
    """

    follows: IntArray
    ended: BoolArray
    episode: IntArray
    step: IntArray
    repeats: BoolArray


def succession(columns: dict[str, Column]) -> Succession:
    """Orders rows within trajectories by their time stamps, or as given, and finds the successor of each.

    Args:
      columns: `state`, `action`, `reward`, and if there are any `episode`, `step` or `time`, and `terminated`.

    Raises:
      RowError: two rows of one time contradict each other, or a trajectory continues after its end.
    """
    n = len(columns["state"])
    clock = columns.get("step") or columns.get("time")
    when: np.ndarray = np.arange(n) if clock is None else moments(clock)
    episode = _episodes(columns.get("episode"), when, n)
    unplaced = np.zeros(n, dtype=bool) if clock is None else clock.missing
    order = np.lexsort((np.arange(n), when, episode, unplaced))
    order = order[: n - int(np.count_nonzero(unplaced))]  # rows without a time have no place
    repeats = np.zeros(n, dtype=bool)
    if clock is not None:
        repeats = _repeats(columns, clock, episode, when, order)
        order = order[~repeats[order]]
    same = np.append(episode[order[1:]] == episode[order[:-1]], False) if len(order) else np.zeros(0, dtype=bool)
    follows = np.full(n, NOWHERE, dtype=np.int64)
    follows[order[:-1][same[:-1]]] = order[1:][same[:-1]]
    step = np.zeros(n, dtype=np.int64)
    first = np.flatnonzero(np.append(True, ~same)[: len(order)])
    step[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    return Succession(follows, _ended(columns, follows), episode, step, repeats)


def _episodes(column: Column | None, when: np.ndarray, n: int) -> IntArray:
    if column is None:
        return np.zeros(n, dtype=np.int64)
    if column.missing.any():
        row = int(np.argmax(column.missing))
        raise RowError(
            column.name,
            row,
            "is missing, expected the trajectory that the row belongs to. Fill it in or "
            "delete the row: it may stand between any two others, so it cannot be dropped.",
        )
    ids, names = encode({column.name: column.values}, labels=True)
    code = ids[column.name]
    order = np.lexsort((code, when))  # missing times sort last
    first = np.full(len(names or ()), n, dtype=np.int64)
    np.minimum.at(first, code[order], np.arange(n))
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[code]


def _repeats(
    columns: dict[str, Column], clock: Column, episode: IntArray, when: np.ndarray, order: IntArray
) -> BoolArray:
    """Rows that repeat another; raises if two rows of a trajectory have the same time and different values."""
    again = np.zeros(len(episode), dtype=bool)
    before, after = order[:-1], order[1:]
    for k in np.flatnonzero((episode[before] == episode[after]) & (when[before] == when[after])).tolist():
        one, two = int(before[k]), int(after[k])
        for column in columns.values():
            if _said(column, one) != _said(column, two):
                both = f"is {_said(column, two)!r} and {_said(column, one)!r} in row {one}"
                raise RowError(
                    column.name, two, f"{both}, which has the same trajectory and {clock.name}; expected one row for "
                    f"each. If {clock.name} begins again with every trajectory, number the trajectories in a column "
                    "episode. Rows count from 0.",
                )  # fmt: skip
        again[two] = True
    return again


def _said(column: Column, row: int) -> Any:
    value = column.values[row]
    return None if column.missing[row] else value.item() if isinstance(value, np.generic) else value


def _ended(columns: dict[str, Column], follows: IntArray) -> BoolArray:
    """Which steps ended the process; sets `follows` to END where the final state has no row."""
    ended = np.zeros(len(follows), dtype=bool)
    if "terminated" not in columns:
        return ended
    marked, acts = flags(columns["terminated"]), ~columns["action"].missing
    early = marked & (follows >= 0)
    if early.any():
        row = int(np.argmax(early))
        raise RowError(
            columns["terminated"].name, row, f"says that the process ended, but row {follows[row]} continues with the "
            "trajectory; expected it only in the last row. Give the rest a trajectory of its own. Rows count from 0.",
        )  # fmt: skip
    here = marked & acts
    follows[here] = END
    ended[here] = True
    before = np.flatnonzero(follows >= 0)
    ended[before] = (marked & ~acts)[follows[before]]
    return ended
