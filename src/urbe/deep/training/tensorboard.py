"""Write the log of a run for TensorBoard (extra `urbe[tensorboard]`).

A resumed run opens a new file of events and makes TensorBoard discard later steps of earlier files, so that a curve
shows every step once. Events are written when `write` returns, and on disk when `sync` returns.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from urbe.deep.training.callbacks import Row
from urbe.deep.training.history import History
from urbe.deep.training.recording import Recorded
from urbe.extras import need


class Events:
    """A file of events, open for writing.

    Tags are `train/loss` and so on for the columns of the log, `episode/return` and `episode/length` for episodes,
    `evaluation/mean` and so on for the columns that a callback measures.

    Args:
      folder: the folder for TensorBoard, created if it is missing.
      history: the history written so far, up to its last row of the log; later steps of earlier files are discarded,
        and measurements since then are written again.
    """

    def __init__(self, folder: str | os.PathLike[str], history: History) -> None:
        need("Files for TensorBoard", "tensorboardX")
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog
        from tensorboardX.proto.summary_pb2 import Summary

        self._event, self._summary = Event, Summary
        Path(folder).mkdir(exist_ok=True)
        # files are read by name, which begins with the second of opening: the rest orders two files of the same second
        self._file: Any = EventsWriter(str(Path(folder, "events")), f".{time.time_ns()}")
        done = int(max(history.log["step"], default=0))
        self._add(done + 1, session_log=SessionLog(status=SessionLog.START))
        for name, table in history.measured.items():
            for i in np.flatnonzero(table["step"] > done):
                self._row(name, {column: float(values[i]) for column, values in table.items()})

    def write(self, recorded: Recorded) -> None:
        """Adds the records of a step: a row of the log, its episodes, and measurements of callbacks."""
        if recorded.logged is not None:
            columns = {name: column.tolist() for name, column in recorded.logged.episodes.items()}
            for i, step in enumerate(columns.pop("step")):
                self._scalars(step, {f"episode/{name}": column[i] for name, column in columns.items()})
            self._row("train", recorded.logged.row)
            if recorded.logged.members is not None:
                self._row("members", recorded.logged.members)
        for name, row in recorded.measured.items():
            self._row(name, row)

    def sync(self) -> None:
        """Returns when all events are on the disk."""
        self._file.flush()

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _row(self, group: str, row: Row) -> None:
        self._scalars(int(row["step"]), {f"{group}/{name}": value for name, value in row.items() if name != "step"})

    def _scalars(self, step: int, values: Mapping[str, float]) -> None:
        known = {tag: value for tag, value in values.items() if not math.isnan(value)}
        entries = [self._summary.Value(tag=tag, simple_value=value) for tag, value in known.items()]
        self._add(step, summary=self._summary(value=entries))

    def _add(self, step: int, **content: Any) -> None:
        self._file.write_event(self._event(wall_time=time.time(), step=step, **content))
