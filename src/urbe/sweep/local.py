"""Cells in processes of this machine: each performs a job, says so, and gets the next.

Processes are spawned, so that each begins like a fresh interpreter, with one thread. What one writes is whole on disk
before it says so. One that dies takes only what its cell did since the last checkpoint: it is replaced, and the cell
begun again. When the launcher itself dies, however, its processes end too.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import NamedTuple

from urbe import checks
from urbe.sweep.cells import Job
from urbe.sweep.launcher import RETRIES, TICK, Event, Losses
from urbe.sweep.provenance import cores
from urbe.sweep.threads import environment, one_thread
from urbe.sweep.work import perform

PATIENCE = 5.0
"""Seconds a process gets to clean up when told to stop; compiled code does not listen before it ends."""


class _Worker(NamedTuple):
    process: BaseProcess
    channel: Connection


@dataclass(frozen=True)
class Local:
    """Processes of this machine.

    Args:
      processes: how many cells at once; None is one for each core.
      retries: how often a cell is begun again whose process was killed.
    """

    processes: int | None = None
    retries: int = RETRIES

    def __post_init__(self) -> None:
        if self.processes is not None:
            checks.whole_number("processes", self.processes, 1)
        checks.whole_number("retries", self.retries, 0)

    def __str__(self) -> str:
        n = self._at_once()
        return f"{n} process{'es' if n > 1 else ''} of this machine"

    def launch(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """See `urbe.sweep.launcher.Launcher`."""
        waiting = list(reversed(jobs))
        losses = Losses(self.retries)
        started: list[BaseProcess] = []
        idle: list[_Worker] = []
        busy: dict[Connection, tuple[_Worker, Job]] = {}
        try:
            while busy or waiting:
                while waiting and len(busy) < self._at_once():
                    worker, job = idle.pop() if idle else _start(started), waiting.pop()
                    busy[worker.channel] = worker, job
                    with suppress(OSError):  # a process that is already dead is noticed when its answer is awaited
                        worker.channel.send_bytes(pickle.dumps(job))
                    yield Event("begun", job)
                spoke = connection.wait(list(busy), TICK)
                for channel in spoke:
                    assert isinstance(channel, Connection)
                    worker, job = busy.pop(channel)
                    event = _answer(worker, job, losses, idle)
                    if event.kind == "lost":
                        waiting.insert(0, job)  # the others first: whatever killed it may have passed by then
                    yield event
                if not spoke:
                    yield Event("tick")
            for worker in idle:
                worker.channel.close()  # the process sees the end and leaves
                worker.process.join()
        finally:
            _stop([process for process in started if process.is_alive()])

    def _at_once(self) -> int:
        return cores() if self.processes is None else self.processes


def _start(started: list[BaseProcess]) -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    with environment(one_thread()), _without_interrupts():
        process.start()
        started.append(process)
    theirs.close()
    return _Worker(process, ours)


def _answer(worker: _Worker, job: Job, losses: Losses, idle: list[_Worker]) -> Event:
    """What became of a job whose process spoke, or died; a process that lives goes to `idle`."""
    try:
        text: str | None = worker.channel.recv()
    except (EOFError, OSError):
        worker.process.join()
        worker.channel.close()
        code = worker.process.exitcode or 0
        how = f"was killed by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"
        hint = "; that is how the system ends a process that takes too much memory" if code == -signal.SIGKILL else ""
        return losses.event(job, f"Its process {how}{hint}.")
    idle.append(worker)
    return Event("done", job) if text is None else Event("failed", job, text)


def _stop(processes: Sequence[BaseProcess]) -> None:
    for process in processes:
        process.terminate()
    end = time.monotonic() + PATIENCE
    for process in processes:
        process.join(max(end - time.monotonic(), 0.0))
        if process.is_alive():
            process.kill()
            process.join()


def _work(channel: Connection) -> None:
    """The life of a process: jobs in, "well done" (None) or what went wrong out, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides, also where signals cannot be blocked
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_end_with_parent, daemon=True, name="guard").start()
    while True:
        try:
            content = channel.recv_bytes()
        except EOFError:
            return
        try:
            perform(pickle.loads(content))  # which imports the experiment, and that may fail like anything else
        except Exception:
            channel.send(traceback.format_exc())
        else:
            channel.send(None)


def _end_with_parent() -> None:
    """Ends this process when its launcher is gone: the next one would find the cell taken."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _leave(signum: int, _: FrameType | None) -> None:
    raise SystemExit(128 + signum)  # so that half-written files are removed on the way out


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes started within do not hear Ctrl-C, from their first moment on; ours arrives at the end."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # when started by the first process, it would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
