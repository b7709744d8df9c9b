"""Cells on a Ray cluster: one that is there, or a new one on this machine (extra `urbe[ray]`).

Each cell is a task of one core, in a process with one thread. A cell that raises has failed; one whose process or
machine is lost is begun again, here as on the launcher of processes.

Where a task sees the store's files, it works there as a process of this machine would: a cell begun again, on whichever
machine, goes on from its last checkpoint. Where it does not (machines without a common file system), it works in a
folder of its own machine, `urbe-cells-<user>` among the temporary files, sends the bytes of the finished cell back, and
the driver stores them. A cell begun again goes on from its checkpoint if that happens on the same machine, and from the
beginning on another. How far running cells have come is not known then.

Machines of a cluster need the same code and versions; a cell on one that has other code fails and says so.
"""

from __future__ import annotations

import getpass
import logging
import os
import secrets
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from urbe import checks
from urbe.sweep import store
from urbe.sweep.cells import Job
from urbe.sweep.launcher import RETRIES, TICK, Event, Losses
from urbe.sweep.provenance import cores
from urbe.sweep.threads import environment, one_thread
from urbe.sweep.work import perform


@dataclass(frozen=True)
class Ray:
    """A Ray cluster.

    Args:
      address: `host:port` of a cluster, or "auto" for the one this machine belongs to; None starts one here.
      at_once: how many cells at once; None is the number of cores the cluster has, also when that grows. A cluster
        that grows on demand needs a number: it sees only the demand of cells that were begun.
      retries: how often a cell is begun again whose process or machine was lost.
    """

    address: str | None = None
    at_once: int | None = None
    retries: int = RETRIES

    def __post_init__(self) -> None:
        if self.at_once is not None:
            checks.whole_number("at_once", self.at_once, 1)
        checks.whole_number("retries", self.retries, 0)
        if find_spec("ray") is None:
            raise ModuleNotFoundError(
                'Running on Ray needs ray, which is not installed; install it with: pip install "urbe[ray]"', name="ray"
            )

    def __str__(self) -> str:
        return "a Ray cluster on this machine" if self.address is None else f"the Ray cluster at {self.address}"

    def launch(self, jobs: Sequence[Job]) -> Iterator[Event]:
        if not jobs:
            return  # a cluster takes long to start
        import ray

        waiting = list(reversed(jobs))
        losses = Losses(self.retries)
        with _cluster(self.address), _token(jobs) as token:
            task = ray.remote(num_cpus=1, max_retries=0)(_task)
            busy: dict[Any, Job] = {}
            while busy or waiting:
                room = self.at_once or max(int(ray.cluster_resources().get("CPU", 1)), 1)
                while waiting and len(busy) < room:
                    job = waiting.pop()
                    busy[task.remote(job, *token)] = job
                    yield Event("begun", job)
                ready, _ = ray.wait(list(busy), timeout=TICK)
                for reference in ready:
                    job = busy.pop(reference)
                    event = _answer(reference, job, losses)
                    if event.kind == "lost":
                        waiting.insert(0, job)
                    yield event
                if not ready:
                    yield Event("tick")


def _answer(reference: Any, job: Job, losses: Losses) -> Event:
    import ray

    try:
        content, text = ray.get(reference)
    except ray.exceptions.RayError as error:  # what a cell raises comes as text; this is Ray's own trouble
        return losses.event(job, f"{type(error).__name__}: {' '.join(str(error).split())}")
    if text is not None:
        return Event("failed", job, text)
    if content is not None:
        store.put(job.rows, content)
    return Event("done", job)


def _task(job: Job, path: Path, secret: str) -> tuple[bytes | None, str | None]:
    """In a process of the cluster: the bytes of the cell where the driver has to write them, and what went wrong."""
    try:
        if _sees(path, secret):
            perform(job)
            return None, None
        folder = Path(tempfile.gettempdir(), f"urbe-cells-{getpass.getuser()}", job.experiment, job.folder.name)
        mine = replace(job, folder=folder)
        perform(mine)
        content = mine.rows.read_bytes()
        shutil.rmtree(folder, ignore_errors=True)
        return content, None
    except Exception:
        return None, traceback.format_exc()


def _sees(path: Path, secret: str) -> bool:
    """Whether this machine sees the files of the driver."""
    try:
        return path.read_text() == secret
    except OSError:
        return False


@contextmanager
def _token(jobs: Sequence[Job]) -> Iterator[tuple[Path, str]]:
    """A file beside the cells by which a task sees whether it is on the same file system."""
    secret = secrets.token_hex(16)
    path = jobs[0].folder.parents[1] / f".token-{secret}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(secret)
    try:
        yield path, secret
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    import ray

    variables = one_thread()
    if address is None:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # as for processes of this machine
    options: dict[str, Any] = {"include_dashboard": False, "num_cpus": cores()} if address is None else {}
    with environment({"RAY_USAGE_STATS_ENABLED": "0"}):  # a cluster of ours reports to nobody
        ray.init(
            address=address or "local",
            runtime_env={"env_vars": variables},
            log_to_driver=False,
            logging_level=logging.ERROR,
            **options,
        )
    try:
        yield
    finally:
        ray.shutdown()
