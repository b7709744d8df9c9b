"""From finished cells to a chapter of the page, whether or not all of them are there."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from urbe.paper.chapter import Chapter
from urbe.paper.results import Results
from urbe.sweep.cells import ROWS
from urbe.sweep.finished import CELLS, Finished, SweepPlan, load_finished
from urbe.sweep.sources import code_digest
from urbe.sweep.store import file_of

if TYPE_CHECKING:
    from urbe.report import content


State = tuple[tuple[str, int], ...]
"""Which cells of a chapter are finished: directory and time of writing."""


class Drawn(NamedTuple):
    """A chapter and what it was drawn from.

    Attributes:
      state: of the cells at that time.
      finished: their rows and records.
      digest: of the code that runs its cells.
      chapter: for the page.
    """

    state: State
    finished: Finished
    digest: str
    chapter: content.PageChapter


def state_of(output: Path, plan: SweepPlan, name: str) -> State:
    """Which cells of a chapter are finished now; cheap."""
    found = []
    for directory in plan.cells[name]:
        try:
            found.append((directory, file_of(output / CELLS / name / directory / ROWS).stat().st_mtime_ns))
        except OSError:
            continue
    return tuple(found)


def draw(output: Path, plan: SweepPlan, chapter: Chapter, kept: int) -> Drawn:
    """Draws a chapter from the cells that are finished.

    Args:
      output: folder of the sweep.
      plan: of the sweep.
      chapter: which.
      kept: how many of its cells are from an earlier run.
    """
    from urbe.report import content
    from urbe.report.numbers import duration

    state, digest = state_of(output, plan, chapter.name), code_digest(chapter.module)
    finished = load_finished(output, chapter.name, chapter.row, _digests(chapter, plan, digest))
    text = f"{len(finished.cells)}, with {len(finished.rows())} rows"
    text += f"; {kept} of them kept from an earlier run" if kept else ""
    text += f"; {len(finished.missing)} more are not finished" if finished.missing else ""
    text += f"; {len(finished.other_code)} of other code than today's" if finished.other_code else ""
    facts = (
        ("Cells", text),
        ("Computing", f"{duration(seconds(finished))} in all, one thread per cell, compilation included"),
        ("Commit", commits_text(finished.cells)),
    )
    shown = content.PageChapter(chapter.name, chapter.title, tuple(_sections(chapter, finished)), facts)
    return Drawn(state, finished, digest, shown)


def _digests(chapter: Chapter, plan: SweepPlan, digest: str) -> set[str]:
    """Of today's code: that of the chapter, and with each agent of one's own that the sweep chose."""
    found = {digest}
    for name in re.findall(r"([\w.]+):\w+", plan.options):
        with suppress(ImportError):  # its cells are then of other code
            found.add(code_digest(chapter.module, name))
    return found


def record(chapter: Chapter, drawn: Drawn, kept: int) -> dict[str, Any]:
    """What the manifest says of a chapter."""
    finished = drawn.finished
    machines = Counter(json.dumps(cell.record.machine, sort_keys=True) for cell in finished.cells)
    times = [cell.record.finished for cell in finished.cells]
    return {
        "title": chapter.title,
        "module": chapter.module,
        "code": drawn.digest,
        "cells": len(finished.cells),
        "missing": list(finished.missing),
        "of_other_code": list(finished.other_code),
        "reused": kept,
        "rows": len(finished.rows()),
        "cell_seconds": seconds(finished),
        "commits": {str(commit): n for commit, n in _commits(finished.cells).items()},
        "machines": [{**json.loads(machine), "cells": n} for machine, n in machines.items()],
        "finished": [min(times), max(times)] if times else [],
        "config": [cell.record.config for cell in finished.cells],
    }


def seconds(finished: Finished) -> float:
    """Of computing."""
    return sum(cell.record.seconds for cell in finished.cells)


def commits_text(cells: Iterable[Any]) -> str:
    """The commits of cells, short, most frequent first."""
    found = [commit for commit, _ in _commits(cells).most_common()]
    return ", ".join("unknown" if commit is None else commit[:12] + commit[40:] for commit in found) or "none"


def _commits(cells: Iterable[Any]) -> Counter[str | None]:
    return Counter(cell.record.commit for cell in cells)


def _sections(chapter: Chapter, finished: Finished) -> list[content.Section]:
    """What is drawn; from part of the cells what can be, and else a word on why not."""
    from urbe.report.content import Section

    if not finished.missing:
        return chapter.sections(Results.of(finished.rows(), chapter.row))
    n, total = len(finished.cells), len(finished.cells) + len(finished.missing)
    if not n:
        return [Section("", (f"None of the {total} cells of this chapter is finished yet.",))]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # means over nothing, and the like
            sections = chapter.sections(Results.of(finished.rows(), chapter.row))
    except Exception as error:
        why = f" ({type(error).__name__}: {str(error).rstrip('.')})" if str(error) else ""
        return [Section("", (f"{n} of {total} cells are finished, too few to draw this chapter from{why}.",))]
    note = f"Drawn from {n} of {total} cells, since the others are not finished: numbers and verdicts may change."
    return [Section("", (note,)), *sections]
