"""The protocol of launchers: a launcher gets jobs, has each performed somewhere, and reports events.

There are two, `urbe.sweep.local.LocalProcesses` and `urbe.sweep.ray.Ray`. A launcher stores nothing: performing a job
(`urbe.sweep.work`) writes its rows to the store. A cell that raises has failed and is not restarted. A cell whose
process died is restarted a few times, from the files in its folder.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from urbe.sweep.cells import Job

RETRIES = 3
"""How often a cell is restarted after its process died."""

TICK = 1.0
"""A launcher yields an event at least this often, in seconds."""

XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"

JAX_ONE_THREAD = {"NPROC": "1", "XLA_FLAGS": XLA_ONE_THREAD}
"""Environment variables; the first sets the size of XLA's thread pool: with two threads a step takes a third longer."""


def one_thread() -> dict[str, str]:
    """Environment variables of a process with one thread, so that rows do not depend on how many run in parallel.

    Other flags of XLA are kept.
    """
    flags = os.environ.get("XLA_FLAGS", "").split()
    kept = [flag for flag in flags if not flag.startswith("--xla_cpu_multi_thread_eigen")]
    libraries = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
    return {**libraries, "NPROC": "1", "XLA_FLAGS": " ".join([*kept, XLA_ONE_THREAD])}


class Event(NamedTuple):
    """An event of a launcher.

    Attributes:
      kind: a job was "begun", is "done", has "failed" for good, or was "lost" with its process and will be restarted;
        "tick" only says that time has passed.
      job: the job; None for ticks.
      text: what went wrong; its last line is a summary.
    """

    kind: Literal["begun", "done", "failed", "lost", "tick"]
    job: Job | None = None
    text: str = ""


class Launcher(Protocol):
    """Runs jobs."""

    def launch(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """Performs all jobs, started in this order, and yields events; the others continue when one fails.

        Closing the iterator stops everything that runs.
        """

    def __str__(self) -> str:
        """A description for users."""


class Failure(NamedTuple):
    """A cell that did not finish: its job, and what happened; the last line of the text is a summary."""

    job: Job
    text: str


class CellsFailed(RuntimeError):
    """Some cells did not finish; all others are finished and kept."""

    def __init__(self, failures: Sequence[Failure], n_jobs: int) -> None:
        self.failures = tuple(failures)
        lines = [f"  {job}: {text.strip().splitlines()[-1]}" for job, text in failures]
        first = failures[0]
        super().__init__(
            f"{len(failures)} of {n_jobs} cells failed; the others are kept. Correct the cause and run again.\n"
            + "\n".join(lines)
            + f"\n\nOf {first.job}:\n{first.text.strip()}"
        )


class WorkersDoNotStart(RuntimeError):
    """Several processes in a row died before they were ready, so the cause is not a cell.

    Args:
      times: number of processes.
      how: how the last one ended.
      wrote: its output on standard error.
    """

    def __init__(self, times: int, how: str, wrote: str) -> None:
        last = "\n".join(wrote.splitlines()[-12:])
        super().__init__(
            f"{times} processes in a row died before they could run a cell; the last one {how}. Finished cells are "
            "kept. Correct the cause and run again.\n" + (f"It wrote:\n{last}" if last else "It wrote nothing.")
        )


class Losses:
    """Counts how often each job was lost, and decides when it has failed.

    Args:
      retries: how often a job is restarted.
    """

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._lost: Counter[str] = Counter()

    def event(self, job: Job, text: str) -> Event:
        """The event of a job whose process died."""
        self._lost[job.identity] += 1
        n = self._lost[job.identity]
        if n <= self._retries:
            return Event("lost", job, text)
        return Event("failed", job, f"{text} That was attempt {n}, the last." if n > 1 else text)
