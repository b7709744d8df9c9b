"""Cells: frozen configurations, each with a stable hash and a directory of its own.

    <cells>/<experiment>/<name>-<hash of the configuration>/
        rows.safetensors    the rows and their provenance (`urbe.sweep.store`) of a finished cell
        record.json         the provenance again, for people
        lock                held while a process works here, and names it
        work-<identity>/    files of the running cell, such as checkpoints; deleted when it is finished

The identity of a cell covers its configuration, the type of its rows and the code that computes them: equal identities
give equal rows. The directory is named only after the configuration, so cells of one name at two scales do not meet,
and rows of new code replace those of old code. The work folder is named after the identity, so files of other code are
never used.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, get_type_hints

from urbe.sweep.sources import code_digest

ROWS = "rows.safetensors"
COLUMNS = (str, int, float)
"""The allowed types of a field of a row."""


class Cell(Protocol):
    """A frozen dataclass of plain values, the argument of one call of `run`."""

    @property
    def name(self) -> str:
        """Names the cell among those of its experiment; letters, digits, dots, dashes, underscores."""


class Code(NamedTuple):
    """The code that computes the rows of an experiment.

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
      module: module of its experiment.
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
        """The folder of the running cell."""
        return self.folder / f"work-{self.identity[:16]}"

    @property
    def cost(self) -> float:
        """Approximate seconds on one core; 1 if the cell does not state a cost."""
        return float(getattr(self.cell, "cost", 1.0))

    def __str__(self) -> str:
        return f"{self.experiment}/{self.cell.name}"

    def to_json(self) -> str:
        """The job as text, to be sent to another process; `job_from_json` is the inverse."""
        kind = type(self.cell)
        cell = [kind.__module__, kind.__qualname__, _plain(self.cell)[1]]
        return json.dumps({**vars(self), "cell": cell, "folder": str(self.folder)})


def job_from_json(text: str) -> Job:
    """Reads a job written by `Job.to_json`, and imports the module that defines the cell."""
    content = json.loads(text)
    module, name, values = content["cell"]
    kind: Any = importlib.import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    cell = kind(**{key: _tuples(value) for key, value in values.items()})
    return Job(**{**content, "cell": cell, "folder": Path(content["folder"]), "also": tuple(content["also"])})


def _tuples(value: Any) -> Any:
    """Converts the lists of JSON to the tuples of cells."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def jobs(code: Code, cells: Iterable[Cell], folder: Path) -> list[Job]:
    """Makes the jobs of an experiment, below the folder of all cells.

    Raises:
      ValueError: the experiment is defined in the script that is run.
      TypeError: a field of a cell is not a plain value.
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
    """The name of a cell's directory: the cell's name and a hash of its configuration."""
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


def _plain(cell: Cell) -> tuple[str, dict[str, Any]]:
    """The name and the fields of a cell, as JSON stores them: tuples become lists."""
    fields = {field.name: getattr(cell, field.name) for field in dataclasses.fields(cell)}  # type: ignore[arg-type]
    for name, value in fields.items():
        if not _is_plain(value):
            raise TypeError(
                f"{name} of the cell {cell.name} is {value!r}, expected a number, a text, None or a tuple of these: "
                "the fields of a cell are hashed and sent to other processes."
            )
    return cell.name, fields


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
