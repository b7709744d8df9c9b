"""Write a report from finished cells, without running anything.

    write_report(output, chapters=None, to=None, formats=FORMATS) -> Path

reads `output/sweep.json` and the finished cells, whatever code computed them, and writes into `to` (default `output`):

    index.html                                       the front page
    <NAME>.html                                      a page for each chapter
    claims.md                                        the paper's claims and their verdicts
    rows/<NAME>.csv, rows/<NAME>.parquet             the rows behind each chapter
    figures/<NAME>-<figure>.png, .svg, .pdf          each drawing
    manifest.json                                    configuration, code, machine, times

It may be called while the sweep is running: the front page then shows the progress, and each chapter how many of its
cells are finished. In a folder that has a report but no cells, it reads the rows and the manifest instead.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from urbe.atomic import Writer, replace_files, text_writer
from urbe.extras import need
from urbe.paper.chapter import Chapter
from urbe.paper.copies import MANIFEST, draw_copy, is_copy, read_manifest
from urbe.paper.drawn import Drawn, commits_text, draw_finished
from urbe.report.claims import markdown
from urbe.report.content import Facts, State
from urbe.report.numbers import duration
from urbe.report.page import render
from urbe.sweep import provenance
from urbe.sweep.cells import columns
from urbe.sweep.finished import read_plan
from urbe.sweep.status import Status, is_alive, read_status
from urbe.tables import parquet_writer

FORMATS = ("png", "svg", "pdf", "csv", "parquet")
"""Formats of the files beside the page: drawings, then rows."""

MOST_FAILURES = 5
"""The page lists at most this many failures."""

TITLE = "Robust reinforcement learning, tested"

LEAD = (
    'This report tests the claims of "A Bayesian Approach to Robust Reinforcement Learning" (Derman, Mankowitz, Mann '
    "and Mannor, 2019) on fresh seeds, measures what robustness costs and gains, and shows an agent that adapts when "
    "its environment changes.",
)

GLOSSARY = (
    ("nominal", "The model for which an agent was trained or planned, and its policy; tests also use other models."),
    ("robust", "Optimal for the worst model in an uncertainty set, a set of models around the nominal one."),
    ("UBE, URBE", "Agents that explore where their estimate of the value is uncertain: UBE for the nominal model, URBE "
     "(the paper's agent) for the worst model. DQN-UBE and DQN-URBE are their deep versions."),
    ("assumption", "A choice for a detail that the paper leaves open, such as a reward. Claims are tested under each."),
    ("greedy", "In tests the agent takes the action with the highest estimated value."),
    ("noisy", "In tests the agent still explores as in training, with noise in proportion to its uncertainty."),
)  # fmt: skip


class _Report(NamedTuple):
    """Everything in a report.

    Attributes:
      output: folder of the sweep, or of the copy.
      scale: the scale of the run.
      options: options of the command that chose part of a chapter.
      names: names of all chapters that were run.
      drawn: the chapters.
      seconds: duration of the last run, None when unknown.
      status: the progress of the sweep, None when unknown.
      copied: the manifest of the copy that was drawn, None for a sweep.
    """

    output: Path
    scale: str
    options: str
    names: tuple[str, ...]
    drawn: tuple[Drawn, ...]
    seconds: float | None
    status: Status | None = None
    copied: dict[str, Any] | None = None

    @property
    def done(self) -> int:
        """The number of finished cells."""
        return sum(int(each.made["cells"]) for each in self.drawn)

    @property
    def total(self) -> int:
        """The number of all cells."""
        return self.done + sum(len(each.made["missing"]) for each in self.drawn)

    @property
    def command(self) -> str:
        """The command that runs this sweep."""
        from urbe.paper import CHAPTERS

        only = f" --only {' '.join(self.names)}" if {each.name for each in CHAPTERS} != set(self.names) else ""
        return " ".join(filter(None, (f"urbe reproduce --scale {self.scale}{only}", self.options)))


def write_report(
    output: Path,
    chapters: Sequence[Chapter] | None = None,
    to: Path | None = None,
    formats: Collection[str] = FORMATS,
) -> Path:
    """Writes the report of the last sweep in a folder, from the finished cells; all files or none.

    Files of an earlier report that this one does not have are deleted; its manifest names them.

    Args:
      output: folder of the sweep.
      chapters: chapters to show; by default all of `urbe.paper.CHAPTERS` that were run.
      to: the folder to write into, by default that of the sweep.
      formats: formats of the files beside the pages, among `FORMATS`.

    Returns:
      the path of the front page.

    Raises:
      FileNotFoundError: no sweep was run into the folder, and it has no report.
    """
    need("Figures", "matplotlib")
    from urbe.report.export import figure_files

    to = output if to is None else to
    report = _gather(output, chapters)
    pages = [each.page for each in report.drawn]
    writers: dict[str, Writer] = {}
    links: dict[str, Sequence[str]] = {}
    for each in report.drawn:
        rows = _row_files(each.chapter, each.rows, formats)
        links[each.chapter.name] = tuple(rows)
        writers |= rows
    drawings, by_figure = figure_files(pages, formats)
    writers |= drawings
    other = (f"Not the paper's comparison: run with {report.options}.",) if report.options else ()
    writers["claims.md"] = text_writer([*(f"{line}\n\n" for line in other), markdown(pages)])
    written = render(
        TITLE,
        (*_lead(report), *other),
        _facts(report),
        pages,
        glossary=GLOSSARY,
        files=links | by_figure,
        state=_state(report),
    )
    writers |= {name: text_writer([text]) for name, text in written.items()}
    manifest = {**_manifest(report), "files": sorted({*writers, MANIFEST})}
    writers[MANIFEST] = text_writer([json.dumps(manifest, indent=1), "\n"])
    old = _files(to) - writers.keys()
    for folder in {(to / path).parent for path in writers}:
        folder.mkdir(parents=True, exist_ok=True)
    replace_files({to / path: writer for path, writer in writers.items()})
    for path in old:
        (to / path).unlink(missing_ok=True)
    return to / "index.html"


def _lead(report: _Report) -> Sequence[str]:
    """The purpose of the report; of one with chapters of the user only, their titles."""
    from urbe.paper import CHAPTERS

    if {each.name for each in CHAPTERS} & {each.chapter.name for each in report.drawn}:
        return LEAD
    return [f"Results of {', '.join(each.chapter.title for each in report.drawn)}."]


def _gather(output: Path, chapters: Sequence[Chapter] | None) -> _Report:
    from urbe.paper import CHAPTERS

    known = CHAPTERS if chapters is None else chapters
    if is_copy(output):
        manifest = read_manifest(output)
        names = tuple(manifest["experiments"])
        drawn = tuple(draw_copy(output, manifest, each) for each in known if each.name in names)
        scale, seconds = str(manifest["scale"]), float(manifest["wall_seconds"]) or None
        return _Report(output, scale, "", names, drawn, seconds, copied=manifest)
    plan, status = read_plan(output), read_status(output)
    counts = status["experiments"] if status else {}
    drawn = tuple(
        draw_finished(output, plan, each, int(counts.get(each.name, {}).get("kept", 0)))
        for each in known
        if each.name in plan.cells
    )
    wall = float(status["seconds"]) if status else None
    return _Report(output, plan.scale, plan.options, tuple(plan.cells), drawn, wall, status)


def _row_files(chapter: Chapter, rows: Sequence[Any], formats: Collection[str]) -> dict[str, Writer]:
    """The writer of each file of rows, by its path relative to the page; no Parquet where pyarrow is not installed."""
    kinds = columns(chapter.row)

    def write_csv(file: BinaryIO) -> None:
        """Floats as Python writes them, which reads back the same."""
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        csv.writer(text, lineterminator="\n").writerows([kinds, *rows])
        text.detach()

    def write_parquet(file: BinaryIO) -> None:
        found = zip(*rows, strict=True) if rows else iter([()] * len(kinds))
        dtypes = {str: np.str_, int: np.int64, float: np.float64}
        named = zip(kinds.items(), found, strict=True)
        parquet_writer({name: np.array(column, dtype=dtypes[kind]) for (name, kind), column in named})(file)

    writers: dict[str, Writer] = {}
    if "csv" in formats:
        writers[f"rows/{chapter.name}.csv"] = write_csv
    if "parquet" in formats and find_spec("pyarrow") is not None:
        writers[f"rows/{chapter.name}.parquet"] = write_parquet
    return writers


def _files(folder: Path) -> set[str]:
    """The pages, drawings and rows of the report in a folder; no files of anybody else."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        listed, chapters = [PurePosixPath(path) for path in manifest["files"]], manifest["experiments"].keys()
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return set()
    beside = {str(path) for path in listed if str(path.parent) in ("figures", "rows") and path.suffix[1:] in FORMATS}
    return beside | {str(path) for path in listed if path.suffix == ".html" and path.stem in chapters}


def _state(report: _Report) -> State | None:
    """The progress of an unfinished sweep, for the front page; None when everything is finished."""
    done, total, status = report.done, report.total, report.status
    if done == total:
        return None
    notes = ["This run is not finished: chapters say what is missing, and verdicts may change."]
    failures = status["failures"] if status else []
    failed = [f"{each['experiment']}/{each['cell']} failed: {each['text']}" for each in failures[:MOST_FAILURES]]
    failed += [f"{len(failures) - MOST_FAILURES} more failed."] if len(failures) > MOST_FAILURES else []
    if status is not None and is_alive(status):
        return State(done, total, status["running"], len(failures), status["left"], (*notes, *failed))
    notes.append(f"The run is not under way. Continue it with: {report.command} --output {report.output}")
    return State(done, total, 0, len(failures), None, (*notes, *failed))


def _facts(report: _Report) -> Facts:
    done, total = report.done, report.total
    seconds = sum(float(each.made["cell_seconds"]) for each in report.drawn)
    wall = f", {duration(report.seconds)} in the last run" if report.seconds is not None else ""
    launcher = f" on {report.status['launcher']}" if report.status else ""
    commits = sum((Counter(each.made["commits"]) for each in report.drawn), Counter[str]())
    return (
        ("Scale", report.scale),
        *([("Departure", f"not the paper's comparison: {report.options}")] if report.options else []),
        ("Cells", f"{done}" if done == total else f"{done} of {total}"),
        ("Time", f"{duration(seconds)} in cells{wall}{launcher}"),
        ("Commit", commits_text(commits)),
        ("Machine", "; ".join(map(_machine, _distinct(report, "machines"))) or "none"),
        ("Software", "; ".join(map(_named, _distinct(report, "versions"))) or "none"),
        ("Command", report.command if report.copied is None else str(report.copied["command"])),
    )


def _distinct(report: _Report, key: str) -> list[dict[str, str]]:
    """The machines or versions of all chapters, each once."""
    found = [{k: v for k, v in fact.items() if k != "cells"} for each in report.drawn for fact in each.made[key]]
    return list({json.dumps(fact, sort_keys=True): fact for fact in found}.values())


def _machine(facts: dict[str, str]) -> str:
    return f"{facts['processor']}, {facts['cores']} cores, {facts['system']}, Python {facts['python']}"


def _named(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {text}" for name, text in versions.items())


def _manifest(report: _Report) -> dict[str, Any]:
    drawn_by: dict[str, Any] = {
        "commit": provenance.commit(),
        "versions": provenance.versions(),
        "machine": provenance.machine(),
    }
    entries = {each.chapter.name: each.made for each in report.drawn}
    if report.copied is not None:
        return {**report.copied, "drawn_by": drawn_by, "experiments": entries}
    return {
        "command": report.command,
        "scale": report.scale,
        "wall_seconds": report.seconds or 0.0,
        **drawn_by,
        "experiments": entries,
    }
