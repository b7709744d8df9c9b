"""What an experiment is: cells, run, analyse, plot. Running never plots, plotting never runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from urbe.report.page import Section


class Row(NamedTuple):
    """One number of a result, in long format."""

    figure: str
    cell: str
    model: str
    set: str
    radius: float
    policy: str
    metric: str
    value: float


class Cell(Protocol):
    """A frozen dataclass of plain values: what one call of `run` needs to know."""

    @property
    def name(self) -> str:
        """Names the cell among those of its experiment; letters, digits, dots, dashes, underscores."""


C = TypeVar("C", bound=Cell, contravariant=True)
T = TypeVar("T")


class Experiment(Protocol[C, T]):
    """A module with these names."""

    @property
    def NAME(self) -> str:
        """Names the experiment in files."""

    @property
    def CELLS(self) -> Sequence[Any]:
        """All there is to run."""

    def run(self, cell: C, /) -> list[Row]:
        """Solves one cell. The same cell gives the same rows, bit for bit."""

    def analyse(self, rows: Sequence[Row], /) -> T:
        """From rows to what is drawn."""

    def plot(self, table: T, /) -> list[Section]:
        """From the table to the sections of a page."""
