"""A chapter: cells to run, their rows, and the sections of a page that are drawn from the rows.

A chapter is a package, `urbe.paper.<name>`, with the same files everywhere:

    __init__.py   the cells, frozen dataclasses of plain values, each with a `name`; the type of a row, a
                  NamedTuple whose fields are annotated str, int or float; and `CHAPTER`, a `Chapter`
    run.py        `run(cell, folder)`: from a cell to rows
    results.py    from rows (`urbe.paper.results.Results`) to the quantities of the chapter and to verdicts; many
                  verdicts have a file of their own, `claims.py`
    figures.py    `sections`: from these to the sections of the page
    front.py      `highlight`: the figure of the front page, in chapters that have one

Running never draws and drawing never runs. The same cell gives the same rows, bit for bit; a random cell carries its
seed. `run` gets the cell's own folder: empty, or left by an interrupted run of the same cell and code. Files in
it survive a killed process, so a deep cell trains there (`train(agent, folder / "run", steps)`). The folder is deleted
once the rows are stored.

A cell may have an attribute `cost`: its approximate time in seconds on one core. Long cells run first, and the
remaining time is estimated from it.

Cells are run again when `run.py`, or any module of this package that it imports, changes; so it imports neither
`results` nor `figures`.

The scales are `quick` (all chapters together in under 20 minutes on two cores), `medium` (the paper's networks and
hyper-parameters, 10 seeds, fewer steps) and `paper` (the paper's numbers of episodes, 10 seeds). A cell that is the
same at two scales is run once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar, get_args

from urbe import checks
from urbe.paper.choice import Selection, with_settings
from urbe.paper.results import Results
from urbe.report.content import Highlight, Section
from urbe.sweep.cells import Cell, columns

Scale = Literal["quick", "medium", "paper"]
"""The size of a run."""

SCALES: tuple[Scale, ...] = get_args(Scale)

AnyCell = TypeVar("AnyCell", bound=Cell)


@dataclass(frozen=True)
class Chapter:
    """A chapter of the report.

    Attributes:
      name: its name in files: letters, digits, underscores.
      title: title of its page.
      cells: cells of each scale.
      row: the type of a row.
      module: name of the module with `run(cell, folder)`.
      sections: from the results of finished cells, in the order of the cells, to the sections of the page, for any
        scale and number of seeds; see `drawn_by`.
      summary: the question that the chapter answers, in one sentence.
      highlight: from the same results to the figure of the front page; see `highlighted_by`.
      agents: names that `choose` knows; empty if there are no agents to choose from.
      choose: from a scale and a selection to cells; None if only fields of cells can be set.
    """

    name: str
    title: str
    cells: Mapping[Scale, Sequence[Any]]
    row: type[Any]
    module: str
    sections: Callable[[Results], list[Section]]
    summary: str = ""
    highlight: Callable[[Results], Highlight | None] | None = None
    agents: Sequence[str] = ()
    choose: Callable[[Scale, Selection], Sequence[Any]] | None = None

    def chosen(self, scale: Scale, choice: Selection) -> Sequence[Any]:
        """The cells of a choice at a scale.

        Raises:
          ValueError: an agent or a field is not known, or the chapter has no agents or seeds to choose.
        """
        if not choice.options:
            return self.cells[scale]
        if self.choose is not None:
            return self.choose(scale, choice)
        if choice.agents or choice.seeds is not None:
            raise ValueError(f"{self.name} has no agents or seeds to choose, expected only --set.")
        return with_settings(self.cells[scale], choice.settings)


def drawn_by(module: str) -> Callable[[Results], list[Section]]:
    """The function `sections` of a module, imported on the first call, so that running needs no matplotlib."""

    def sections(results: Results) -> list[Section]:
        found: list[Section] = import_module(module).sections(results)
        return found

    return sections


def highlighted_by(module: str) -> Callable[[Results], Highlight | None]:
    """The function `highlight` of a module, imported on the first call."""

    def highlight(results: Results) -> Highlight | None:
        found: Highlight | None = import_module(module).highlight(results)
        return found

    return highlight


def everywhere(cells: Iterable[AnyCell]) -> dict[Scale, tuple[AnyCell, ...]]:
    """The same cells at every scale, for chapters whose size does not depend on it."""
    return dict.fromkeys(SCALES, tuple(cells))


def check_chapters(chapters: Sequence[Chapter]) -> None:
    """Raises, before anything runs, if names are not unique or cannot be file names."""
    _check_names("The name of a chapter", [chapter.name for chapter in chapters])
    for chapter in chapters:
        columns(chapter.row)
        if set(chapter.cells) != set(SCALES):
            raise ValueError(
                f"The cells of {chapter.name} have the scales {checks.listing(sorted(chapter.cells))}, expected "
                f"{checks.listing(SCALES)}; if they do not differ, use everywhere(cells)."
            )
        for scale, cells in chapter.cells.items():
            _check_names(f"{chapter.name}, {scale}: the name of a cell", [cell.name for cell in cells])


def _check_names(what: str, names: Sequence[str]) -> None:
    for name in names:
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", name) is None:
            raise ValueError(
                f"{what} is {name!r}, expected letters, digits, dots, dashes and underscores, at most 200, the first a "
                "letter or a digit: it becomes the name of a file."
            )
    folded = Counter(name.casefold() for name in names)  # some file systems do not distinguish a from A
    twice = [name for name in names if folded[name.casefold()] > 1]
    if twice:
        raise ValueError(f"{what} is not unique: {checks.listing(twice)}; give each its own.")
