"""What an agent has lived through: rows of diagnostics, and every episode."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from urbe.deep.meters import PER_STEP, PER_UPDATE
from urbe.deep.trainer import Trainer
from urbe.io.errors import CheckpointError

LOG = ("step", "updates", "episodes", "mean_return", "mean_length", *PER_UPDATE, *PER_STEP)
"""Columns of the log; the means are over the steps, updates or episodes since the row before."""

EPISODES = ("step", "return", "length")
"""Columns of the episodes: the step they ended at, their undiscounted return, how many steps they had."""


class History:
    """Two tables that grow."""

    def __init__(self) -> None:
        self._log: dict[str, list[float]] = {name: [] for name in LOG}
        self._episodes: dict[str, list[float]] = {name: [] for name in EPISODES}

    @property
    def log(self) -> dict[str, np.ndarray]:
        """One row per `log_every` steps, columns `LOG`."""
        return {name: np.array(column, np.float64) for name, column in self._log.items()}

    @property
    def episodes(self) -> dict[str, np.ndarray]:
        """One row per episode that ended before the last row of the log, columns `EPISODES`."""
        return {name: np.array(column, np.float64) for name, column in self._episodes.items()}

    def add(self, trainer: Trainer) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        """One row more, of what the trainer collected; gives that row and its episodes."""
        record, learner = trainer.collect(), trainer.learner
        ended = record.episodes
        any_ended = len(ended["step"]) > 0
        row: dict[str, float] = {
            "step": trainer.step,
            "updates": int(learner.updates),
            "episodes": int(learner.episodes),
            "mean_return": float(ended["return"].mean()) if any_ended else float("nan"),
            "mean_length": float(ended["length"].mean()) if any_ended else float("nan"),
            **record.means,
        }
        for name in LOG:
            self._log[name].append(row[name])
        for name in EPISODES:
            self._episodes[name].extend(ended[name].tolist())
        return row, ended

    def state(self) -> dict[str, dict[str, np.ndarray]]:
        """Both tables."""
        return {"log": self.log, "episodes": self.episodes}

    @staticmethod
    def of(tables: Mapping[str, np.ndarray], source: str | os.PathLike[str]) -> History:
        """The history that `state` gave, as `log/step` and so on."""
        history = History()
        known = {f"{table}/{name}" for table, names in (("log", LOG), ("episodes", EPISODES)) for name in names}
        if not known >= tables.keys():
            raise CheckpointError(source, f"has history/{min(tables.keys() - known)}, for which there is no place.")
        for table, columns in (("log", history._log), ("episodes", history._episodes)):
            for name, column in columns.items():
                values = tables.get(f"{table}/{name}")
                if values is None or values.ndim != 1:
                    raise CheckpointError(source, f"has no column {name!r} in history/{table}, expected one.")
                column.extend(values.tolist())
            if len({len(column) for column in columns.values()}) != 1:
                raise CheckpointError(source, f"has columns of different lengths in history/{table}.")
        return history
