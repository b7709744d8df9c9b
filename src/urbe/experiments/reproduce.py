"""From models to a page of figures, in one call."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from urbe.experiments import provenance, store
from urbe.experiments.base import Experiment, Row
from urbe.io.atomic import replace_files, text_writer

Progress = Callable[[int, int, str], None]


def reproduce(
    output: Path,
    progress: Progress | None = None,
    *,
    figures: Sequence[Experiment[Any, Any]] | None = None,
) -> Path:
    """Runs the experiments and writes the page with their figures.

    Writes into `output`: `index.html`, `rows.csv` (long format), `manifest.json`, and one file in `cells/` for each
    finished cell. Cells finished before, by the same code, are read rather than run.

    Args:
      output: folder to write into; made if missing.
      progress: called as `progress(done, total, what)` before each part and at the end.
      figures: experiments; by default all, `urbe.experiments.FIGURES`.

    Returns:
      the path of the page.
    """
    from urbe.experiments import FIGURES

    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            'Drawing needs matplotlib, which is not installed; install it with: pip install "urbe[plots]"',
            name="matplotlib",
        )
    chosen = FIGURES if figures is None else figures
    report = progress or _silent
    begun = time.perf_counter()
    cells = output / "cells"
    cells.mkdir(parents=True, exist_ok=True)
    total = sum(len(figure.CELLS) for figure in chosen) + 1

    results: list[tuple[Experiment[Any, Any], list[Row]]] = []
    seconds, done, reused = 0.0, 0, 0
    for figure in chosen:
        rows: list[Row] = []
        for cell in figure.CELLS:
            report(done, total, cell.name)
            path = cells / f"{figure.NAME}-{cell.name}.json"
            finished = store.load(path, figure.NAME, cell)
            if finished is None:
                finished = _run(figure, cell)
                store.save(path, figure.NAME, cell, finished)
            else:
                reused += 1
            rows += finished.rows
            seconds += finished.seconds
            done += 1
        results.append((figure, rows))

    report(done, total, "drawing")
    page = _write(output, results, {"cells": done, "reused": reused, "cell_seconds": seconds}, begun)
    report(total, total, "done")
    return page


def _run(figure: Experiment[Any, Any], cell: Any) -> store.Finished:
    begun = time.perf_counter()
    rows = figure.run(cell)
    return store.Finished(rows, time.perf_counter() - begun)


def _write(
    output: Path, results: Sequence[tuple[Experiment[Any, Any], list[Row]]], counts: dict[str, Any], begun: float
) -> Path:
    from urbe.report.page import render

    sections = [section for figure, rows in results for section in figure.plot(figure.analyse(rows))]
    every = [row for _, rows in results for row in rows]
    gap = max((row.value for row in every if row.metric == "gap"), default=0.0)
    run = {
        "counts": counts | {"wall_seconds": time.perf_counter() - begun},
        "largest_certified_gap": gap,
        "commit": provenance.commit(),
        "code": provenance.code_digest(),
        "versions": provenance.versions(),
        "machine": provenance.machine(),
    }
    manifest = run | {
        "config": {figure.NAME: [dataclasses.asdict(cell) for cell in figure.CELLS] for figure, _ in results}
    }
    text = render(
        "The price of robustness",
        (
            "Classic Markov decision processes, solved as they are and against the worst model within a growing "
            "distance of theirs: what does it cost to be robust, and what does it buy?",
        ),
        _facts(run, every),
        sections,
    )
    page = output / "index.html"
    replace_files(
        {
            output / "rows.csv": text_writer([_csv(every)]),
            output / "manifest.json": text_writer([json.dumps(manifest, indent=1), "\n"]),
            page: text_writer([text]),
        }
    )
    return page


def _facts(run: dict[str, Any], rows: Sequence[Row]) -> list[tuple[str, str]]:
    counts, machine = run["counts"], run["machine"]
    models, sets = {row.model for row in rows}, dict.fromkeys(row.set for row in rows)
    reused = f", {counts['reused']} of them kept from an earlier run" if counts["reused"] else ""
    solving, wall = counts["cell_seconds"], counts["wall_seconds"]
    commit = run["commit"] or "unknown"
    packages = ", ".join(f"{name} {text}" for name, text in run["versions"].items())
    return [
        ("Solved", f"{len(models)} models, sets {' and '.join(sets)}: {counts['cells']} robust problems{reused}"),
        ("Time", f"{solving:.1f} s solving on one core, compilation included; {wall:.1f} s this run"),
        ("Largest certified gap", f"{run['largest_certified_gap']:.1e} in any state of any problem"),
        ("Machine", f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"),
        ("Software", f"Python {machine['python']}, {packages}"),
        ("Commit", commit[:12] + commit[40:]),
    ]


def _csv(rows: Sequence[Row]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows(rows)
    return buffer.getvalue()


def _silent(done: int, total: int, what: str) -> None:
    pass
