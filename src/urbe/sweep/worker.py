"""A process that performs one job after the other for `urbe.sweep.local.LocalProcesses`.

A worker is a fresh interpreter that imports this module and nothing else: it does not run the script that started the
sweep, so a script needs no `if __name__ == "__main__":` guard. The script is run only where a job is defined in it, and
the sweep it starts is then refused with the reason.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import Pipe, spawn
from multiprocessing.connection import Connection
from types import FrameType
from typing import IO, NamedTuple

from urbe.sweep.cells import Job
from urbe.sweep.threads import environment, one_thread

READY = "ready"
"""The first message of a worker: it has started, and from now on its standard error is the launcher's."""

_COMMAND = "import sys; sys.path[:] = {path!r}; from urbe.sweep.worker import serve; serve({channel}, {alive}, {error})"

_running_script = False


class Worker(NamedTuple):
    """A process, the channel to it, a pipe that closes with the launcher, and what it wrote while it started."""

    process: subprocess.Popen[bytes]
    channel: Connection
    alive: int
    log: IO[bytes]

    def send(self, job: Job) -> None:
        """Hands a job over. A process that has died is noticed when its answer is awaited."""
        with suppress(OSError):
            self.channel.send_bytes(pickle.dumps((_script(), pickle.dumps(job))))

    def close(self) -> str:
        """Waits for a process that ends by itself; what it wrote to standard error while it started."""
        self.channel.close()
        self.process.wait()
        os.close(self.alive)
        self.log.seek(0)
        with self.log:
            return self.log.read().decode(errors="replace").strip()


def start() -> Worker:
    """A new process with one thread. The launcher decides about Ctrl-C: the process never hears it."""
    ours, theirs = Pipe()
    ear, alive = os.pipe()
    error, log = os.dup(2), tempfile.TemporaryFile()  # noqa: SIM115, the worker closes it
    passed = (theirs.fileno(), ear, error)
    command = _COMMAND.format(path=sys.path, channel=passed[0], alive=passed[1], error=passed[2])
    try:
        with environment(one_thread()), _without_interrupts():
            process = subprocess.Popen([sys.executable, "-c", command], pass_fds=passed, stderr=log)
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
    """The life of a worker: jobs in, None or what went wrong out, until the other end closes.

    Args:
      channel: descriptor of the connection to the launcher.
      alive: descriptor of a pipe that closes when the launcher ends.
      error: descriptor of the launcher's standard error.
    """
    from urbe.sweep.work import perform

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # also where signals cannot be blocked
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_end_with_launcher, args=(alive,), daemon=True, name="guard").start()
    sys.stderr.flush()
    os.dup2(error, 2)
    os.close(error)
    with Connection(channel) as launcher:
        launcher.send(READY)
        while True:
            try:
                content = launcher.recv_bytes()
            except EOFError:
                return
            try:
                perform(_load(content))  # which imports the experiment, and that may fail like anything else
            except Exception:
                launcher.send(traceback.format_exc())
            else:
                launcher.send(None)


def refuse_inside_script() -> None:
    """Raises when a worker is running the script of its sweep, and the script starts the sweep once more."""
    if _running_script:
        raise RuntimeError("A script started a sweep while a worker of that sweep imported it.")


def _script() -> Mapping[str, str]:
    """How a worker finds the script that this process runs; empty for an interactive one."""
    data = spawn.get_preparation_data("worker")
    return {key: value for key, value in data.items() if key.startswith("init_main_from_")}


def _load(content: bytes) -> Job:
    script, pickled = pickle.loads(content)

    class Unpickler(pickle.Unpickler):
        """Runs the script before something is looked up in it."""

        def find_class(self, module: str, name: str) -> object:
            if module == "__main__":
                _run_script(script)
            return super().find_class(module, name)

    job: Job = Unpickler(io.BytesIO(pickled)).load()
    if job.module == "__main__":
        _run_script(script)
    return job


def _run_script(script: Mapping[str, str]) -> None:
    global _running_script
    _running_script = True
    try:
        spawn.prepare(dict(script))  # at most once: it is `__main__` afterwards
    except (Exception, SystemExit) as error:
        raise RuntimeError(
            f"The experiment is defined in the script that was started, and a worker could not import it: {error!r}. "
            'Put what shall run once, such as the call of reproduce or sweep, under `if __name__ == "__main__":`, or '
            "move the experiment to a module of its own."
        ) from error
    finally:
        _running_script = False


def _end_with_launcher(alive: int) -> None:
    """Ends this process when its launcher is gone: the next one would find the cell taken."""
    os.read(alive, 1)
    os._exit(1)


def _leave(signum: int, _: FrameType | None) -> None:
    raise SystemExit(128 + signum)  # so that half-written files are removed on the way out


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes started within do not hear Ctrl-C, from their first moment on; ours arrives at the end."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
