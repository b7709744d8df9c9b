"""The progress of a sweep, in `status.json` of its output folder, replaced at most every second.

    {"version": 1,
     "state": "running",            or "done", "failed" (some cells), "stopped" (Ctrl-C, or an error of the launcher)
     "launcher": "2 processes of this machine",
     "started": "2026-01-31T12:00:00+00:00", "updated": the same form, "seconds": between the two,
     "left": 1234.5,                estimated seconds until the end
     "waiting": 7, "running": 2, "done": 31, "failed": 0,      cells; kept ones are done
     "lost": 0,                     how often a process died and its cell was restarted
     "experiments": {"<NAME>": {"waiting": 7, "running": 2, "done": 31, "failed": 0, "kept": 12}, ...},
     "cells": [{"experiment": "<NAME>", "cell": "<name>", "started": when, "expected": 60.0}, ...],   those that run
     "failures": [{"experiment": "<NAME>", "cell": "<name>", "text": "ValueError: ..."}, ...]}

After a sweep was killed, the state remains "running", but `updated` no longer changes: see `is_alive`.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from urbe.sweep.cells import Job
from urbe.sweep.launcher import Event, Failure

STATUS = "status.json"
VERSION = 1

SILENCE = 60.0
"""Seconds after which a status that is not updated counts as abandoned."""

KINDS = ("waiting", "running", "done", "failed")

Status = dict[str, Any]
"""The content of `status.json`."""

State = Literal["running", "done", "failed", "stopped"]


def read_status(output: Path) -> Status | None:
    """The content of `status.json`; None if it is missing or has another form."""
    try:
        found = json.loads((output / STATUS).read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("version") == VERSION else None


def write_status(output: Path, status: Status) -> None:
    """Replaces the file atomically. It may not survive a crash of the machine."""
    temporary = output / f".{STATUS}.{os.getpid()}.tmp"
    temporary.write_text(json.dumps(status) + "\n")
    os.replace(temporary, output / STATUS)


def is_alive(status: Status | None) -> bool:
    """Whether a process is working on the sweep now."""
    if status is None or status["state"] != "running":
        return False
    return (datetime.now(UTC) - datetime.fromisoformat(status["updated"])).total_seconds() < SILENCE


class StatusTracker:
    """Follows a sweep, event by event.

    A cell is expected to take its cost times the ratio of seconds to cost of the cells finished so far: those of its
    experiment or, before one of those is finished, all of them.

    Args:
      jobs: the jobs of each experiment, by its name.
      kept: seconds of the cells that were finished before, by identity.
      launcher: a description of the launcher.
    """

    def __init__(self, jobs: Mapping[str, Sequence[Job]], kept: Mapping[str, float], launcher: str) -> None:
        self._jobs, self._kept = jobs, set(kept)
        self._every = [job for mine in jobs.values() for job in mine]
        self._state = {job.identity: "done" if job.identity in kept else "waiting" for job in self._every}
        self._begun: dict[str, datetime] = {}
        self._cost: defaultdict[str, float] = defaultdict(float)
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._launcher, self._since, self._clock = launcher, _now(), time.monotonic()
        self._lost, self._at_once = 0, 1
        self.failures: list[Failure] = []
        for job in self._every:
            if job.identity in kept:
                self._finished(job, kept[job.identity])

    def take(self, event: Event, seconds: float = 0.0) -> None:
        """Records an event; `seconds` is the duration of a cell that is done."""
        if event.job is None:
            return
        job = event.job
        states = {"begun": "running", "lost": "waiting", "done": "done", "failed": "failed", "tick": ""}
        self._state[job.identity] = states[event.kind]
        if event.kind == "begun":
            self._begun[job.identity] = _now()
        elif event.kind == "done":
            self._finished(job, seconds)
        elif event.kind == "failed":
            self.failures.append(Failure(job, event.text))
        self._lost += event.kind == "lost"
        self._at_once = max(self._at_once, len(self._in_state("running")))

    def status(self, state: State) -> Status:
        """The status at this moment."""
        running = self._in_state("running")
        counts = {name: self._count(jobs) for name, jobs in self._jobs.items()}
        return {
            "version": VERSION,
            "state": state,
            "launcher": self._launcher,
            "started": self._since.isoformat(timespec="seconds"),
            "updated": _now().isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._clock, 3),
            "left": self._seconds_left(running),
            **{kind: sum(each[kind] for each in counts.values()) for kind in KINDS},
            "lost": self._lost,
            "experiments": counts,
            "cells": [
                {
                    "experiment": job.experiment,
                    "cell": job.cell.name,
                    "started": self._begun[job.identity].isoformat(timespec="seconds"),
                    "expected": self.expected(job),
                }
                for job in running
            ],
            "failures": [
                {"experiment": job.experiment, "cell": job.cell.name, "text": text.strip().splitlines()[-1]}
                for job, text in self.failures
            ],
        }

    def expected(self, job: Job) -> float:
        """The seconds that a cell is expected to take."""
        for name in (job.experiment, ""):
            if self._cost[name]:
                return job.cost * self._seconds[name] / self._cost[name]
        return job.cost

    def _seconds_left(self, running: Sequence[Job]) -> float:
        """The remaining work divided by the number of workers, and no less than the longest cell."""
        since = {job.identity: (_now() - self._begun[job.identity]).total_seconds() for job in running}
        unfinished = (*running, *self._in_state("waiting"))
        left = [max(self.expected(job) - since.get(job.identity, 0.0), 0.0) for job in unfinished]
        return max(sum(left) / self._at_once, *left, 0.0) if left else 0.0

    def _finished(self, job: Job, seconds: float) -> None:
        for name in (job.experiment, ""):
            self._cost[name] += job.cost
            self._seconds[name] += seconds

    def _in_state(self, state: str) -> list[Job]:
        return [job for job in self._every if self._state[job.identity] == state]

    def _count(self, jobs: Sequence[Job]) -> dict[str, int]:
        found = Counter(self._state[job.identity] for job in jobs)
        return {**{kind: found[kind] for kind in KINDS}, "kept": sum(job.identity in self._kept for job in jobs)}


def _now() -> datetime:
    return datetime.now(UTC)
