"""Cells on a Ray cluster: one that is there, or a new one on this machine (extra `urbe[ray]`).

Each cell is a task of one core, in a process with one thread. A cell that raises has failed; one whose process or
machine is lost is begun again, as on local processes, and goes on from its last checkpoint on whichever machine. All
machines of the cluster must see the output folder, and need the same code and versions; a cell on one that does not
fails and says so.
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
    except ray.exceptions.RayError as error:  # what a cell raises comes as text; this is Ray's own trouble
        return losses.event(job, f"{type(error).__name__}: {' '.join(str(error).split())}")
    if text is None and not job.rows.exists():
        text = f"{job.rows} was written on a machine that does not share this folder; give one that all of them see."
    return Event("done", job) if text is None else Event("failed", job, text)


def _task(job: Job) -> str | None:
    """In a process of the cluster: None, or what went wrong."""
    try:
        perform(job)
    except Exception:
        return traceback.format_exc()
    return None


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster of ours reports to nobody
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
