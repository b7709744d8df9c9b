"""From finished cells to a chapter of the page, whether or not all of them are there."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from urbe.paper.chapter import Chapter
from urbe.paper.results import Results
from urbe.report.content import PageChapter, Section
from urbe.report.numbers import duration
from urbe.sweep.finished import Finished, SweepPlan, load_finished
from urbe.sweep.sources import code_digest


class Drawn(NamedTuple):
    """A chapter and what it was drawn from.

    Attributes:
      chapter: the chapter.
      finished: rows and records of its finished cells.
      digest: of the code that runs its cells.
      kept: how many of its cells are from an earlier run.
      seconds: the computing time of all cells.
      page: what is shown of it.
    """

    chapter: Chapter
    finished: Finished
    digest: str
    kept: int
    seconds: float
    page: PageChapter


def draw(output: Path, plan: SweepPlan, chapter: Chapter, kept: int) -> Drawn:
    """Draws a chapter from the cells that are finished.

    Args:
      output: folder of the sweep.
      plan: of the sweep.
      chapter: which.
      kept: how many of its cells are from an earlier run.
    """
    digest = code_digest(chapter.module)
    finished = load_finished(output, chapter.name, chapter.row, _digests(chapter, plan, digest))
    seconds = sum(cell.record.seconds for cell in finished.cells)
    text = f"{len(finished.cells)}, with {len(finished.rows())} rows"
    text += f"; {kept} of them kept from an earlier run" if kept else ""
    text += f"; {len(finished.missing)} more are not finished" if finished.missing else ""
    text += f"; {len(finished.other_code)} of other code than today's" if finished.other_code else ""
    facts = (
        ("Cells", text),
        ("Computing", f"{duration(seconds)} in all, one thread per cell, compilation included"),
        ("Commit", commits_text(finished.cells)),
    )
    shown = PageChapter(chapter.name, chapter.title, tuple(_sections(chapter, finished)), facts)
    return Drawn(chapter, finished, digest, kept, seconds, shown)


def _digests(chapter: Chapter, plan: SweepPlan, digest: str) -> set[str]:
    """Digests of today's code: of the chapter alone, and with each agent of one's own that the sweep chose."""
    found = {digest}
    for name in re.findall(r"([\w.]+):\w+", plan.options):
        with suppress(ImportError):  # its cells are then of other code
            found.add(code_digest(chapter.module, name))
    return found


def record(drawn: Drawn) -> dict[str, Any]:
    """The entry of a chapter in the manifest."""
    finished = drawn.finished
    machines = Counter(json.dumps(cell.record.machine, sort_keys=True) for cell in finished.cells)
    times = [cell.record.finished for cell in finished.cells]
    return {
        "title": drawn.chapter.title,
        "module": drawn.chapter.module,
        "code": drawn.digest,
        "cells": len(finished.cells),
        "missing": list(finished.missing),
        "of_other_code": list(finished.other_code),
        "reused": drawn.kept,
        "rows": len(finished.rows()),
        "cell_seconds": drawn.seconds,
        "commits": {str(commit): n for commit, n in _commits(finished.cells).items()},
        "machines": [{**json.loads(machine), "cells": n} for machine, n in machines.items()],
        "finished": [min(times), max(times)] if times else [],
        "config": [cell.record.config for cell in finished.cells],
    }


def commits_text(cells: Iterable[Any]) -> str:
    """The commits of cells, short, most frequent first."""
    found = [commit for commit, _ in _commits(cells).most_common()]
    return ", ".join("unknown" if commit is None else commit[:12] + commit[40:] for commit in found) or "none"


def _commits(cells: Iterable[Any]) -> Counter[str | None]:
    return Counter(cell.record.commit for cell in cells)


def _sections(chapter: Chapter, finished: Finished) -> list[Section]:
    """The sections of a chapter, drawn from the finished cells; or the reason why they are too few."""
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
