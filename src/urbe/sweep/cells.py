"""What is run: cells, frozen configurations with a stable hash and a directory of their own.

    <cells>/<experiment>/<name>-<hash of the configuration>/
        rows.safetensors    the rows and the record of how they came about (`urbe.sweep.store`); present means finished
        record.json         the record once more, for people
        lock                held while a process works here; says which
        work-<identity>/    what the cell keeps while it runs, checkpoints for instance; deleted when it is finished

The identity of a cell covers its configuration, the type of its rows and the code that computes them: equal identities
give equal rows. The directory is named after the configuration alone, so cells of one name at two scales do not meet,
and rows of new code replace those of old. The folder of work is named after the identity: what other code left there is
not found, and so never mixed in.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, get_type_hints

from urbe.sweep.sources import code_digest

ROWS = "rows.safetensors"
COLUMNS = (str, int, float)
"""The types a field of a row may have."""


class Cell(Protocol):
    """A frozen dataclass of plain values: what one call of `run` needs to know."""

    @property
    def name(self) -> str:
        """Names the cell among those of its experiment; letters, digits, dots, dashes, underscores."""


class Code(NamedTuple):
    """What computes the rows of an experiment.

    Attributes:
      module: name of the module with `run(cell, folder) -> rows` and the type `Row`.
      experiment: its `NAME`.
      row: its `Row`.
      digest: see `urbe.sweep.sources.code_digest`.
    """

    module: str
    experiment: str
    row: type[Any]
    digest: str


@dataclass(frozen=True)
class Job:
    """One cell to run.

    Attributes:
      module: of its experiment.
      experiment: name of the experiment.
      code: the digest of that module's sources when the run began.
      cell: the cell.
      identity: see `identity`.
      folder: its directory.
      also: modules outside the experiment that the cell depends on, its attribute `modules`; their sources count too.
    """

    module: str
    experiment: str
    code: str
    cell: Any
    identity: str
    folder: Path
    also: tuple[str, ...] = ()

    @property
    def rows(self) -> Path:
        """The file of a finished cell."""
        return self.folder / ROWS

    @property
    def work(self) -> Path:
        """What the cell keeps while it runs."""
        return self.folder / f"work-{self.identity[:16]}"

    @property
    def cost(self) -> float:
        """About how many seconds it takes on one core; 1 where the cell does not say."""
        return float(getattr(self.cell, "cost", 1.0))

    def __str__(self) -> str:
        return f"{self.experiment}/{self.cell.name}"


def jobs(code: Code, cells: Iterable[Cell], folder: Path) -> list[Job]:
    """The jobs of an experiment, under the folder of all cells.

    Raises:
      ValueError: the experiment is defined in the script that is run.
    """
    found = []
    place = folder.absolute() / code.experiment  # for processes elsewhere
    for cell in cells:
        if "__main__" in (code.module, type(cell).__module__):
            raise ValueError(
                f"The cell {cell.name} is defined in the script that is run, which worker processes do not import; "
                "move the experiment to a module of its own."
            )
        also = tuple(getattr(cell, "modules", ()))
        mine = code._replace(digest=code_digest(code.module, *also)) if also else code
        name = directory(code.experiment, cell)
        found.append(Job(code.module, code.experiment, mine.digest, cell, identity(mine, cell), place / name, also))
    return found


def directory(experiment: str, cell: Cell) -> str:
    """The name of a cell's directory: its own and a hash of its configuration."""
    return f"{cell.name}-{_hash({'experiment': experiment, 'cell': _plain(cell)})[:12]}"


def identity(code: Code, cell: Cell) -> str:
    """A hash of an experiment's name, its row type, a cell's fields and the code: equal hashes give equal rows."""
    fields = [(name, kind.__name__) for name, kind in columns(code.row).items()]
    return _hash({"experiment": code.experiment, "fields": fields, "cell": _plain(cell), "code": code.digest})


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


def _plain(cell: Cell) -> Sequence[Any]:
    fields = dataclasses.asdict(cell)  # type: ignore[call-overload]
    try:
        json.dumps(fields)
    except TypeError as error:
        raise TypeError(f"The cell {cell.name} cannot be hashed: {error}; expected fields of plain values.") from None
    return cell.name, fields


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
