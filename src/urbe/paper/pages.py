"""From finished cells to a page of figures; nothing is run.

    write_report(output, chapters=None, to=None, formats=FORMATS) -> Path

reads `output/sweep.json` and the finished cells, whatever code computed them, and writes into `output`, or elsewhere:

    index.html                                       the page
    claims.md                                        the paper's claims and their verdicts, as on the page
    rows/<NAME>.csv, rows/<NAME>.parquet             the rows behind each chapter
    figures/<NAME>-<figure>.png, .svg, .pdf          each drawing
    manifest.json                                    what was run, by which code, where, for how long

It may be called while the sweep is under way: the page then says how much is finished, and each chapter how many of its
cells it shows.
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
from urbe.mdp.formats.tables import parquet_writer
from urbe.paper.chapter import Chapter
from urbe.paper.drawn import Drawn, commits_text, draw, record
from urbe.report.claims import markdown
from urbe.report.content import Facts, State
from urbe.report.numbers import duration
from urbe.report.page import render
from urbe.sweep import provenance
from urbe.sweep.cells import columns
from urbe.sweep.finished import SweepPlan, read_plan
from urbe.sweep.status import Status, is_alive, read_status

FORMATS = ("png", "svg", "pdf", "csv", "parquet")
"""Formats of the files beside the page: drawings, then rows."""

MOST_FAILURES = 5
"""Failures that are listed on the page."""

TITLE = "Decisions that hold when the model does not"

LEAD = (
    "Experiments with Markov decision processes whose transition probabilities are not quite known: what robustness "
    "costs and buys, what agents do that learn while they act, and which claims of the paper (Derman, Mankowitz, Mann "
    "and Mannor, A Bayesian Approach to Robust Reinforcement Learning, 2019) hold, under which readings. Every number "
    "below was computed by the code of the stated commit; the rows behind each chapter are beside this page.",
)


class _Report(NamedTuple):
    """All that goes on the page.

    Attributes:
      output: folder of the sweep.
      plan: what the sweep was to run.
      status: how far it has come, None when unknown.
      drawn: its chapters.
    """

    output: Path
    plan: SweepPlan
    status: Status | None
    drawn: tuple[Drawn, ...]

    @property
    def cells(self) -> list[Any]:
        """All finished cells."""
        return [cell for each in self.drawn for cell in each.finished.cells]

    @property
    def total(self) -> int:
        """The number of all cells."""
        return len(self.cells) + sum(len(each.finished.missing) for each in self.drawn)

    @property
    def command(self) -> str:
        """The command that makes such a sweep."""
        from urbe.paper import CHAPTERS

        names = tuple(self.plan.cells)
        only = f" --only {' '.join(names)}" if {each.name for each in CHAPTERS} != set(names) else ""
        return " ".join(filter(None, (f"urbe reproduce --scale {self.plan.scale}{only}", self.plan.options)))


def write_report(
    output: Path,
    chapters: Sequence[Chapter] | None = None,
    to: Path | None = None,
    formats: Collection[str] = FORMATS,
) -> Path:
    """Writes the page of the last sweep in a folder with all its files, from the finished cells; all of them or none.

    Files of an earlier page that this one does not have are deleted; its manifest names them.

    Args:
      output: folder of the sweep.
      chapters: those to show, of those that were run; by default all of `urbe.paper.CHAPTERS` that were.
      to: where to write, if not into the folder of the sweep.
      formats: of the files beside the page, among `FORMATS`.

    Returns:
      the path of the page.

    Raises:
      FileNotFoundError: no sweep was run into the folder.
    """
    need("Figures", "matplotlib")
    from urbe.report.export import figure_files

    to = output if to is None else to
    report = _gather(output, chapters)
    pages = [each.page for each in report.drawn]
    writers: dict[str, Writer] = {}
    links: dict[str, Sequence[str]] = {}
    for each in report.drawn:
        rows = _row_files(each.chapter, each.finished.rows(), formats)
        links[each.chapter.name] = tuple(rows)
        writers |= rows
    drawings, by_figure = figure_files(pages, formats)
    writers |= drawings
    writers["claims.md"] = text_writer([markdown(pages)])
    manifest = {**_manifest(report), "files": sorted({*writers, "manifest.json", "index.html"})}
    writers["manifest.json"] = text_writer([json.dumps(manifest, indent=1), "\n"])
    page = render(TITLE, LEAD, _facts(report), pages, files=links | by_figure, state=_state(report))
    writers["index.html"] = text_writer([page])
    old = _files(to) - writers.keys()
    for folder in {(to / path).parent for path in writers}:
        folder.mkdir(parents=True, exist_ok=True)
    replace_files({to / path: writer for path, writer in writers.items()})
    for path in old:
        (to / path).unlink(missing_ok=True)
    return to / "index.html"


def _gather(output: Path, chapters: Sequence[Chapter] | None) -> _Report:
    from urbe.paper import CHAPTERS

    plan, status = read_plan(output), read_status(output)
    counts = status["experiments"] if status else {}
    wanted = [each for each in (CHAPTERS if chapters is None else chapters) if each.name in plan.cells]
    drawn = (draw(output, plan, each, int(counts.get(each.name, {}).get("kept", 0))) for each in wanted)
    return _Report(output, plan, status, tuple(drawn))


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
    """The drawings and rows that belong to the page in a folder; no files of anybody else."""
    try:
        listed = json.loads((folder / "manifest.json").read_text())["files"]
        found = {PurePosixPath(path) for path in listed}
    except (OSError, ValueError, TypeError, KeyError):
        return set()
    return {str(path) for path in found if str(path.parent) in ("figures", "rows") and path.suffix[1:] in FORMATS}


def _state(report: _Report) -> State | None:
    """The progress of an unfinished sweep, for the head of the page; None when all is finished."""
    done, total, status = len(report.cells), report.total, report.status
    if done == total:
        return None
    notes = ["This page is of an unfinished run: what is missing is said in its place, and verdicts may change."]
    failures = status["failures"] if status else []
    failed = [f"{each['experiment']}/{each['cell']} failed: {each['text']}" for each in failures[:MOST_FAILURES]]
    failed += [f"{len(failures) - MOST_FAILURES} more failed."] if len(failures) > MOST_FAILURES else []
    if status is not None and is_alive(status):
        return State(done, total, status["running"], len(failures), status["left"], (*notes, *failed))
    notes.append(f"The run is not under way; it goes on with: {report.command} --output {report.output}")
    return State(done, total, 0, len(failures), None, (*notes, *failed))


def _facts(report: _Report) -> Facts:
    machines = Counter(tuple(cell.record.machine.items()) for cell in report.cells)
    versions = Counter(tuple(cell.record.versions.items()) for cell in report.cells)
    done, total = len(report.cells), report.total
    seconds = sum(each.seconds for each in report.drawn)
    wall = f", {duration(report.status['seconds'])} in the last run" if report.status else ""
    launcher = f" on {report.status['launcher']}" if report.status else ""
    return (
        ("Scale", report.plan.scale),
        *([("Departure", f"not the paper's comparison: {report.plan.options}")] if report.plan.options else []),
        ("Cells", f"{done}" if done == total else f"{done} of {total}"),
        ("Time", f"{duration(seconds)} in cells{wall}{launcher}"),
        ("Commit", commits_text(report.cells)),
        ("Machine", "; ".join(_machine(dict(each)) for each, _ in machines.most_common()) or "none"),
        ("Software", "; ".join(_named(dict(each)) for each, _ in versions.most_common()) or "none"),
    )


def _machine(facts: dict[str, str]) -> str:
    return f"{facts['processor']}, {facts['cores']} cores, {facts['system']}, Python {facts['python']}"


def _named(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {text}" for name, text in versions.items())


def _manifest(report: _Report) -> dict[str, Any]:
    return {
        "command": report.command,
        "scale": report.plan.scale,
        "wall_seconds": float(report.status["seconds"]) if report.status else 0.0,
        "commit": provenance.commit(),
        "versions": provenance.versions(),
        "machine": provenance.machine(),
        "experiments": {each.chapter.name: record(each) for each in report.drawn},
    }
