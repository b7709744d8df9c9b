"""Logs of transitions in files: CSV with a header, or Parquet.

    state,action,reward,next_state[,terminated][,episode][,step]

Columns are found by name or synonym (s, a, r, s_next, done, idstatefrom, idaction, idstateto, ...), in any order and
either case; other columns are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from urbe.atomic import replace_files, text_writer
from urbe.mdp.formats.csv_table import csv_text, read_columns, read_header
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.text import shown
from urbe.mdp.transitions import LARGEST_ID, NEEDED, OPTIONAL, Transitions, column_names

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
"""The format of each suffix."""

_LARGEST_COUNT = 2**53  # beyond it text read as floating point would lose digits


def read_log(path: str | os.PathLike[str]) -> Transitions:
    """A log from a CSV or Parquet file, by the suffix.

    `terminated` may read true and false or 1 and 0; ids start at 0. Parquet needs `pip install urbe[logs]`.

    Raises:
      ModelFileError: a ValueError that names the file, the line (or row) and the column, and what was expected.
      OSError: the file cannot be opened.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("s,a,r,s_next,done\\n0,1,0.5,1,false\\n1,0,2.0,2,true\\n")
    ...     read_log(path)
    Transitions(2 rows: state, action, reward, next_state, terminated)
    """
    return (_read_csv if format_of(path) == "csv" else _read_parquet)(path)


def write_log(path: str | os.PathLike[str], transitions: Transitions) -> None:
    """Writes a log as CSV or Parquet, by the suffix, whole or not at all; it reads back exactly."""
    columns = transitions.columns()
    if format_of(path) == "csv":
        plain = [column.astype(np.int8) if column.dtype == bool else column for column in columns.values()]
        replace_files({path: text_writer(csv_text(list(columns), plain))})
        return
    arrow, parquet = arrow_part(), arrow_part("parquet")

    def write(file: BinaryIO) -> None:
        parquet.write_table(arrow.table(columns), file)

    replace_files({path: write})


def format_of(path: str | os.PathLike[str]) -> str:
    """The format a file's suffix tells."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{os.fspath(path)} ends in {suffix!r}, expected one of {', '.join(FORMATS)}.")
    return FORMATS[suffix]


def _read_csv(path: str | os.PathLike[str]) -> Transitions:
    line, _, header = read_header(path, NEEDED)
    try:
        names = column_names(header)
    except ValueError as error:
        raise ModelFileError(path, f"{error} The first line must name the columns.", line) from None
    given = {name: names[name] for name in (*NEEDED, *OPTIONAL) if name in names}
    flags = [names["terminated"]] if "terminated" in names else []
    table = read_columns(path, [given[n] for n in NEEDED], [given[n] for n in OPTIONAL if n in given], flags)
    columns: dict[str, Any] = {}
    for name, own in given.items():
        if name == "reward":
            columns[name] = table.numbers(own)
        elif name == "terminated":
            columns[name] = table.numbers(own)
            table.require((columns[name] == 0.0) | (columns[name] == 1.0), own, "true, false, 1 or 0")
        else:
            columns[name] = table.ids(own, _LARGEST_COUNT if name in ("episode", "step") else LARGEST_ID + 1)
    return Transitions(**columns)


def _read_parquet(path: str | os.PathLike[str]) -> Transitions:
    arrow, parquet = arrow_part(), arrow_part("parquet")
    with open(path, "rb") as file:  # opened here, so that a missing file is an OSError and all else is about content
        table = _trusted(path, lambda: parquet.ParquetFile(file), arrow)
        try:
            names = column_names(table.schema_arrow.names)
        except ValueError as error:
            raise ModelFileError(path, str(error)) from None
        content = _trusted(path, lambda: table.read(columns=list(names.values())), arrow)
        columns = {name: _parquet_column(path, own, content.column(own)) for name, own in names.items()}
    try:
        return Transitions(**columns)
    except ValueError as error:
        raise ModelFileError(path, str(error)) from None


def _parquet_column(path: str | os.PathLike[str], name: str, column: Any) -> np.ndarray:
    if column.null_count:
        row = column.is_null().to_numpy().argmax()
        raise ModelFileError(path, f"row {row} is empty, expected a value. Rows count from 0.", column=name)
    array: np.ndarray = column.to_numpy()
    if array.dtype.kind not in "biuf":
        raise ModelFileError(path, f"holds values of type {column.type}, expected numbers.", column=name)
    return array


def _trusted(path: str | os.PathLike[str], read: Callable[[], Any], arrow: Any) -> Any:
    """What `read` gives; whatever damage it meets becomes an error that names the file."""
    try:
        return read()
    except (arrow.ArrowException, OSError, ValueError, MemoryError) as error:
        raise ModelFileError(path, f"is damaged or not a Parquet file: {shown(str(error), 200)}.") from None


def arrow_part(part: str | None = None) -> Any:
    """pyarrow or a module of it."""
    try:
        return import_module("pyarrow" if part is None else f"pyarrow.{part}")
    except ImportError:
        raise ImportError("Parquet files need pyarrow, which is not installed: pip install 'urbe[logs]'.") from None
