"""The history of an agent: diagnostics, every episode, deciding members, and measurements of callbacks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from urbe.deep.loops.meters import PER_STEP, PER_UPDATE
from urbe.deep.loops.trainer import Trainer, TrainingRecord
from urbe.runs.errors import CheckpointError

LOG = ("step", "updates", "episodes", "mean_return", "mean_length", *PER_UPDATE, *PER_STEP)
"""Columns of the log; means are over the steps, updates or episodes since the previous row."""

EPISODES = ("step", "return", "length")
"""Columns of the episodes: the step of their end, their undiscounted return and their length."""


_COUNTS = ("step", "updates", "episodes", "length")  # columns of whole numbers
_MEASURED, MEMBERS = "measured", "members"
_OWN = ("log", "episodes", MEMBERS)  # tables that do not belong to callbacks

Columns = dict[str, list[float]]


class LogRows(NamedTuple):
    """The rows of one record.

    Attributes:
      row: of the log.
      episodes: columns `EPISODES`.
      members: the row of the deciding members; None for a single member.
    """

    row: dict[str, float]
    episodes: dict[str, np.ndarray]
    members: dict[str, float] | None


def pending(trainer: Trainer) -> LogRows:
    """The rows since the last row of the log, which will be part of the next one."""
    return _log_rows(trainer, trainer.collect(restart=False))


class History:
    """The log of a run: tables that grow by rows."""

    def __init__(self) -> None:
        self._log: Columns = {name: [] for name in LOG}
        self._episodes: Columns = {name: [] for name in EPISODES}
        self._members: Columns = {}
        self._measured: dict[str, Columns] = {}

    @property
    def log(self) -> dict[str, np.ndarray]:
        """One row per `log_every` steps, columns `LOG`."""
        return _arrays(self._log)

    @property
    def episodes(self) -> dict[str, np.ndarray]:
        """One row per episode that ended before the last row of the log, columns `EPISODES`."""
        return _arrays(self._episodes)

    @property
    def members(self) -> dict[str, np.ndarray]:
        """Which members decided the targets, a row per row of the log; empty for a single member.

        Columns: `step`; `targets`, the number of targets since the previous row on which members differed; and
        `member_0`, `member_1`, ..., the share of these that each decided. For a worst-case nature this is how often it
        was the worst, for others its mean weight. NaN if there were no such targets.
        """
        return _arrays(self._members)

    @property
    def measured(self) -> dict[str, dict[str, np.ndarray]]:
        """The table of each callback, by name: one row per measurement, with the column `step` and its own."""
        return {name: _arrays(columns) for name, columns in self._measured.items()}

    def files(self) -> dict[str, dict[str, np.ndarray]]:
        """All tables by the names of their files in a run's folder, with counts as whole numbers."""
        members = {MEMBERS: self.members} if self._members else {}
        tables = {"log": self.log, "episodes": self.episodes, **members, **self.measured}
        return {
            f"{table}.csv": {n: c.astype(np.int64) if n in _COUNTS else c for n, c in columns.items()}
            for table, columns in tables.items()
        }

    def begin_members(self, count: int) -> None:
        """Makes the table of deciding members, if there are several and it does not exist yet."""
        if count > 1 and not self._members:
            self._members = {name: [] for name in ("step", "targets", *(f"member_{k}" for k in range(count)))}

    def add(self, trainer: Trainer) -> LogRows:
        """Adds the rows of the trainer's record, which begins anew, and returns them."""
        rows = _log_rows(trainer, trainer.collect())
        for name in LOG:
            self._log[name].append(rows.row[name])
        for name in EPISODES:
            self._episodes[name].extend(rows.episodes[name].tolist())
        for name, value in (rows.members or {}).items():
            self._members[name].append(value)
        return rows

    def begin(self, name: str, columns: Sequence[str]) -> None:
        """Makes the table of a callback, if it does not exist yet.

        Raises:
          ValueError: there is one of that name with other columns.
        """
        expected = ("step", *columns)
        found = self._measured.get(name, {column: [] for column in expected})
        if set(found) != set(expected):
            raise ValueError(
                f"The callback {name!r} has the columns {', '.join(expected)}, but those measured before under this "
                f"name are {', '.join(found)}; expected the same. Give it another name."
            )
        self._measured[name] = {column: found[column] for column in expected}  # files keep no order

    def add_measured(self, name: str, step: int, values: Mapping[str, float]) -> dict[str, float]:
        """Adds a row of a callback's measurements, and returns it."""
        table = self._measured[name]
        row = {"step": step} | {column: float(values[column]) for column in table if column != "step"}
        for column, value in row.items():
            table[column].append(value)
        return row

    def state(self) -> dict[str, Any]:
        """Returns all tables, to be restored later."""
        measured = {_MEASURED: self.measured} if self._measured else {}
        members = {MEMBERS: self.members} if self._members else {}
        return {"log": self.log, "episodes": self.episodes, **members, **measured}

    @staticmethod
    def of_files(tables: Mapping[str, Mapping[str, np.ndarray]], source: str | os.PathLike[str]) -> History:
        """Restores the result of `files`, by the names of the files."""
        flat: dict[str, np.ndarray] = {}
        for file, columns in tables.items():
            table = file.removesuffix(".csv")
            place = table if table in _OWN else f"{_MEASURED}/{table}"
            flat |= {f"{place}/{name}": np.asarray(column, np.float64) for name, column in columns.items()}
        return History.of(flat, source)

    @staticmethod
    def of(tables: Mapping[str, np.ndarray], source: str | os.PathLike[str]) -> History:
        """Restores the result of `state`, by names such as `log/step`."""
        history = History()
        for name in tables:
            parts = name.split("/")
            if len(parts) == 3 and parts[0] == _MEASURED:
                history._measured.setdefault(parts[1], {"step": []})[parts[2]] = []
        of_members = [name for name in tables if name.startswith(f"{MEMBERS}/")]
        history.begin_members(len(of_members) - 2)  # files keep no order
        places = {"log": history._log, "episodes": history._episodes}
        places |= {MEMBERS: history._members} if of_members else {}
        places |= {f"{_MEASURED}/{name}": columns for name, columns in history._measured.items()}
        known = {f"{table}/{name}" for table, columns in places.items() for name in columns}
        if not known >= tables.keys():
            raise CheckpointError(source, f"has history/{min(tables.keys() - known)}, which is not one of its tables.")
        for table, columns in places.items():
            for name, column in columns.items():
                values = tables.get(f"{table}/{name}")
                if values is None or values.ndim != 1:
                    raise CheckpointError(source, f"has no column {name!r} in history/{table}, expected one.")
                column.extend(values.tolist())
            if len({len(column) for column in columns.values()}) != 1:
                raise CheckpointError(source, f"has columns of different lengths in history/{table}.")
        return history


def _log_rows(trainer: Trainer, record: TrainingRecord) -> LogRows:
    ended, learner = record.episodes, trainer.learner
    any_ended = len(ended["step"]) > 0
    row: dict[str, float] = {
        "step": trainer.step,
        "updates": int(learner.updates),
        "episodes": int(learner.episodes),
        "mean_return": float(ended["return"].mean()) if any_ended else float("nan"),
        "mean_length": float(ended["length"].mean()) if any_ended else float("nan"),
        **record.means,
    }
    if record.decided is None:
        return LogRows(row, ended, None)
    targets = float(record.decided.sum())
    shares = record.decided / targets if targets else np.full(len(record.decided), np.nan)
    members = {f"member_{k}": float(share) for k, share in enumerate(shares)}
    return LogRows(row, ended, {"step": trainer.step, "targets": targets} | members)


def _arrays(columns: Columns) -> dict[str, np.ndarray]:
    return {name: np.array(column, np.float64) for name, column in columns.items()}
