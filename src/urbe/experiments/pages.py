"""From finished cells to a page of figures; nothing is run.

    write_report(output, figures=None) -> Path

reads `output/sweep.json` and the finished cells, whatever code computed them, and writes `index.html`,
`rows/<NAME>.csv` and `manifest.json` into `output`. It may be called while the sweep is under way: chapters then tell
how many of their cells they show.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from urbe.experiments.base import AnyExperiment
from urbe.io.atomic import Writer, replace_files, text_writer
from urbe.sweep import provenance
from urbe.sweep.finished import Finished, load_finished, read_plan
from urbe.sweep.sources import code_digest
from urbe.sweep.status import read_status

if TYPE_CHECKING:
    from urbe.report.content import Chapter

TITLE = "Decisions that hold when the model does not"
LEAD = (
    "Experiments with Markov decision processes whose transition probabilities are not quite known: what robustness "
    "costs and buys, and what agents do that learn while they act. Every number below was computed by the code of the "
    "stated commit; the rows behind each chapter are in the folder rows, beside this page.",
)

_CHUNK = 10_000
"""Rows turned into text at a time."""


def write_report(output: Path, figures: Sequence[AnyExperiment] | None = None) -> Path:
    """Writes the page of the last sweep in a folder, from its finished cells.

    Args:
      output: folder of the sweep; `index.html`, `rows/<NAME>.csv` and `manifest.json` are written there, all or none.
      figures: experiments to show, of those that were run; by default all of `urbe.experiments.FIGURES` that were.

    Returns:
      the path of the page.

    Raises:
      FileNotFoundError: no sweep was run into the folder.
    """
    from urbe.experiments import FIGURES
    from urbe.report.page import render

    plan = read_plan(output)
    chosen = [figure for figure in (FIGURES if figures is None else figures) if figure.NAME in plan.cells]
    status = read_status(output)
    chapters: list[Chapter] = []
    records: dict[str, Any] = {}
    writers: dict[Any, Writer] = {}
    for experiment in chosen:
        digest = code_digest(experiment.__name__)
        finished = load_finished(output, experiment.NAME, experiment.Row, digest)
        kept = status["experiments"].get(experiment.NAME, {}).get("kept", 0) if status else 0
        chapters.append(_chapter(experiment, finished, kept))
        records[experiment.NAME] = _record(experiment, finished, kept, digest)
        writers[output / "rows" / f"{experiment.NAME}.csv"] = text_writer(_csv(experiment, finished.rows()))
    wall = float(status["seconds"]) if status else 0.0
    versions, machine = provenance.versions(), provenance.machine()
    manifest = {
        "scale": plan.scale,
        "wall_seconds": wall,
        "commit": provenance.commit(),
        "versions": versions,
        "machine": machine,
        "experiments": records,
    }
    seconds = sum(record["cell_seconds"] for record in records.values())
    facts = (
        ("Scale", plan.scale),
        ("Time", f"{seconds:.1f} s in cells, {wall:.1f} s this run"),
        ("Machine", f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"),
        ("Software", f"Python {machine['python']}, " + ", ".join(f"{name} {text}" for name, text in versions.items())),
    )
    page = output / "index.html"
    writers[output / "manifest.json"] = text_writer([json.dumps(manifest, indent=1), "\n"])
    writers[page] = text_writer([render(TITLE, LEAD, facts, chapters)])
    (output / "rows").mkdir(exist_ok=True)
    replace_files(writers)
    return page


def _chapter(experiment: AnyExperiment, finished: Finished, kept: int) -> Chapter:
    from urbe.report.content import Chapter, Section

    n_cells, n_rows = len(finished.cells), len(finished.rows())
    missing = len(finished.missing)
    try:
        sections = experiment.plot(experiment.analyse(finished.rows()))
    except Exception as error:
        if not missing:
            raise
        sections = [Section("", (f"Not drawn yet, from {n_cells} of {n_cells + missing} cells: {error}",))]
    told = f"{n_cells}, with {n_rows} rows"
    told += f"; {kept} of them kept from an earlier run" if kept else ""
    told += f"; {missing} more are not finished" if missing else ""
    told += f"; {len(finished.other_code)} of other code than today's" if finished.other_code else ""
    facts = (
        ("Cells", told),
        ("Computing", f"{_seconds(finished):.1f} s in all, one thread per cell, compilation included"),
        ("Commit", ", ".join("unknown" if c is None else c[:12] + c[40:] for c in _commits(finished)) or "none"),
    )
    return Chapter(experiment.NAME, experiment.TITLE, tuple(sections), facts)


def _record(experiment: AnyExperiment, finished: Finished, kept: int, digest: str) -> dict[str, Any]:
    machines = Counter(json.dumps(cell.record.machine, sort_keys=True) for cell in finished.cells)
    times = [cell.record.finished for cell in finished.cells]
    return {
        "title": experiment.TITLE,
        "module": experiment.__name__,
        "code": digest,
        "cells": len(finished.cells),
        "missing": list(finished.missing),
        "of_other_code": list(finished.other_code),
        "reused": kept,
        "rows": len(finished.rows()),
        "cell_seconds": _seconds(finished),
        "commits": {str(commit): n for commit, n in _commits(finished).items()},
        "machines": [{**json.loads(machine), "cells": n} for machine, n in machines.items()],
        "finished": [min(times), max(times)] if times else [],
        "config": [cell.record.config for cell in finished.cells],
    }


def _commits(finished: Finished) -> Counter[str | None]:
    return Counter(cell.record.commit for cell in finished.cells)


def _seconds(finished: Finished) -> float:
    return sum(cell.record.seconds for cell in finished.cells)


def _csv(experiment: AnyExperiment, rows: Sequence[Any]) -> Iterator[str]:
    """The rows of all cells as text, a piece at a time; floats as Python writes them, which reads back the same."""
    yield _text([experiment.Row._fields])
    left = iter(rows)
    while piece := list(islice(left, _CHUNK)):
        yield _text(piece)


def _text(rows: Sequence[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
