"""From experiments to a page of figures, in one call."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from urbe import checks
from urbe.experiments import provenance, store
from urbe.experiments.base import SCALES, AnyExperiment, Scale, check_experiments
from urbe.experiments.sources import code_digest
from urbe.experiments.workers import Job, run_jobs
from urbe.io.atomic import Writer, replace_files, text_writer

if TYPE_CHECKING:
    from urbe.report.content import Chapter

Progress = Callable[[int, int, str], None]

TITLE = "Decisions that hold when the model does not"
LEAD = (
    "Experiments with Markov decision processes whose transition probabilities are not quite known: what robustness "
    "costs and buys, and what agents do that learn while they act. Every number below was computed by the code of the "
    "stated commit; the rows behind each chapter are in the folder rows, beside this page.",
)

_CHUNK = 10_000
"""Rows turned into text at a time."""


def reproduce(
    output: Path,
    progress: Progress | None = None,
    *,
    scale: Scale = "quick",
    figures: Sequence[AnyExperiment] | None = None,
    processes: int | None = None,
) -> Path:
    """Runs the experiments and writes the page with their figures.

    Writes into `output`: `index.html`, `rows/<NAME>.csv`, `manifest.json`, and one file in `cells/<NAME>/` for each
    finished cell. Cells finished before, by the same code, are read rather than run.

    Args:
      output: folder to write into; made if missing.
      progress: called as `progress(done, total, what)` at the beginning, after each cell, and at the end.
      scale: how much to run, see `urbe.experiments.base`.
      figures: experiments; by default all, `urbe.experiments.FIGURES`.
      processes: how many cells run at once; by default as many as there are cores. Rows do not depend on it.

    Returns:
      the path of the page.

    Raises:
      CellsFailed: when cells raised or crashed; all others are finished and kept, the page is as it was.
    """
    from urbe.experiments import FIGURES

    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            'Drawing needs matplotlib, which is not installed; install it with: pip install "urbe[plots]"',
            name="matplotlib",
        )
    chosen = FIGURES if figures is None else figures
    at_once = provenance.cores() if processes is None else checks.whole_number("processes", processes, 1)
    check_experiments(chosen)
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}, expected one of {', '.join(SCALES)}.")
    report = progress or _silent
    begun = time.perf_counter()
    (output / "rows").mkdir(parents=True, exist_ok=True)

    jobs = {experiment.NAME: _jobs(experiment, scale, output / "cells") for experiment in chosen}
    missing = [
        job
        for experiment in chosen
        for job in jobs[experiment.NAME]
        if store.load(job.path, job.identity, experiment.Row) is None
    ]
    total = sum(map(len, jobs.values())) + 1
    done = total - 1 - len(missing)
    report(done, total, "running")

    def finished(job: Job) -> None:
        nonlocal done
        done += 1
        report(done, total, job.cell.name)

    run_jobs(missing, at_once, finished)
    report(done, total, "drawing")
    page = _write(output, scale, chosen, jobs, missing, begun)
    report(total, total, "done")
    return page


def _jobs(experiment: AnyExperiment, scale: Scale, folder: Path) -> list[Job]:
    code = code_digest(experiment.__name__)
    jobs = []
    for cell in experiment.CELLS[scale]:
        identity = store.cell_hash(experiment, cell, code)
        path = store.cell_path(folder, experiment.NAME, cell)
        jobs.append(Job(experiment.__name__, code, cell, identity, path, path.with_name(f".{cell.name}.{identity}")))
    return jobs


def _write(
    output: Path,
    scale: Scale,
    chosen: Sequence[AnyExperiment],
    jobs: dict[str, list[Job]],
    missing: Sequence[Job],
    begun: float,
) -> Path:
    from urbe.report.page import render

    commit, versions, machine = provenance.commit(), provenance.versions(), provenance.machine()
    chapters: list[Chapter] = []
    records: dict[str, Any] = {}
    for experiment in chosen:
        mine = jobs[experiment.NAME]
        reused = len(mine) - sum(job in missing for job in mine)
        chapter, n_rows, seconds = _chapter(experiment, mine, reused, commit)
        chapters.append(chapter)
        records[experiment.NAME] = {
            "title": experiment.TITLE,
            "module": experiment.__name__,
            "code": mine[0].code,
            "cells": len(mine),
            "reused": reused,
            "rows": n_rows,
            "cell_seconds": seconds,
            "config": [dataclasses.asdict(cell) for cell in experiment.CELLS[scale]],
        }
    wall = time.perf_counter() - begun
    manifest = {
        "scale": scale,
        "wall_seconds": wall,
        "commit": commit,
        "versions": versions,
        "machine": machine,
        "experiments": records,
    }
    facts = (
        ("Time", f"{sum(record['cell_seconds'] for record in records.values()):.1f} s in cells, {wall:.1f} s this run"),
        ("Machine", f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"),
        ("Software", f"Python {machine['python']}, " + ", ".join(f"{name} {text}" for name, text in versions.items())),
    )
    page = output / "index.html"
    writers: dict[Any, Writer] = {
        output / "rows" / f"{experiment.NAME}.csv": text_writer(_csv(experiment, jobs[experiment.NAME]))
        for experiment in chosen
    }
    writers[output / "manifest.json"] = text_writer([json.dumps(manifest, indent=1), "\n"])
    writers[page] = text_writer([render(TITLE, LEAD, facts, chapters)])
    replace_files(writers)
    return page


def _chapter(
    experiment: AnyExperiment, jobs: Sequence[Job], reused: int, commit: str | None
) -> tuple[Chapter, int, float]:
    """The chapter, the number of rows behind it, and the seconds they took."""
    from urbe.report.content import Chapter

    rows: list[Any] = []
    seconds = 0.0
    for job in jobs:
        cell = _finished(experiment, job)
        rows += cell.rows
        seconds += cell.seconds
    sections = experiment.plot(experiment.analyse(rows))
    kept = f"; {reused} of them kept from an earlier run" if reused else ""
    facts = (
        ("Cells", f"{len(jobs)}, with {len(rows)} rows{kept}"),
        ("Computing", f"{seconds:.1f} s in all, one thread per cell, compilation included"),
        ("Commit", "unknown" if commit is None else commit[:12] + commit[40:]),
    )
    return Chapter(experiment.NAME, experiment.TITLE, tuple(sections), facts), len(rows), seconds


def _csv(experiment: AnyExperiment, jobs: Sequence[Job]) -> Iterator[str]:
    """The rows of all cells as text, a piece at a time; floats as Python writes them, which reads back the same."""
    yield _text([experiment.Row._fields])
    for job in jobs:
        rows = iter(_finished(experiment, job).rows)
        while piece := list(islice(rows, _CHUNK)):
            yield _text(piece)


def _finished(experiment: AnyExperiment, job: Job) -> store.Finished:
    finished = store.load(job.path, job.identity, experiment.Row)
    if finished is None:
        raise OSError(f"{job.path} was changed by another program during the run; run again.")
    return finished


def _text(rows: Sequence[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def _silent(done: int, total: int, what: str) -> None:
    pass
