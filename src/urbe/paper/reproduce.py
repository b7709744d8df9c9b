"""From cells to the report, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from urbe.extras import need
from urbe.paper.chapter import SCALES, Chapter, Scale, check_chapters, everywhere
from urbe.paper.choice import Selection
from urbe.paper.pages import write_report
from urbe.sweep import cells
from urbe.sweep.finished import CELLS
from urbe.sweep.launcher import Launcher
from urbe.sweep.local import LocalProcesses
from urbe.sweep.run import Watch, sweep
from urbe.sweep.sources import code_digest

WHOLE = Selection()
"""All of a chapter."""


def reproduce(
    output: Path,
    watch: Watch | None = None,
    *,
    scale: Scale = "quick",
    chapters: Sequence[Chapter] | None = None,
    choice: Selection = WHOLE,
    launcher: Launcher | None = None,
) -> Path:
    """Runs the cells of chapters and writes the report.

    Writes the report (`urbe.paper.pages`) into `output`, and a directory for each cell in `cells/<chapter>/`. Cells
    already finished by the same code are read instead of run; interrupted ones resume.

    Args:
      output: folder to write into; created if missing.
      watch: called with the status (`urbe.sweep.status`) while the sweep runs.
      scale: size of the run, see `urbe.paper.chapter`.
      chapters: by default all, `urbe.paper.CHAPTERS`.
      choice: agents, seeds and settings of a single chapter, if they are not those of the scale.
      launcher: runs the cells; by default `LocalProcesses()`, one process per core. Rows do not depend on it.

    Returns:
      the path of the front page.

    Raises:
      CellsFailed: cells raised or crashed; all others are finished and kept, and the report is unchanged.
      RunLocked: another sweep is working in the folder.
    """
    from urbe.paper import CHAPTERS

    need("Figures", "matplotlib")
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}, expected one of {', '.join(SCALES)}.")
    chosen: Sequence[Chapter] = CHAPTERS if chapters is None else chapters
    if choice.options:
        if len(chosen) != 1:
            raise ValueError(f"{choice.options} applies to one chapter, expected one instead of {len(chosen)}.")
        chosen = [replace(chosen[0], cells=everywhere(chosen[0].chosen(scale, choice)))]
    check_chapters(chosen)
    jobs = {}
    for chapter in chosen:
        code = cells.Code(chapter.module, chapter.name, chapter.row, code_digest(chapter.module))
        jobs[chapter.name] = cells.jobs(code, chapter.cells[scale], output / CELLS)
    sweep(output, jobs, launcher or LocalProcesses(), scale=scale, options=choice.options, watch=watch)
    return write_report(output, chosen)
