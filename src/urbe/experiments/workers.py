"""Cells in parallel processes: each computes a cell, writes it to disk, and asks for the next.

Processes are spawned, so that each begins like a fresh interpreter, with one thread for linear algebra: rows do not
depend on how many run side by side. What one writes is whole on disk before it says so; a process that dies takes only
the cell it was at, and is replaced.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from urbe.experiments import store
from urbe.experiments.sources import code_digest

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}

PATIENCE = 5.0
"""Seconds a process gets to clean up when told to stop; compiled code does not listen before it ends."""


@dataclass(frozen=True)
class Job:
    """One cell to run.

    Attributes:
      module: of its experiment.
      code: the digest of that module's sources when the run began.
      cell: the cell.
      identity: see `store.cell_hash`.
      path: file to write.
      folder: what the cell may use while it runs; deleted once it is finished.
    """

    module: str
    code: str
    cell: Any
    identity: str
    path: Path
    folder: Path


class Failure(NamedTuple):
    """A cell that did not finish: its job, and what happened, ending in one line that says it all."""

    job: Job
    text: str


class CellsFailed(RuntimeError):
    """Some cells did not finish; all others did, and are kept."""

    def __init__(self, failures: Sequence[Failure], n_jobs: int) -> None:
        self.failures = tuple(failures)
        lines = [f"  {_named(job)}: {text.strip().splitlines()[-1]}" for job, text in failures]
        first = failures[0]
        super().__init__(
            f"{len(failures)} of {n_jobs} cells failed; the others are kept. Correct the cause and run again.\n"
            + "\n".join(lines)
            + f"\n\nOf {_named(first.job)}:\n{first.text.strip()}"
        )


def run_jobs(jobs: Sequence[Job], processes: int, finished: Callable[[Job], None]) -> None:
    """Runs all jobs; a failed one does not keep the others from running.

    Args:
      jobs: in the order in which to begin them.
      processes: how many at once.
      finished: called with each job that ended, well or not.

    Raises:
      CellsFailed: at the end, naming the cells that raised or crashed.
    """
    waiting = list(reversed(jobs))
    failures: list[Failure] = []
    started: list[BaseProcess] = []
    busy: dict[Connection, tuple[BaseProcess, Job]] = {}
    try:
        for _ in range(min(processes, len(jobs))):
            _give(_start(started), waiting.pop(), busy)
        while busy:
            for channel in connection.wait(list(busy)):
                assert isinstance(channel, Connection)
                process, job = busy.pop(channel)
                alive, text = _answer(channel, process)
                if text is not None:
                    failures.append(Failure(job, text))
                finished(job)
                if waiting:
                    _give((process, channel) if alive else _start(started), waiting.pop(), busy)
                elif alive:
                    channel.close()  # the process sees the end and leaves
                    process.join()
    finally:
        _stop([process for process in started if process.is_alive()])
    if failures:
        order = {job.path: i for i, job in enumerate(jobs)}
        raise CellsFailed(sorted(failures, key=lambda failure: order[failure.job.path]), len(jobs))


def _give(worker: tuple[BaseProcess, Connection], job: Job, busy: dict[Connection, tuple[BaseProcess, Job]]) -> None:
    process, channel = worker
    busy[channel] = process, job
    with suppress(OSError):  # a process that is already dead is noticed when its answer is awaited
        channel.send(job)


def _start(started: list[BaseProcess]) -> tuple[BaseProcess, Connection]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    with _environment(ONE_THREAD), _without_interrupts():
        process.start()
        started.append(process)
    theirs.close()
    return process, ours


def _answer(channel: Connection, process: BaseProcess) -> tuple[bool, str | None]:
    """Whether the process lives, and what went wrong, if anything."""
    try:
        text: str | None = channel.recv()
    except (EOFError, OSError):
        process.join()
        channel.close()
        code = process.exitcode or 0
        how = f"was killed by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"
        hint = "; that is how the system ends a process that takes too much memory" if code == -signal.SIGKILL else ""
        return False, f"Its process {how}{hint}."
    return True, text


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
    digests: dict[str, str] = {}
    while True:
        try:
            _run(channel.recv(), digests)
        except EOFError:
            return
        except Exception:
            channel.send(traceback.format_exc())
        else:
            channel.send(None)


def _run(job: Job, digests: dict[str, str]) -> None:
    """Runs a job; `digests` holds those of the modules imported before, whose files may have changed since."""
    experiment = importlib.import_module(job.module)
    if job.module not in digests:
        digests[job.module] = code_digest(job.module)
    if digests[job.module] != job.code:
        raise RuntimeError("The code changed while the run was under way; run again.")
    begun = time.perf_counter()
    job.folder.mkdir(parents=True, exist_ok=True)
    rows = experiment.run(job.cell, job.folder)
    store.save(job.path, job.identity, experiment.Row, store.Finished(rows, time.perf_counter() - begun))
    shutil.rmtree(job.folder)


def _leave(signum: int, _: FrameType | None) -> None:
    raise SystemExit(128 + signum)  # so that half-written files are removed on the way out


def _named(job: Job) -> str:
    return f"{job.path.parent.name}/{job.cell.name}"


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


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables for processes started within; numpy reads them once, when it is imported."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
