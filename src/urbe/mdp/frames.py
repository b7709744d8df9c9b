"""Read columns of any table: dicts, pandas and polars frames, Arrow tables, open NPZ files.

None of these packages is imported: a table is anything that lists its columns and returns one by its name, and a column
is anything that NumPy can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe import checks
from urbe.types import BoolArray, FloatArray

MISSING = frozenset(("", "na", "n/a", "nan", "null", "#n/a"))
"""Strings that mean a missing value, in upper or lower case."""


class RowError(ValueError):
    """An invalid value in a table, with its column and its row.

    Args:
      name: name of the column in the table.
      row: from 0.
      message: what was found, what was expected and what to do.
    """

    def __init__(self, name: str, row: int, message: str) -> None:
        super().__init__(name, row, message)
        self.name, self.row, self.message = name, row, message

    def __str__(self) -> str:
        return f"{self.name}[{self.row}] {self.message}"


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table.

    Attributes:
      name: name in the table.
      values: `(N,)` the values; arbitrary where missing.
      missing: `(N,)` whether the value is missing.
      order: the categories in their order, if the column has categories.
    """

    name: str
    values: np.ndarray
    missing: BoolArray
    order: Sequence[Any] | None = None

    def __len__(self) -> int:
        return len(self.values)


def frame_names(frame: Any) -> list[Any]:
    """The names of a table's columns.

    >>> frame_names({"s": [0], "a": [1]})
    ['s', 'a']
    """
    names = getattr(frame, "column_names", None)  # Arrow
    if names is None:
        names = getattr(frame, "columns", None)  # pandas, polars
    if names is None or callable(names):
        names = frame
    if isinstance(names, (str, bytes)) or not np.iterable(names):
        raise ValueError(
            f"columns is {checks.shown(frame)}, expected a table: a dict of columns, a pandas or polars frame, an "
            "Arrow table. To read a file use urbe.read_log(path)."
        )
    return list(names)


def frame_column(frame: Any, name: Any) -> Column:
    """One column of a table."""
    given = frame[name]
    kind = getattr(given, "dtype", None)
    categories = getattr(kind, "categories", None)
    order = [_plain(value) for value in categories] if np.iterable(categories) else None
    values = _array(given)
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}, expected one dimension.")
    return Column(str(name), values, _missing(values), order)


def flags(column: Column) -> BoolArray:
    """`(N,)` a column of truth values, 0 and 1, or the texts true and false; False where missing."""
    values, out = column.values, np.zeros(len(column), dtype=bool)
    if values.dtype == bool:
        return np.where(column.missing, False, values)
    words = {"true": True, "false": False, "1": True, "0": False}
    for row in np.flatnonzero(~column.missing).tolist():
        value = values[row]
        text = value.strip().lower() if isinstance(value, str) else value
        if isinstance(text, str) and text in words:
            out[row] = words[text]
        elif not isinstance(text, str) and value in (0, 1):
            out[row] = bool(value)
        else:
            raise RowError(column.name, row, f"is {checks.shown(_plain(value))}, expected true or false, or 1 or 0.")
    return out


def numbers(column: Column) -> FloatArray:
    """`(N,)` a column of finite numbers; 0 where missing."""
    if column.values.dtype.kind in "iuf":
        out = np.where(column.missing, 0.0, column.values).astype(np.float64)
    else:
        out = np.zeros(len(column))
        for row in np.flatnonzero(~column.missing).tolist():
            value = column.values[row]
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
                raise RowError(column.name, row, f"is {checks.shown(_plain(value))}, expected a number.")
            out[row] = value
    if not np.isfinite(out).all():
        row = int(np.argmin(np.isfinite(out)))
        raise RowError(column.name, row, f"is {out[row]}, expected a finite number.")
    return out


def moments(column: Column) -> np.ndarray:
    """`(N,)` a column of times in sortable form: numbers, or dates from NumPy or ISO 8601 strings."""
    values = column.values
    if values.dtype.kind in "iufM":
        return values
    out = np.full(len(column), np.datetime64("NaT"), dtype="datetime64[us]")
    whole = np.flatnonzero(~column.missing).tolist()
    if whole and all(isinstance(values[row], (int, float)) for row in whole):
        return numbers(column)
    for row in whole:
        try:
            out[row] = np.datetime64(values[row].strip() if isinstance(values[row], str) else values[row])
        except (ValueError, TypeError):
            shown = checks.shown(_plain(values[row]))
            raise RowError(
                column.name, row, f"is {shown}, expected a number or a date such as 2026-03-31 or 2026-03-31T08:15:00."
            ) from None
    return out


def _array(given: Any) -> np.ndarray:
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        array = np.array([*given, None], dtype=object)[:-1]
    listed = getattr(given, "to_pylist", None)  # Arrow, whose dictionaries lose their nulls on the way to NumPy
    if listed is not None and (given.null_count or array.dtype.kind not in "biufM"):
        return np.array([*listed(), None], dtype=object)[:-1]
    if array.dtype.kind == "U" and isinstance(given, (list, tuple)):  # numbers among texts would become texts
        array = np.array(given, dtype=object)
    return array if array.dtype.kind in "biufUOM" else array.astype(object)


def _missing(values: np.ndarray) -> BoolArray:
    if values.dtype.kind in "biu":
        return np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "M":
        return np.asarray(np.isnat(values))
    return np.fromiter(map(_is_missing, values.tolist()), bool, len(values))


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN, NaT
    except (TypeError, ValueError):  # pandas.NA, or arrays
        return type(value).__name__ == "NAType"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
