"""What an experiment is: a module with cells, rows, run, analyse and plot. Running never plots, plotting never runs.

    NAME      names it in files: letters, digits, underscores
    TITLE     names it on the page
    CELLS     a tuple of frozen dataclasses of plain values, each with a `name`: what there is to run
    Row       a NamedTuple whose fields are annotated str, int or float: one line of results
    run       cell -> rows; the same cell gives the same rows, bit for bit; a random cell carries its seed
    analyse   rows of all cells, in the order of CELLS -> what is drawn, of any type
    plot      that -> sections of the page

A module counts as changed, and its cells are run again, when it or any module of this package that it imports changes.
What only `plot` needs (`urbe.report`, a module of drawings) is imported inside `plot`, and then does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, get_type_hints

from urbe import checks

if TYPE_CHECKING:
    from urbe.report.content import Section


class Cell(Protocol):
    """A frozen dataclass of plain values: what one call of `run` needs to know."""

    @property
    def name(self) -> str:
        """Names the cell among those of its experiment; letters, digits, dots, dashes, underscores."""


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
    def CELLS(self) -> Sequence[Any]:
        """All there is to run."""

    @property
    def Row(self) -> type[R]:
        """The type of a row."""

    def run(self, cell: C, /) -> list[R]:
        """Computes one cell. The same cell gives the same rows, bit for bit."""

    def analyse(self, rows: Sequence[R], /) -> T:
        """From rows to what is drawn."""

    def plot(self, table: T, /) -> list[Section]:
        """From the table to the sections of a page."""


AnyExperiment = Experiment[Any, Any, Any]

COLUMNS = (str, int, float)
"""The types a field of a row may have."""


def columns(row: type[Any]) -> dict[str, type]:
    """Name and type of each field of a row type, in order.

    >>> class Row(NamedTuple):
    ...     agent: str
    ...     regret: float
    >>> columns(Row)
    {'agent': <class 'str'>, 'regret': <class 'float'>}
    """
    hints = get_type_hints(row)
    found: dict[str, type] = {}
    for field in row._fields:
        if hints[field] not in COLUMNS:
            raise TypeError(f"{row.__qualname__}.{field} is annotated {hints[field]}, expected str, int or float.")
        found[field] = hints[field]
    return found


def check_experiments(experiments: Sequence[AnyExperiment]) -> None:
    """Raises, before anything runs, when names would not do as file names, or two are the same."""
    _check_names("NAME", [experiment.NAME for experiment in experiments])
    for experiment in experiments:
        columns(experiment.Row)
        _check_names(f"{experiment.NAME}: name of a cell", [cell.name for cell in experiment.CELLS])


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
