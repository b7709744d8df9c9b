"""Run cells in processes of this machine: each process performs a job, reports it, and gets the next.

Each process is a fresh interpreter with one thread (`urbe.sweep.worker`). Rows are complete on disk before a job is
reported as done. If a process dies, only the work since its cell's last checkpoint is lost: the process is replaced and
the cell restarted. When the launcher itself dies, its processes end too. If three processes in a row cannot start, the
sweep stops and shows their output.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection

from urbe import checks
from urbe.sweep import worker
from urbe.sweep.cells import Job
from urbe.sweep.launcher import RETRIES, TICK, Event, Losses, WorkersDoNotStart
from urbe.sweep.provenance import cores
from urbe.sweep.worker import Worker

PATIENCE = 5.0
"""Seconds a process has to clean up after a request to stop; compiled code cannot be interrupted before it returns."""

STARTS = 3
"""Stop after this many processes in a row die before they are ready."""


@dataclass(frozen=True)
class LocalProcesses:
    """Processes of this machine.

    Args:
      processes: number of cells at once; None means one per core.
      retries: how often a cell is restarted after its process was killed.
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
        waiting = list(reversed(jobs))
        crew = _Crew(Losses(self.retries))
        try:
            while crew.busy or waiting:
                while waiting and len(crew.busy) < self._at_once():
                    job = waiting.pop()
                    crew.give(job)
                    yield Event("begun", job)
                spoke = connection.wait(list(crew.busy), TICK)
                for channel in spoke:
                    assert isinstance(channel, Connection)
                    event = crew.hear(channel)
                    if event.kind == "lost":
                        assert event.job is not None
                        waiting.insert(0, event.job)  # after the others, when the cause may have passed
                    yield event
                if not spoke:
                    yield Event("tick")
            crew.dismiss()
        finally:
            crew.stop()

    def _at_once(self) -> int:
        return cores() if self.processes is None else self.processes


class _Crew:
    """The processes of a sweep: working ones by their channels, idle ones, and those that are starting."""

    def __init__(self, losses: Losses) -> None:
        self.busy: dict[Connection, tuple[Worker, Job]] = {}
        self._idle: list[Worker] = []
        self._starting: set[Connection] = set()
        self._losses, self._failed_starts = losses, 0

    def give(self, job: Job) -> None:
        """Gives a job to an idle process, or to a new one."""
        if self._idle:
            one = self._idle.pop()
        else:
            one = worker.start()
            self._starting.add(one.channel)
        self.busy[one.channel] = one, job
        one.send(job)

    def hear(self, channel: Connection) -> Event:
        """Returns the message of a process, or an event if it died."""
        one, job = self.busy[channel]
        try:
            answer = channel.recv_bytes()
        except (EOFError, OSError):
            del self.busy[channel]
            wrote = one.close()
            return self._lost(channel, job, _how_it_ended(one.process.returncode), wrote)
        if answer == worker.READY:
            self._starting.remove(channel)
            self._failed_starts = 0
            return Event("tick")
        del self.busy[channel]
        self._idle.append(one)
        return Event("done", job) if answer == worker.DONE else Event("failed", job, answer.decode())

    def _lost(self, channel: Connection, job: Job, how: str, wrote: str) -> Event:
        if channel not in self._starting:
            return self._losses.event(job, f"Its process {how}.")
        self._starting.remove(channel)
        self._failed_starts += 1
        if self._failed_starts >= STARTS:
            raise WorkersDoNotStart(self._failed_starts, how, wrote)
        return Event("lost", job, f"Its process {how} before it was ready.")

    def dismiss(self) -> None:
        """Ends the idle processes."""
        while self._idle:
            self._idle.pop().close()  # the process sees the end of the channel

    def stop(self) -> None:
        """Ends all processes."""
        workers = [*self._idle, *(one for one, _ in self.busy.values())]
        for one in workers:
            one.process.terminate()
        end = time.monotonic() + PATIENCE
        for one in workers:
            try:
                one.process.wait(max(end - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                one.process.kill()
            one.close()


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    hint = "; the system does so when a process takes too much memory" if code == -signal.SIGKILL else ""
    return f"was killed by signal {-code} ({signal.Signals(-code).name}){hint}"
