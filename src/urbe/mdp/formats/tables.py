"""Write tables of numbers and strings as CSV or Parquet files."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from urbe import checks
from urbe.atomic import Writer, replace_files, text_writer

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
"""The format of each suffix."""


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
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{os.fspath(path)} ends in {suffix!r}, expected one of {', '.join(FORMATS)}.")
    return FORMATS[suffix]


def arrow_part(part: str | None = None) -> Any:
    """pyarrow or a module of it."""
    try:
        return import_module("pyarrow" if part is None else f"pyarrow.{part}")
    except ImportError:
        raise ImportError("Parquet files need pyarrow, which is not installed: pip install 'urbe[logs]'.") from None


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
        yield line.getvalue()
