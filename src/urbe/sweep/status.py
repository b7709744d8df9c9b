"""What a sweep is doing, in `status.json` of its output folder, for whoever watches: it is replaced every few seconds.

    {"version": 1,
     "state": "running",            or "done", "failed" (some cells did), "stopped" (Ctrl-C, or the launcher broke)
     "launcher": "2 processes of this machine",
     "started": "2026-01-31T12:00:00+00:00", "updated": the same form, "seconds": between the two,
     "left": 1234.5,                seconds until all is done, about; null while nothing is known
     "waiting": 7, "running": 2, "done": 31, "failed": 0,      cells; kept ones are done
     "lost": 0,                     how often a process died and its cell was begun again
     "experiments": {"<NAME>": {"waiting": 7, "running": 2, "done": 31, "failed": 0, "kept": 12}, ...},
     "cells": [{"experiment": "<NAME>", "cell": "<name>", "started": when, "seconds": 12.5, over all attempts,
                "expected": 60.0 or null, "fraction": 0.2 or null}, ...],      those that run
     "failures": [{"experiment": "<NAME>", "cell": "<name>", "text": "ValueError: ..."}, ...]}

A sweep that was killed leaves "running" behind, with an `updated` that grows old: older than a minute means nobody
works there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from urbe.sweep import progress
from urbe.sweep.cells import Job
from urbe.sweep.forecast import Pace, remaining, seconds_left
from urbe.sweep.launcher import Event, Failure
from urbe.sweep.work import running_seconds

STATUS = "status.json"
VERSION = 1

Status = dict[str, Any]
"""The content of the file."""

State = Literal["running", "done", "failed", "stopped"]


def read_status(output: Path) -> Status | None:
    """The content of `status.json`; None when there is none, or one of another form."""
    found = progress.read(output / STATUS)
    return found if found.get("version") == VERSION else None


class StatusTracker:
    """Follows a sweep, event by event.

    Args:
      jobs: of each experiment, by its name.
      kept: seconds of those that were finished before, by identity.
      launcher: in words.
    """

    def __init__(self, jobs: Mapping[str, Sequence[Job]], kept: Mapping[str, float], launcher: str) -> None:
        self._jobs = jobs
        self._kept = set(kept)
        self._state = {job.identity: "done" if job.identity in kept else "waiting" for job in _all(jobs)}
        self._begun: dict[str, str] = {}
        self._pace = Pace()
        self._launcher, self._since, self._clock = launcher, _now(), time.monotonic()
        self._lost = self._at_once = 0
        self.failures: list[Failure] = []
        for job in _all(jobs):
            if job.identity in kept:
                self._pace.saw(job, kept[job.identity])

    def take(self, event: Event, seconds: float = 0.0) -> None:
        """Notes what happened; `seconds` are those of a cell that is done."""
        if event.job is None:
            return
        job = event.job
        states = {"begun": "running", "lost": "waiting", "done": "done", "failed": "failed", "tick": ""}
        self._state[job.identity] = states[event.kind]
        if event.kind == "begun":
            self._begun[job.identity] = _now()
        elif event.kind == "done":
            self._pace.saw(job, seconds)
        elif event.kind == "failed":
            self.failures.append(Failure(job, event.text))
        self._lost += event.kind == "lost"
        self._at_once = max(self._at_once, sum(state == "running" for state in self._state.values()))

    def status(self, state: State) -> Status:
        """What to tell now."""
        cells = [self._cell(job) for job in _all(self._jobs) if self._state[job.identity] == "running"]
        waiting = [self._pace.expected(job) for job in _all(self._jobs) if self._state[job.identity] == "waiting"]
        running = [remaining(cell["expected"], cell["seconds"], cell["fraction"]) for cell in cells]
        per = {name: self._count(jobs) for name, jobs in self._jobs.items()}
        return {
            "version": VERSION,
            "state": state,
            "launcher": self._launcher,
            "started": self._since,
            "updated": _now(),
            "seconds": round(time.monotonic() - self._clock, 3),
            "left": seconds_left(waiting, running, self._at_once),
            **{kind: sum(each[kind] for each in per.values()) for kind in ("waiting", "running", "done", "failed")},
            "lost": self._lost,
            "experiments": per,
            "cells": cells,
            "failures": [
                {"experiment": job.experiment, "cell": job.cell.name, "text": text.strip().splitlines()[-1]}
                for job, text in self.failures
            ],
        }

    def _count(self, jobs: Sequence[Job]) -> dict[str, int]:
        found = Counter(self._state[job.identity] for job in jobs)
        counts = {kind: found[kind] for kind in ("waiting", "running", "done", "failed")}
        return {**counts, "kept": sum(job.identity in self._kept for job in jobs)}

    def _cell(self, job: Job) -> dict[str, Any]:
        return {
            "experiment": job.experiment,
            "cell": job.cell.name,
            "started": self._begun[job.identity],
            "seconds": running_seconds(job),
            "expected": self._pace.expected(job),
            "fraction": progress.fraction(job.work),
        }


def _all(jobs: Mapping[str, Sequence[Job]]) -> list[Job]:
    return [job for mine in jobs.values() for job in mine]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
