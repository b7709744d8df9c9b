"""From rows to a chapter of the report, whether or not all its cells are finished."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from urbe.paper.chapter import Chapter
from urbe.paper.results import Results
from urbe.report.content import Facts, Highlight, PageChapter, Section
from urbe.report.numbers import duration
from urbe.sweep.finished import SweepPlan, load_finished
from urbe.sweep.sources import code_digest


class Drawn(NamedTuple):
    """A chapter and what it was drawn from.

    Attributes:
      chapter: the chapter.
      rows: the rows of all finished cells.
      made: how the rows were computed: the entry of the chapter in the manifest.
      page: the content of its page.
    """

    chapter: Chapter
    rows: Sequence[Any]
    made: dict[str, Any]
    page: PageChapter


def draw(chapter: Chapter, rows: Sequence[Any], made: dict[str, Any], scale: str = "") -> Drawn:
    """Draws a chapter.

    Args:
      chapter: the chapter.
      rows: rows of all finished cells, in the order of the cells.
      made: see `record`.
      scale: scale of the report; the page of a chapter states its scale if it differs.
    """
    sections, highlight = _content(chapter, rows, int(made["cells"]), made["missing"])
    page = PageChapter(
        chapter.name, chapter.title, tuple(sections), _facts(made, len(rows), scale), chapter.summary, highlight
    )
    return Drawn(chapter, rows, made, page)


def draw_finished(output: Path, plan: SweepPlan, chapter: Chapter, kept: int) -> Drawn:
    """Draws a chapter from the cells that are finished.

    Args:
      output: folder of the sweep.
      plan: plan of the sweep.
      chapter: the chapter.
      kept: number of its cells that are from an earlier run.
    """
    digest = code_digest(chapter.module)
    finished = load_finished(output, chapter.name, chapter.row, _digests(chapter, plan, digest))
    rows = finished.rows()
    made = {
        "title": chapter.title,
        "module": chapter.module,
        "scale": plan.scale,
        "code": digest,
        "cells": len(finished.cells),
        "missing": list(finished.missing),
        "of_other_code": list(finished.other_code),
        "reused": kept,
        "rows": len(rows),
        "cell_seconds": sum(cell.record.seconds for cell in finished.cells),
        "commits": dict(Counter(str(cell.record.commit) for cell in finished.cells)),
        "machines": _counted(cell.record.machine for cell in finished.cells),
        "versions": _counted(cell.record.versions for cell in finished.cells),
        "finished": _ends([cell.record.finished for cell in finished.cells]),
        "config": [cell.record.config for cell in finished.cells],
    }
    return draw(chapter, rows, made, plan.scale)


def commits_text(commits: Mapping[str, int]) -> str:
    """The commits of cells, shortened, most frequent first."""
    found = [commit for commit, _ in Counter(commits).most_common()]
    return ", ".join("unknown" if commit == "None" else commit[:12] + commit[40:] for commit in found) or "none"


def _digests(chapter: Chapter, plan: SweepPlan, digest: str) -> set[str]:
    """Digests of the installed code: of the chapter itself, and with each user-defined agent that the sweep chose."""
    found = {digest}
    for name in re.findall(r"([\w.]+):\w+", plan.options):
        with suppress(ImportError):  # its cells then count as computed by other code
            found.add(code_digest(chapter.module, name))
    return found


def _counted(facts: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Each distinct set of facts, with the number of cells that have it."""
    counts = Counter(json.dumps(dict(each)) for each in facts)
    return [{**json.loads(each), "cells": n} for each, n in counts.items()]


def _ends(times: Sequence[str]) -> list[str]:
    return [min(times), max(times)] if times else []


def _facts(made: Mapping[str, Any], rows: int, scale: str) -> Facts:
    text = f"{made['cells']}, with {rows} rows"
    text += f"; {len(made['missing'])} more are not finished" if made["missing"] else ""
    own = made.get("scale", scale)
    return (
        *([("Scale", str(own))] if own != scale else []),
        ("Cells", text),
        ("Computing time", f"{duration(made['cell_seconds'])} in all, one thread per cell, compilation included"),
        ("Commit", commits_text(made["commits"])),
    )


def _content(
    chapter: Chapter, rows: Sequence[Any], done: int, missing: Sequence[str]
) -> tuple[list[Section], Highlight | None]:
    """Sections and highlight of a chapter, or the reason why there are too few cells to draw."""
    if not missing:
        return _drawing(chapter, rows)
    total = done + len(missing)
    if not done:
        return [Section("", (f"None of the {total} cells of this chapter is finished yet.",))], None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as means of empty arrays
            sections, highlight = _drawing(chapter, rows)
    except Exception as error:
        why = f" ({type(error).__name__}: {str(error).rstrip('.')})" if str(error) else ""
        text = f"{done} of {total} cells are finished, too few to draw this chapter{why}."
        return [Section("", (text,))], None
    note = f"Drawn from {done} of {total} cells, since the others are not finished. Numbers and verdicts may change."
    return [Section("", (note,)), *sections], highlight


def _drawing(chapter: Chapter, rows: Sequence[Any]) -> tuple[list[Section], Highlight | None]:
    results = Results.of(rows, chapter.row)
    return chapter.sections(results), chapter.highlight(results) if chapter.highlight is not None else None
