"""Lock a run's folder, so that one process at a time works there.

The operating system holds the lock (`flock`) and frees it when the process ends in any way. The file stays, and names
the process that holds the lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from datetime import UTC, datetime
from typing import Any


class RunLocked(RuntimeError):
    """Another process works in the folder; the message names it.

    Args:
      path: the lock file.
      holder: `pid`, `host` and `started` of the process that holds it, as far as known.
    """

    def __init__(self, path: str | os.PathLike[str], holder: dict[str, Any]) -> None:
        super().__init__(path, holder)
        self.path, self.holder = path, holder

    def __str__(self) -> str:
        pid, host, started = (self.holder.get(key, "unknown") for key in ("pid", "host", "started"))
        return (
            f"{os.fspath(self.path)}: locked by process {pid} on host {host} since {started}. Wait for it or end it; "
            "if it is gone, a process it started still holds the lock. Do not delete the file."
        )


def acquire(path: str | os.PathLike[str]) -> int:
    """Takes the lock, or raises `RunLocked` at once; returns the descriptor for `release`."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunLocked(path, _holder(descriptor)) from None
        started = datetime.now(UTC).isoformat(timespec="seconds")
        note = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": started}) + "\n"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, note.encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def release(descriptor: int) -> None:
    """Frees the lock."""
    try:
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> dict[str, Any]:
    try:
        note = json.loads(os.pread(descriptor, 4096, 0))
    except (ValueError, RecursionError):
        return {}  # just taken: nothing is written yet
    return note if isinstance(note, dict) else {}
