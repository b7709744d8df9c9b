"""What an experiment is: a module with cells, rows, run, analyse and plot. Running never plots, plotting never runs.

    NAME      names it in files: letters, digits, underscores
    TITLE     names it on the page
    CELLS     for each scale a tuple of frozen dataclasses of plain values, each with a `name`: what there is to run
    Row       a NamedTuple whose fields are annotated str, int or float: one line of results
    run       cell, folder -> rows; the same cell gives the same rows, bit for bit; a random cell carries its seed
    analyse   rows of finished cells, in the order of CELLS, of any scale, of few seeds or many -> what is drawn
    plot      that -> sections of the page

The scales are `quick` (all experiments together in under 20 minutes on two cores), `medium` (the paper's networks and
hyper-parameters, 10 seeds, fewer steps) and `paper` (the paper's numbers of episodes, 10 seeds). A cell that is the
same at two scales is run once.

`run` gets a folder of the cell's own: empty, or left by an interrupted run of the very same cell and code. What is
saved there survives a killed process, so a deep cell trains in it (`train(agent, folder / "run", steps)`). It is
deleted once the rows are stored.

A cell may have an attribute `cost`: the seconds it takes on one core, about. Long cells are begun first, and the time
left is told from it. What takes minutes may say how far it is: `urbe.sweep.progress.tell(folder, done, total)`.

A module counts as changed, and its cells are run again, when it or any module of this package that it imports changes.
What only `plot` needs (`urbe.report`, a module of drawings) is imported inside `plot`, and then does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar, get_args

from urbe import checks
from urbe.sweep.cells import Cell as Cell
from urbe.sweep.cells import columns as columns

if TYPE_CHECKING:
    from urbe.report.content import Section


Scale = Literal["quick", "medium", "paper"]
"""How much is run."""

SCALES: tuple[Scale, ...] = get_args(Scale)


C = TypeVar("C", bound=Cell, contravariant=True)
R = TypeVar("R", bound=NamedTuple)
T = TypeVar("T")


class Experiment(Protocol[C, R, T]):
    """A module with these names."""

    __name__: str

    @property
    def NAME(self) -> str:
        """Names the experiment in files."""

    @property
    def TITLE(self) -> str:
        """Names the experiment on the page."""

    @property
    def CELLS(self) -> Mapping[Scale, Sequence[Any]]:
        """All there is to run, at each scale."""

    @property
    def Row(self) -> type[R]:
        """The type of a row."""

    def run(self, cell: C, folder: Path, /) -> list[R]:
        """Computes one cell, with a folder to go on from. The same cell gives the same rows, bit for bit."""

    def analyse(self, rows: Sequence[R], /) -> T:
        """From rows to what is drawn."""

    def plot(self, table: T, /) -> list[Section]:
        """From the table to the sections of a page."""


AnyExperiment = Experiment[Any, Any, Any]

AnyCell = TypeVar("AnyCell", bound=Cell)


def everywhere(cells: Iterable[AnyCell]) -> dict[Scale, tuple[AnyCell, ...]]:
    """The same cells at every scale: for experiments whose size does not depend on it."""
    told = tuple(cells)
    return dict.fromkeys(SCALES, told)


def check_experiments(experiments: Sequence[AnyExperiment]) -> None:
    """Raises, before anything runs, when names would not do as file names, or two are the same."""
    _check_names("NAME", [experiment.NAME for experiment in experiments])
    for experiment in experiments:
        columns(experiment.Row)
        if set(experiment.CELLS) != set(SCALES):
            raise ValueError(
                f"{experiment.NAME}.CELLS has the scales {checks.listing(sorted(experiment.CELLS))}, expected "
                f"{checks.listing(SCALES)}; where they do not differ, use everywhere(cells)."
            )
        for scale, cells in experiment.CELLS.items():
            _check_names(f"{experiment.NAME}, {scale}: name of a cell", [cell.name for cell in cells])


def _check_names(what: str, names: Sequence[str]) -> None:
    for name in names:
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", name) is None:
            raise ValueError(
                f"{what} is {name!r}, expected letters, digits, dots, dashes and underscores, at most 200, the first a "
                "letter or a digit: it becomes the name of a file."
            )
    folded = Counter(name.casefold() for name in names)  # some file systems do not tell a from A
    twice = [name for name in names if folded[name.casefold()] > 1]
    if twice:
        raise ValueError(f"{what} is not unique: {checks.listing(twice)}; give each its own.")
