"""Perform one job: compare the code, run the cell in its folder, and store its rows.

A process that performs a job holds the lock of the cell's directory, so that two processes never work in the same one;
the lock file names the holder.
"""

from __future__ import annotations

import dataclasses
import importlib
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from urbe.runs import lock
from urbe.sweep import provenance, store
from urbe.sweep.cells import Job
from urbe.sweep.sources import digest, experiment_sources

PATIENCE = 30.0
"""Seconds to wait for a process that still holds a cell: one whose launcher was killed takes a moment to notice."""


def perform(job: Job) -> None:
    """Runs a cell and stores its rows; returns immediately if they are already stored.

    Raises:
      RuntimeError: the code on this machine is not the job's.
      RunLocked: another process keeps working on the cell.
      Exception: any error of the cell.
    """
    experiment: Any = importlib.import_module(job.module)
    code, packages = _imported(job.module, *job.also)
    if code != job.code:
        raise RuntimeError("The code changed during the run. Run again. On a cluster, all machines need the same code.")
    if "jax" in packages:
        _keep_compiled()
    job.folder.mkdir(parents=True, exist_ok=True)
    with _alone(job.folder):
        if store.load_record(job.rows, job.identity) is None:
            job.work.mkdir(exist_ok=True)
            begun = time.perf_counter()
            rows = experiment.run(job.cell, job.work)
            record = _record(job, time.perf_counter() - begun)
            store.save(job.rows, experiment.Row, store.Stored(rows, record))
        for folder in job.folder.glob("work-*"):  # including those of other code, which cannot be resumed
            shutil.rmtree(folder, ignore_errors=True)


def _record(job: Job, seconds: float) -> store.CellRecord:
    return store.CellRecord(
        experiment=job.experiment,
        cell=job.cell.name,
        config=dataclasses.asdict(job.cell),
        identity=job.identity,
        code=job.code,
        commit=_commit(),
        versions=provenance.versions(),
        machine=provenance.machine(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=seconds,
    )


@cache
def _imported(*modules: str) -> tuple[str, tuple[str, ...]]:
    """Digest and packages of an experiment at the time when this process imported it."""
    found = experiment_sources(*modules)
    return digest(found), found.packages


@cache
def _commit() -> str | None:
    return provenance.commit()


@cache
def _keep_compiled() -> None:
    """Caches compiled XLA programs on disk for other processes."""
    from urbe.deep.compilation import cache_compilation

    with suppress(OSError):  # if the cache cannot be written, programs are compiled every time
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
