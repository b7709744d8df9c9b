"""From finished cells to a page of figures; nothing is run.

    write_report(output, chapters=None, to=None, formats=FORMATS) -> Path

reads `output/sweep.json` and the finished cells, whatever code computed them, and writes into `output`, or elsewhere:

    index.html                                       the page
    claims.md                                        the paper's claims and their verdicts, as on the page
    rows/<NAME>.csv, rows/<NAME>.parquet             the rows behind each chapter
    figures/<NAME>-<figure>.png, .svg, .pdf          each drawing
    manifest.json                                    what was run, by which code, where, for how long

It may be called while the sweep is under way: the page then tells how far it has come, and chapters how many of their
cells they show.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from urbe.atomic import Writer, replace_files, text_writer
from urbe.paper import drawn as drawing
from urbe.paper.chapter import Chapter
from urbe.paper.row_files import FORMATS as ROW_FORMATS
from urbe.paper.row_files import row_files
from urbe.paper.run_state import run_state
from urbe.sweep import provenance
from urbe.sweep.finished import read_plan
from urbe.sweep.status import Status, read_status

if TYPE_CHECKING:
    from urbe.report.content import Facts


FORMATS = ("png", "svg", "pdf", *ROW_FORMATS)
"""Of the files beside the page: drawings, then rows."""

TITLE = "Decisions that hold when the model does not"

LEAD = (
    "Experiments with Markov decision processes whose transition probabilities are not quite known: what robustness "
    "costs and buys, what agents do that learn while they act, and which claims of the paper (Derman, Mankowitz, Mann "
    "and Mannor, A Bayesian Approach to Robust Reinforcement Learning, 2019) hold, under which readings. Every number "
    "below was computed by the code of the stated commit; the rows behind each chapter are beside this page.",
)


@dataclass
class Memory:
    """What was drawn before, by name: a chapter whose cells are the same is not drawn again."""

    drawn: dict[str, drawing.Drawn] = field(default_factory=dict)
    html: dict[str, str] = field(default_factory=dict)


class _Report(NamedTuple):
    """All that goes on the page.

    Attributes:
      scale: of the sweep.
      options: with which a part of a chapter was chosen; see `urbe.paper.choice`.
      names: of its chapters.
      status: of the sweep, None when unknown.
      parts: chapters and what was drawn of them.
    """

    scale: str
    options: str
    names: tuple[str, ...]
    status: Status | None
    parts: tuple[tuple[Chapter, drawing.Drawn], ...]

    def kept(self, name: str) -> int:
        """How many cells of a chapter are from an earlier run."""
        return int(self.status["experiments"].get(name, {}).get("kept", 0)) if self.status else 0

    @property
    def cells(self) -> list[Any]:
        """All that are finished."""
        return [cell for _, drawn in self.parts for cell in drawn.finished.cells]


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
    from urbe.report.claims_text import markdown
    from urbe.report.export import figure_files

    to = output if to is None else to
    report = _gather(output, chapters, Memory())
    writers: dict[str, Writer] = {}
    links: dict[str, Sequence[str]] = {}
    for chapter, drawn in report.parts:
        rows = row_files(chapter, drawn.finished.rows(), formats)
        links[chapter.name] = tuple(rows)
        writers |= rows
    shown = [drawn.chapter for _, drawn in report.parts]
    drawings, by_figure = figure_files(shown, formats)
    writers |= drawings
    writers["claims.md"] = text_writer([markdown(shown)])
    manifest = {**_manifest(report), "files": sorted({*writers, "manifest.json", "index.html"})}
    writers["manifest.json"] = text_writer([json.dumps(manifest, indent=1), "\n"])
    writers["index.html"] = text_writer([_page(output, report, links | by_figure)])
    old = _files(to) - writers.keys()
    for folder in {(to / path).parent for path in writers}:
        folder.mkdir(parents=True, exist_ok=True)
    replace_files({to / path: writer for path, writer in writers.items()})
    for path in old:
        (to / path).unlink(missing_ok=True)
    return to / "index.html"


def _files(folder: Path) -> set[str]:
    """What the page that is there brought with it: drawings and rows; nothing of anybody else's."""
    try:
        listed = json.loads((folder / "manifest.json").read_text())["files"]
        found = {PurePosixPath(path) for path in listed}
    except (OSError, ValueError, TypeError, KeyError):
        return set()
    return {str(path) for path in found if str(path.parent) in ("figures", "rows") and path.suffix[1:] in FORMATS}


def write_page(
    output: Path, chapters: Sequence[Chapter] | None = None, *, memory: Memory, refresh: int
) -> tuple[Path, int, int]:
    """Writes the page alone, drawing what changed; for a sweep that is under way.

    Args:
      output, chapters: see `write_report`.
      memory: of the last call; updated.
      refresh: seconds after which the page reads itself again, until the sweep is finished.

    Returns:
      the path of the page, and how many cells are finished, of how many.
    """
    report = _gather(output, chapters, memory)
    text = _page(output, report, {}, refresh, memory.html)
    replace_files({output / "index.html": text_writer([text])})
    return output / "index.html", *_counts(report)


def _gather(output: Path, chapters: Sequence[Chapter] | None, memory: Memory) -> _Report:
    from urbe.paper import CHAPTERS

    plan = read_plan(output)
    report = _Report(plan.scale, plan.options, tuple(plan.cells), read_status(output), ())
    for chapter in CHAPTERS if chapters is None else chapters:
        name = chapter.name
        if name not in plan.cells:
            continue
        if name not in memory.drawn or memory.drawn[name].state != drawing.state_of(output, plan, name):
            memory.drawn[name] = drawing.draw(output, plan, chapter, report.kept(name))
            memory.html.pop(name, None)
        report = report._replace(parts=(*report.parts, (chapter, memory.drawn[name])))
    return report


def _page(
    output: Path,
    report: _Report,
    links: dict[str, Sequence[str]],
    refresh: int = 0,
    html: dict[str, str] | None = None,
) -> str:
    from urbe.report.page import render

    state = run_state(*_counts(report), report.status, _resume(output, report), refresh)
    shown = [drawn.chapter for _, drawn in report.parts]
    return render(TITLE, LEAD, _facts(report), shown, files=links, state=state, drawn=html)


def _resume(output: Path, report: _Report) -> str:
    """The command that goes on with the sweep."""
    return f"{_command(report)} --output {output}"


def _command(report: _Report) -> str:
    """The command that makes such a sweep."""
    from urbe.paper import CHAPTERS

    only = f" --only {' '.join(report.names)}" if {each.name for each in CHAPTERS} != set(report.names) else ""
    return " ".join(filter(None, (f"urbe reproduce --scale {report.scale}{only}", report.options)))


def _counts(report: _Report) -> tuple[int, int]:
    """Cells that are finished, and all."""
    done = len(report.cells)
    return done, done + sum(len(drawn.finished.missing) for _, drawn in report.parts)


def _facts(report: _Report) -> Facts:
    from urbe.report.numbers import duration

    machines = Counter(tuple(cell.record.machine.items()) for cell in report.cells)
    versions = Counter(tuple(cell.record.versions.items()) for cell in report.cells)
    done, total = _counts(report)
    seconds = sum(drawing.seconds(drawn.finished) for _, drawn in report.parts)
    wall = f", {duration(report.status['seconds'])} in the last run" if report.status else ""
    launcher = f" on {report.status['launcher']}" if report.status else ""
    return (
        ("Scale", report.scale),
        *([("Departure", f"not the paper's comparison: {report.options}")] if report.options else []),
        ("Cells", f"{done}" if done == total else f"{done} of {total}"),
        ("Time", f"{duration(seconds)} in cells{wall}{launcher}"),
        ("Commit", drawing.commits_text(report.cells)),
        ("Machine", "; ".join(_machine(dict(each)) for each, _ in machines.most_common()) or "none"),
        ("Software", "; ".join(_named(dict(each)) for each, _ in versions.most_common()) or "none"),
    )


def _machine(facts: dict[str, str]) -> str:
    return f"{facts['processor']}, {facts['cores']} cores, {facts['system']}, Python {facts['python']}"


def _named(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {text}" for name, text in versions.items())


def _manifest(report: _Report) -> dict[str, Any]:
    return {
        "command": _command(report),
        "scale": report.scale,
        "wall_seconds": float(report.status["seconds"]) if report.status else 0.0,
        "commit": provenance.commit(),
        "versions": provenance.versions(),
        "machine": provenance.machine(),
        "experiments": {
            chapter.name: drawing.record(chapter, drawn, report.kept(chapter.name)) for chapter, drawn in report.parts
        },
    }
