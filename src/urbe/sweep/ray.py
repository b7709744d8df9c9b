"""Cells on a Ray cluster: an existing one, or a new one on this machine (extra `urbe[ray]`).

Each cell is a task of one core, in a process with one thread. A cell that raises an error has failed. A cell whose
process or machine is lost is restarted, as with local processes, and resumes from its last checkpoint on any machine.
All machines of the cluster must see the output folder and have the same code and versions; otherwise the cell fails
with a message that says so.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from urbe import checks
from urbe.extras import need
from urbe.sweep.cells import Job
from urbe.sweep.launcher import RETRIES, TICK, Event, Losses, one_thread
from urbe.sweep.provenance import cores
from urbe.sweep.work import perform


@dataclass(frozen=True)
class Ray:
    """A Ray cluster.

    Args:
      address: `host:port` of a cluster, or "auto" for the one this machine belongs to; None starts one here.
      at_once: number of cells at once; None means the current number of cores of the cluster. A cluster that grows
        on demand needs a number: it only sees the demand of cells that were submitted.
      retries: how often a cell is restarted after its process or machine was lost.
    """

    address: str | None = None
    at_once: int | None = None
    retries: int = RETRIES

    def __post_init__(self) -> None:
        if self.at_once is not None:
            checks.whole_number("at_once", self.at_once, 1)
        checks.whole_number("retries", self.retries, 0)
        need("Sweeps on Ray", "ray")

    def __str__(self) -> str:
        return "a Ray cluster on this machine" if self.address is None else f"the Ray cluster at {self.address}"

    def launch(self, jobs: Sequence[Job]) -> Iterator[Event]:
        if not jobs:
            return  # a cluster takes long to start
        import ray

        waiting = list(reversed(jobs))
        losses = Losses(self.retries)
        with _cluster(self.address):
            task = ray.remote(num_cpus=1, max_retries=0)(_task)
            busy: dict[Any, Job] = {}
            while busy or waiting:
                room = self.at_once or max(int(ray.cluster_resources().get("CPU", 1)), 1)
                while waiting and len(busy) < room:
                    job = waiting.pop()
                    busy[task.remote(job)] = job
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
        text: str | None = ray.get(reference)
    except ray.exceptions.RayError as error:  # errors of a cell arrive as text; this is an error of Ray
        return losses.event(job, f"{type(error).__name__}: {' '.join(str(error).split())}")
    if text is None and not job.rows.exists():
        text = f"{job.rows} was written on a machine that does not share this folder; give one that all of them see."
    return Event("done", job) if text is None else Event("failed", job, text)


def _task(job: Job) -> str | None:
    """Runs on a worker of the cluster; returns an error message, or None."""
    try:
        perform(job)
    except Exception:
        return traceback.format_exc()
    return None


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # our own cluster sends no usage reports
    variables = one_thread()
    if address is None:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # as for processes of this machine
    options: dict[str, Any] = {"include_dashboard": False, "num_cpus": cores()} if address is None else {}
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
