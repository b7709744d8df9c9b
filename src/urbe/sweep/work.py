"""One job, performed: the code is looked at, the cell run in its folder, and its rows stored.

Whoever performs a job holds the lock of the cell's directory, so that two never work in one. While it runs,
`running.json` in that directory tells who works there and since when, every few seconds:

    {"identity": "...", "pid": 123, "begun": "2026-01-31T12:00:00+00:00", "attempts": 2, "seconds": 81.5}

`seconds` are those of all attempts at this identity; what a killed one took is known to a few seconds.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from urbe.runs import lock
from urbe.sweep import progress, provenance, store
from urbe.sweep.cells import Job, configuration
from urbe.sweep.sources import digest, experiment_sources

RUNNING = "running.json"

PATIENCE = 30.0
"""Seconds to wait for a process that still holds a cell: one whose launcher was killed takes a moment to notice."""

EVERY = 2.0
"""Seconds between two looks at the clock."""


def perform(job: Job) -> None:
    """Runs a cell and stores its rows; returns at once when that is done already.

    Raises:
      RuntimeError: the code on this machine is not the job's.
      RunLocked: another process works on the cell, and goes on doing so.
      Exception: whatever the cell raises.
    """
    experiment: Any = importlib.import_module(job.module)
    code, packages = _imported(job.module, *job.also)
    if code != job.code:
        raise RuntimeError(
            "The code changed while the run was under way; run again. On a cluster: all machines need the same code."
        )
    if "jax" in packages:
        _keep_compiled()
    job.folder.mkdir(parents=True, exist_ok=True)
    with _alone(job.folder):
        if store.load_record(job.rows, job.identity) is None:
            job.work.mkdir(exist_ok=True)
            with _clock(job) as taken:
                rows = experiment.run(job.cell, job.work)
            seconds, attempts = taken()
            store.save(job.rows, experiment.Row, store.Stored(rows, _record(job, seconds, attempts)))
        for folder in job.folder.glob("work-*"):  # of other code, too: they are of no use any more
            shutil.rmtree(folder, ignore_errors=True)
        (job.folder / RUNNING).unlink(missing_ok=True)


def running_seconds(job: Job) -> float:
    """What a job that is being performed has taken so far."""
    notes = progress.read(job.folder / RUNNING)
    return float(notes["seconds"]) if notes.get("identity") == job.identity else 0.0


def _record(job: Job, seconds: float, attempts: int) -> store.CellRecord:
    return store.CellRecord(
        experiment=job.experiment,
        cell=job.cell.name,
        config=configuration(job.cell),
        identity=job.identity,
        code=job.code,
        commit=_commit(),
        versions=provenance.versions(),
        machine=provenance.machine(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=seconds,
        attempts=attempts,
    )


@cache
def _imported(*modules: str) -> tuple[str, tuple[str, ...]]:
    """Digest and packages of an experiment as they were when this process imported it."""
    found = experiment_sources(*modules)
    return digest(found), found.packages


@cache
def _commit() -> str | None:
    return provenance.commit()


@cache
def _keep_compiled() -> None:
    """Programs that XLA compiled are kept on the disk, and found there by the next process."""
    from urbe.deep.compilation import cache_compilation

    with suppress(OSError):  # without a place to write, programs are compiled every time
        cache_compilation()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            held = lock.acquire(folder / "lock")
            break
        except lock.RunLocked:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
    try:
        yield
    finally:
        lock.release(held)


@contextmanager
def _clock(job: Job) -> Iterator[Callable[[], tuple[float, int]]]:
    """Keeps `running.json`; gives a function that says the seconds and attempts it took, those before included."""
    path = job.folder / RUNNING
    before = progress.read(path)
    same = before.get("identity") == job.identity
    earlier, attempts = (float(before["seconds"]), int(before["attempts"]) + 1) if same else (0.0, 1)
    begun, since = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    ended = threading.Event()

    def taken() -> tuple[float, int]:
        return earlier + time.perf_counter() - begun, attempts

    def write() -> None:
        notes = {"identity": job.identity, "pid": os.getpid(), "begun": since, "attempts": attempts}
        with suppress(OSError):  # a full disk shall not end the cell here
            progress.write(path, {**notes, "seconds": round(taken()[0], 3)})

    def tick() -> None:
        while not ended.wait(EVERY):
            write()

    write()
    thread = threading.Thread(target=tick, daemon=True, name="clock")
    thread.start()
    try:
        yield taken
    finally:
        ended.set()
        thread.join()
        if sys.exc_info()[0] is not None:
            write()
