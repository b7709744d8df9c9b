"""Tables of numbers and strings: write them as CSV or Parquet files, and let results return them."""

from __future__ import annotations

import csv
import io
import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from urbe import checks, extras
from urbe.atomic import Writer, replace_files, text_writer

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
"""The format of each suffix."""


class TableResult(Protocol):
    """A result that answers `table()`; inherit from it for what follows from that."""

    @abstractmethod
    def table(self) -> dict[str, np.ndarray]:
        """Columns by name."""

    def to_frame(self) -> Any:
        """`table()` as a pandas frame; needs `pip install urbe[frames]`."""
        extras.need("Data frames", "pandas")
        return import_module("pandas").DataFrame(self.table())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes `table()` as CSV or Parquet, by the suffix, whole or not at all."""
        write_table(path, self.table())


def aligned(rows: Sequence[Sequence[str]], least: Sequence[int] = ()) -> list[str]:
    """Lines of texts in columns, each to the right and at least so wide.

    >>> aligned([("agent", "mean"), ("dqn", "0.3333")], least=[6])
    [' agent    mean', '   dqn  0.3333']
    """
    widths = zip_longest((max(map(len, column)) for column in zip(*rows, strict=True)), least, fillvalue=0)
    wide = [max(pair) for pair in widths]
    return ["  ".join(text.rjust(width) for text, width in zip(row, wide, strict=True)) for row in rows]


def text_table(columns: Mapping[str, np.ndarray], titles: Mapping[str, str] | None = None) -> list[str]:
    """Lines of a table, the first with the names of its columns or their titles.

    >>> text_table({"agent": np.array(["dqn"]), "mean": np.array([1 / 3])})
    ['agent    mean', '  dqn  0.3333']
    """
    names = [(titles or {}).get(name, name.replace("_", " ")) for name in columns]
    texts = ([f"{x:.4g}" if c.dtype.kind == "f" else str(x) for x in c] for c in columns.values())
    return aligned([names, *zip(*texts, strict=True)])


def write_table(path: str | os.PathLike[str], columns: Mapping[str, np.ndarray], *, format: str | None = None) -> None:
    """Writes a table atomically as CSV or Parquet, according to the suffix.

    In CSV floats are the shortest texts that read back to the same bits, booleans 1 and 0, and words are quoted where
    they must be. Parquet needs `pip install urbe[logs]`.

    Args:
      path: ends in .csv, .parquet or .pq.
      columns: `(n,)` numbers, booleans or words for each name.
      format: "csv" or "parquet", by default that of the suffix.
    """
    table = {name: _column(name, column) for name, column in columns.items()}
    if not table:
        raise ValueError("columns is empty, expected at least one column.")
    checks.same_length(table)
    if (format_of(path) if format is None else format) == "csv":
        replace_files({path: text_writer(_csv(list(table), list(table.values())))})
        return
    replace_files({path: parquet_writer(table)})


def parquet_writer(columns: Mapping[str, Sequence[Any] | np.ndarray]) -> Writer:
    """Writes columns of equal length as Parquet; needs `pip install urbe[logs]`."""
    arrow, parquet = arrow_part(), arrow_part("parquet")

    def write(file: BinaryIO) -> None:
        parquet.write_table(arrow.table(dict(columns)), file)

    return write


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that belongs to a file's suffix."""
    checks.file_path("path", path)
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{os.fspath(path)} ends in {suffix!r}, expected one of {', '.join(FORMATS)}.")
    return FORMATS[suffix]


def arrow_part(part: str | None = None) -> Any:
    """pyarrow or a module of it."""
    extras.need("Parquet files", "pyarrow")
    return import_module("pyarrow" if part is None else f"pyarrow.{part}")


def _column(name: str, column: np.ndarray) -> np.ndarray:
    array = np.asarray(column)
    if array.ndim != 1 or array.dtype.kind not in "biufU":
        raise ValueError(
            f"columns[{name!r}] has type {array.dtype} and shape {array.shape}, expected one number or word per row."
        )
    return array


def _csv(names: Sequence[str], columns: Sequence[np.ndarray]) -> Iterator[str]:
    plain: list[list[Any]] = [(c.astype(np.int8) if c.dtype == bool else c).tolist() for c in columns]
    for row in (names, *zip(*plain, strict=True)):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(row)
        if line.getvalue().startswith("#"):  # would be read as a comment
            line = io.StringIO()
            csv.writer(line, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(row)
        yield line.getvalue()
