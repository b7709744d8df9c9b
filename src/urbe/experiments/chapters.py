"""From finished cells to a chapter of the page, whether or not all of them are there."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from urbe.experiments.base import AnyExperiment
from urbe.sweep.finished import CELLS, Finished, Plan, load_finished
from urbe.sweep.sources import code_digest

if TYPE_CHECKING:
    from urbe.report.content import Chapter, Section

State = tuple[tuple[str, int], ...]
"""Which cells of an experiment are finished: directory and time of writing."""


class Drawn(NamedTuple):
    """A chapter and what it was drawn from.

    Attributes:
      state: of the cells at that time.
      finished: their rows and records.
      digest: of the code of the experiment.
      chapter: for the page.
    """

    state: State
    finished: Finished
    digest: str
    chapter: Chapter


def state_of(output: Path, plan: Plan, name: str) -> State:
    """Which cells of an experiment are finished now; cheap."""
    found = []
    for directory in plan.cells[name]:
        try:
            found.append((directory, (output / CELLS / name / directory / "rows.npz").stat().st_mtime_ns))
        except OSError:
            continue
    return tuple(found)


def draw(output: Path, plan: Plan, experiment: AnyExperiment, kept: int) -> Drawn:
    """The chapter of an experiment from the cells that are finished.

    Args:
      output: folder of the sweep.
      plan: of the sweep.
      experiment: which.
      kept: how many of its cells are from an earlier run.
    """
    from urbe.report.content import Chapter
    from urbe.report.numbers import duration

    state, digest = state_of(output, plan, experiment.NAME), code_digest(experiment.__name__)
    finished = load_finished(output, experiment.NAME, experiment.Row, digest)
    told = f"{len(finished.cells)}, with {len(finished.rows())} rows"
    told += f"; {kept} of them kept from an earlier run" if kept else ""
    told += f"; {len(finished.missing)} more are not finished" if finished.missing else ""
    told += f"; {len(finished.other_code)} of other code than today's" if finished.other_code else ""
    facts = (
        ("Cells", told),
        ("Computing", f"{duration(seconds(finished))} in all, one thread per cell, compilation included"),
        ("Commit", commits_text(finished.cells)),
    )
    chapter = Chapter(experiment.NAME, experiment.TITLE, tuple(_sections(experiment, finished)), facts)
    return Drawn(state, finished, digest, chapter)


def record(experiment: AnyExperiment, drawn: Drawn, kept: int) -> dict[str, Any]:
    """What the manifest tells of an experiment."""
    finished = drawn.finished
    machines = Counter(json.dumps(cell.record.machine, sort_keys=True) for cell in finished.cells)
    times = [cell.record.finished for cell in finished.cells]
    return {
        "title": experiment.TITLE,
        "module": experiment.__name__,
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


def _sections(experiment: AnyExperiment, finished: Finished) -> list[Section]:
    """What is drawn; from part of the cells what can be, and else a word on why not."""
    from urbe.report.content import Section

    if not finished.missing:
        return experiment.plot(experiment.analyse(finished.rows()))
    n, total = len(finished.cells), len(finished.cells) + len(finished.missing)
    if not n:
        return [Section("", (f"None of the {total} cells of this chapter is finished yet.",))]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # means over nothing, and the like
            sections = experiment.plot(experiment.analyse(finished.rows()))
    except Exception as error:
        why = f" ({type(error).__name__}: {str(error).rstrip('.')})" if str(error) else ""
        return [Section("", (f"{n} of {total} cells are finished, too few to draw this chapter from{why}.",))]
    note = f"Drawn from {n} of {total} cells, since the others are not finished: numbers and verdicts may change."
    return [Section("", (note,)), *sections]
