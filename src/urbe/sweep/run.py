"""Run a sweep: find the finished cells, run the others, and report the status."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from urbe.runs import lock
from urbe.sweep import store
from urbe.sweep.cells import Job
from urbe.sweep.finished import write_plan
from urbe.sweep.launcher import CellsFailed, Launcher
from urbe.sweep.status import State, Status, StatusTracker, write_status

Watch = Callable[[Status], None]

EVERY = 1.0
"""Shortest time between two status reports, in seconds."""


def sweep(
    output: Path,
    jobs: Mapping[str, Sequence[Job]],
    launcher: Launcher,
    *,
    scale: str = "",
    options: str = "",
    watch: Watch | None = None,
) -> None:
    """Runs the unfinished cells, the most expensive first, and returns when all are finished.

    Interruptions cost little: a finished cell is never run again, and an interrupted one resumes from its folder, in
    this call or the next. Only one sweep at a time may work in a folder.

    Args:
      output: the folder; see `urbe.sweep.finished` and `urbe.sweep.status` for what is written there besides cells.
      jobs: the jobs of each experiment, by its name.
      launcher: runs the cells. Rows do not depend on it.
      scale, options: written into the plan.
      watch: called with the status at the beginning, at most every second in between, and at the end.

    Raises:
      CellsFailed: some cells failed; all others are finished and kept.
      RunLocked: another sweep works in the folder.
      WorkersDoNotStart: processes of this machine die before they can run a cell.
    """
    every = [job for mine in jobs.values() for job in mine]
    output.mkdir(parents=True, exist_ok=True)
    held = lock.acquire(output / "sweep.lock")
    try:
        write_plan(output, scale, jobs, options)
        kept: dict[str, float] = {}
        missing: list[Job] = []
        for job in every:
            record = store.load_record(job.rows, job.identity)
            if record is None:
                missing.append(job)
            else:
                kept[job.identity] = record.seconds
        missing.sort(key=lambda job: -job.cost)  # stable: equal ones stay in order
        tracker = StatusTracker(jobs, kept, str(launcher))
        _run(output, missing, launcher, tracker, watch)
    finally:
        lock.release(held)
    if tracker.failures:
        order = {job.identity: i for i, job in enumerate(every)}
        raise CellsFailed(sorted(tracker.failures, key=lambda failure: order[failure.job.identity]), len(missing))


def _run(output: Path, missing: Sequence[Job], launcher: Launcher, tracker: StatusTracker, watch: Watch | None) -> None:
    reported = 0.0

    def report(state: State) -> None:
        nonlocal reported
        status = tracker.status(state)
        write_status(output, status)
        if watch is not None:
            watch(status)
        reported = time.monotonic()

    state: State = "stopped"
    report("running")
    try:
        with closing(launcher.launch(missing)) as events:  # type: ignore[type-var]
            for event in events:
                tracker.take(event, _seconds(event.job) if event.kind == "done" and event.job else 0.0)
                if time.monotonic() - reported > EVERY:
                    report("running")
        state = "failed" if tracker.failures else "done"
    finally:
        report(state)


def _seconds(job: Job) -> float:
    record = store.load_record(job.rows, job.identity)
    if record is None:
        raise OSError(f"{job.rows} was changed by another program during the run. Run again.")
    return record.seconds
