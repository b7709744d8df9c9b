"""Runs on disk without running anything: cells of `oracles.dots`, finished or not, and a status of one's choice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

from oracles import book, dots
from urbe.experiments.base import everywhere
from urbe.report.content import Section
from urbe.sweep import cells, store
from urbe.sweep.finished import CELLS, write_plan
from urbe.sweep.sources import code_digest
from urbe.sweep.status import STATUS, VERSION

RADII = (0.0, 0.5, 1.0, 1.5)


def experiment(name="dots", **changes):
    """Four cells, and a page with a figure."""
    made = SimpleNamespace(**{**vars(dots), "NAME": name, "drawn": 0})

    def plot(table):
        made.drawn += 1
        return [*dots.plot(table), Section("Lines", (), (book.lined(),))]

    vars(made).update({"CELLS": everywhere(tuple(dots.Dot(r, "") for r in RADII)), "plot": plot, **changes})
    return made


def lay(output, experiments, missing=(), compute=False):
    """Writes plan and cells, but for those whose (experiment, radius) are missing; returns the jobs by experiment.

    Rows are made up, or computed here and now.
    """
    output.mkdir(parents=True, exist_ok=True)
    jobs = {}
    for each in experiments:
        code = cells.Code(each.__name__, each.NAME, each.Row, code_digest(each.__name__))
        jobs[each.NAME] = cells.jobs(code, each.CELLS["quick"], output / CELLS)
    write_plan(output, "quick", jobs)
    for each in experiments:
        for job in jobs[each.NAME]:
            if (each.NAME, job.cell.radius) not in missing:
                finish(each, job, each.run(job.cell, output) if compute else None)
    return jobs


def finish(each, job, rows=None):
    """Writes the rows of a cell; by default made up."""
    if rows is None:
        rows = [each.Row(job.cell.radius, "1", "gap", i, job.cell.radius / 3.0 + i) for i in range(3)]
    record = store.Record(
        each.NAME, job.cell.name, cells.configuration(job.cell), job.identity, job.code, "a" * 40, {"urbe": "0"},
        {"processor": "abacus", "cores": "2", "system": "Linux", "python": "3.11"},
        "2026-01-31T12:00:00+00:00", 90.0, 1,
    )  # fmt: skip
    store.save(job.rows, each.Row, store.Stored(rows, record))


def say(output: Path, state="running", age=0.0, failures=(), **counts):
    """Writes the status: one experiment, dots."""
    then = (datetime.now(UTC) - timedelta(seconds=age)).isoformat(timespec="seconds")
    part = {"waiting": 0, "running": 0, "done": 0, "failed": len(failures), **counts}
    content = {
        "version": VERSION, "state": state, "launcher": "2 processes of this machine", "started": then, "updated": then,
        "seconds": 200.0, "left": 125.0, **part, "lost": 0, "experiments": {"dots": {**part, "kept": 0}},
        "cells": [{"experiment": "dots", "cell": "dot-1", "started": then, "seconds": 1.0, "expected": None,
                   "fraction": 0.25}] * part["running"],
        "failures": [{"experiment": "dots", "cell": name, "text": "ValueError: no"} for name in failures],
    }  # fmt: skip
    (output / STATUS).write_text(json.dumps(content))
