"""The worker process of `urbe.sweep.local.LocalProcesses`, which performs one job after the other.

A worker is a fresh interpreter that imports this module and nothing else: it does not run the script that started the
sweep, so a script needs no `if __name__ == "__main__":` guard.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import FrameType
from typing import IO, NamedTuple

from urbe.sweep.cells import Job, job_from_json
from urbe.sweep.launcher import one_thread

READY = b"ready"
"""The first message of a worker: it has started, and from now on its standard error is the launcher's."""

DONE = b"done"
"""The answer after a performed job; any other answer is the text of an error."""

_COMMAND = "import sys; sys.path[:] = {path!r}; from urbe.sweep.worker import serve; serve({channel}, {alive}, {error})"


class Worker(NamedTuple):
    """A process, its channel, a pipe that closes with the launcher, and its output during the start."""

    process: subprocess.Popen[bytes]
    channel: Connection
    alive: int
    log: IO[bytes]

    def send(self, job: Job) -> None:
        """Sends a job. A dead process is detected when its answer is awaited."""
        with suppress(OSError):
            self.channel.send_bytes(job.to_json().encode())

    def close(self) -> str:
        """Waits for a process that ends by itself; returns its standard error during the start."""
        self.channel.close()
        self.process.wait()
        os.close(self.alive)
        self.log.seek(0)
        with self.log:
            return self.log.read().decode(errors="replace").strip()


def start() -> Worker:
    """Starts a process with one thread, in a process group of its own: Ctrl-C reaches only the launcher."""
    ours, theirs = Pipe()
    ear, alive = os.pipe()
    error, log = os.dup(2), tempfile.TemporaryFile()  # noqa: SIM115, the worker closes it
    passed = (theirs.fileno(), ear, error)
    command = _COMMAND.format(path=sys.path, channel=passed[0], alive=passed[1], error=passed[2])
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", command],
            env={**os.environ, **one_thread()},
            pass_fds=passed,
            stderr=log,
            process_group=0,
        )
    except BaseException:
        ours.close()
        log.close()
        os.close(alive)
        raise
    finally:
        theirs.close()
        os.close(ear)
        os.close(error)
    return Worker(process, ours, alive, log)


def serve(channel: int, alive: int, error: int) -> None:
    """Serves jobs until the channel closes; answers each with `DONE` or the text of an error.

    Args:
      channel: descriptor of the connection to the launcher.
      alive: descriptor of a pipe that closes when the launcher ends.
      error: descriptor of the launcher's standard error.
    """
    from urbe.sweep.work import perform

    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_end_with_launcher, args=(alive,), daemon=True, name="guard").start()
    sys.stderr.flush()
    os.dup2(error, 2)
    os.close(error)
    with Connection(channel) as launcher:
        launcher.send_bytes(READY)
        while True:
            try:
                content = launcher.recv_bytes()
            except EOFError:
                return
            try:
                perform(job_from_json(content.decode()))  # imports the experiment, which may fail, too
            except Exception:
                launcher.send_bytes(traceback.format_exc().encode())
            else:
                launcher.send_bytes(DONE)


def _end_with_launcher(alive: int) -> None:
    """Ends this process when its launcher is gone, so that the cell does not stay locked."""
    os.read(alive, 1)
    os._exit(1)


def _leave(signum: int, _: FrameType | None) -> None:
    raise SystemExit(128 + signum)  # so that half-written files are removed on the way out
