"""The log of a run for TensorBoard (extra `urbe[tensorboard]`).

A resumed run opens a new file of events and tells TensorBoard to forget what earlier files hold of later steps, so that
a curve shows every step once. Events are written when `write` returns, and on the disk when `sync` does.
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

_MISSING = "TensorBoard output needs tensorboardX; install it with `pip install 'urbe[tensorboard]'`."


class Events:
    """A file of events, open for writing.

    Tags are `train/loss` and so on for the columns of the log, `episode/return` and `episode/length` for episodes.

    Args:
      folder: where TensorBoard looks; made when it is not there.
      done: the last step whose row has been written; later ones in earlier files no longer count.
    """

    def __init__(self, folder: str | os.PathLike[str], done: int) -> None:
        try:
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto.event_pb2 import Event, SessionLog
            from tensorboardX.proto.summary_pb2 import Summary
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(_MISSING, name=error.name) from None
        self._event, self._summary = Event, Summary
        Path(folder).mkdir(exist_ok=True)
        # the name begins with the second of opening, and files are read by name: the rest puts two of a second in order
        self._file: Any = EventsWriter(str(Path(folder, "events")), f".{time.time_ns()}")
        self._add(done + 1, session_log=SessionLog(status=SessionLog.START))

    def write(self, row: Mapping[str, float], ended: Mapping[str, np.ndarray]) -> None:
        """Adds a row of the log and the episodes that ended since the one before."""
        columns = {name: column.tolist() for name, column in ended.items()}
        for i, step in enumerate(columns.pop("step")):
            self._scalars(step, {f"episode/{name}": column[i] for name, column in columns.items()})
        self._scalars(int(row["step"]), {f"train/{name}": value for name, value in row.items() if name != "step"})

    def sync(self) -> None:
        """Returns when all events are on the disk."""
        self._file.flush()

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _scalars(self, step: int, values: Mapping[str, float]) -> None:
        known = {tag: value for tag, value in values.items() if not math.isnan(value)}
        entries = [self._summary.Value(tag=tag, simple_value=value) for tag, value in known.items()]
        self._add(step, summary=self._summary(value=entries))

    def _add(self, step: int, **content: Any) -> None:
        self._file.write_event(self._event(wall_time=time.time(), step=step, **content))
