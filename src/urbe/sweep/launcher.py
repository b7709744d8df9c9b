"""What a launcher is: it gets jobs, sees that each is performed somewhere, and reports events.

`urbe.sweep.local.LocalProcesses` and `urbe.sweep.ray.Ray` are the two there are. A launcher stores nothing and draws
nothing: performing a job (`urbe.sweep.work`) leaves its rows in the store. A cell that raises has failed, and would
again. A cell whose process died is begun again, a few times, from what it left in its folder.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from urbe.sweep.cells import Job

RETRIES = 3
"""How often a cell is begun again whose process died."""

TICK = 1.0
"""Seconds within which a launcher yields an event, if only that time has passed."""

XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"

JAX_ONE_THREAD = {"NPROC": "1", "XLA_FLAGS": XLA_ONE_THREAD}
"""Environment variables; the first sizes XLA's pool of threads: a pool of two takes a third longer per step."""


def one_thread() -> dict[str, str]:
    """Environment variables of a process with one thread, so that rows do not depend on how many run side by side.

    XLA's other flags stay.
    """
    flags = os.environ.get("XLA_FLAGS", "").split()
    kept = [flag for flag in flags if not flag.startswith("--xla_cpu_multi_thread_eigen")]
    libraries = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
    return {**libraries, "NPROC": "1", "XLA_FLAGS": " ".join([*kept, XLA_ONE_THREAD])}


class Event(NamedTuple):
    """What happened.

    Attributes:
      kind: a job was "begun", is "done", has "failed" for good, was "lost" with its process and will be begun again;
        or nothing but time has passed ("tick").
      job: which; None for ticks.
      text: what went wrong, ending in one line that says it all.
    """

    kind: Literal["begun", "done", "failed", "lost", "tick"]
    job: Job | None = None
    text: str = ""


class Launcher(Protocol):
    """Runs jobs."""

    def launch(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """Performs all jobs, begun in this order, and yields events; a failed one keeps no other from running.

        Closing the iterator stops everything that runs.
        """

    def __str__(self) -> str:
        """In words, for people who watch."""


class Failure(NamedTuple):
    """A cell that did not finish: its job, and what happened, ending in one line that says it all."""

    job: Job
    text: str


class CellsFailed(RuntimeError):
    """Some cells did not finish; all others did, and are kept."""

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
    """Processes died one after the other before they were ready: no cell is to blame, and more would die too.

    Args:
      times: how many.
      how: the way in which the last one ended.
      wrote: what it wrote to standard error.
    """

    def __init__(self, times: int, how: str, wrote: str) -> None:
        last = "\n".join(wrote.splitlines()[-12:])
        super().__init__(
            f"{times} processes in a row died before they could run a cell; the last one {how}. Finished cells are "
            "kept. Correct the cause and run again.\n" + (f"It wrote:\n{last}" if last else "It wrote nothing.")
        )


class Losses:
    """Counts how often each job was lost, and says when that is enough.

    Args:
      retries: how often a job is begun again.
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
