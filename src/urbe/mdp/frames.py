"""Read columns of any table: dicts, pandas and polars frames, Arrow tables, open NPZ files.

None of these packages is imported: a table is anything that lists its columns and returns one by its name, and a column
is anything that NumPy can read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from urbe import checks
from urbe.mdp.dates import instants
from urbe.types import BoolArray, FloatArray

MISSING = frozenset(("", "na", "n/a", "nan", "nat", "null", "none", "<na>", "#n/a"))
"""Strings that mean a missing value, in upper or lower case."""

STANDS_FOR = " If it stands for a missing value, name it with missing_values=[...]."

UNITS = " Write it without units or other characters."

MARKS = " Write numbers with a decimal point and no other mark: 8.4 for 8,4, and 1250 for 1,250."

_MARKED = re.compile(r"[-+]?\d+([,. ]\d+)+", re.ASCII)
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)


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
        names = getattr(getattr(frame, "dtype", None), "names", None) or frame  # arrays with named fields
        if names is frame and not isinstance(frame, Mapping):
            raise ValueError(
                f"columns is {checks.shown(frame)}, expected a table: a dict of columns, a pandas or polars frame, an "
                "Arrow table. To read a file use urbe.read_log(path)."
            )
    return [*names, *(level for level in _levels(frame) if level not in list(names))]


def is_table(value: Any) -> bool:
    """Whether `value` is a table whose columns have names, not a column or a path."""
    columned = isinstance(value, Mapping) or hasattr(value, "column_names") or hasattr(type(value), "columns")
    return columned or bool(getattr(getattr(value, "dtype", None), "names", None))


def collected(frame: Any) -> Any:
    """The frame itself, or what a lazy one of polars holds."""
    return frame.collect() if type(frame).__name__ == "LazyFrame" else frame


def frame_column(
    frame: Any,
    name: Any,
    missing_values: Sequence[str | float] = (),
    *,
    as_labels: bool = False,
    as_amounts: bool = False,
) -> Column:
    """One column of a table, or a named level of its index.

    Args:
      frame: the table.
      name: of the column.
      missing_values: stand for no value, too.
      as_labels: whether values are names, so that 1.1 and 1.10 in a file differ.
      as_amounts: whether values are numbers, so that 1 250 in a file is more than a thousand.
    """
    index = name in _levels(frame) and name not in frame
    if as_labels and hasattr(frame, "labels_in"):
        given = frame.labels_in(name)
    elif as_amounts and hasattr(frame, "amounts_in"):
        given = frame.amounts_in(name)
    else:
        given = frame.index.get_level_values(name) if index else frame[name]
    kind = getattr(given, "dtype", None)
    categories = getattr(kind, "categories", None)
    order = [_plain(value) for value in categories] if np.iterable(categories) else None
    values = _array(given)
    if values.ndim != 1:
        raise ValueError(
            f"{name} has shape {values.shape}, expected one text or number per row. Either the table has several "
            "columns of that name, or its values are tuples, which str() makes texts of."
        )
    missing = _missing(values, missing_values)
    if order is not None and not all(isinstance(value, (str, int, float)) for value in order):
        order = [str(value) for value in order]  # such as the intervals of pandas.cut
        values = np.array([*map(str, values.tolist()), None], dtype=object)[:-1]
    return Column(str(name), values, missing, order)


def _levels(frame: Any) -> list[Any]:
    """The names of a pandas index."""
    return [name for name in getattr(getattr(frame, "index", None), "names", None) or () if name is not None]


def flags(column: Column) -> BoolArray:
    """`(N,)` a column of truth values, 0 and 1, or the texts true and false; False where missing."""
    values, out = column.values, np.zeros(len(column), dtype=bool)
    if values.dtype == bool:
        return np.where(column.missing, False, values)
    words = dict.fromkeys(("true", "yes", "t", "y", "1"), True) | dict.fromkeys(("false", "no", "f", "n", "0"), False)
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
            text = isinstance(value, str) and _NUMBER.fullmatch(value.strip())
            wrong = isinstance(value, (bool, np.bool_, np.timedelta64, str)) or not isinstance(value, (Real, Decimal))
            if wrong and not text:
                advice = _advice(value.strip()) if isinstance(value, str) else STANDS_FOR
                raise RowError(column.name, row, f"is {checks.shown(_plain(value))}, expected a number.{advice}")
            out[row] = value
    if not np.isfinite(out).all():
        row = int(np.argmin(np.isfinite(out)))
        raise RowError(column.name, row, f"is {out[row]}, expected a finite number.")
    return out


def _advice(text: str) -> str:
    """What to do about a text in a column of numbers."""
    if _MARKED.fullmatch(text):
        return MARKS
    return UNITS if any(map(str.isdecimal, text)) else STANDS_FOR


def opposite(column: Column) -> Column:
    """Rewards from a column of costs."""
    return replace(column, values=0.0 - numbers(column))


def moments(column: Column) -> np.ndarray:
    """`(N,)` a column of times in sortable form: numbers, dates, or strings that are dates."""
    values = column.values
    if values.dtype.kind in "iufMm":
        return values
    whole = np.flatnonzero(~column.missing)
    given = [values[row] for row in whole.tolist()]
    if given and all(isinstance(value, (int, float)) for value in given):
        return numbers(column)
    out = np.full(len(column), np.datetime64("NaT"), dtype="datetime64[us]")
    found, wrong, message = instants(given)
    if wrong >= 0:
        raise RowError(column.name, int(whole[wrong]), f"is {checks.shown(_plain(given[wrong]))}, {message}")
    out[whole] = found
    return out


def _array(given: Any) -> np.ndarray:
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        array = np.array([*given, None], dtype=object)[:-1]
    listed = getattr(given, "to_pylist", None)  # Arrow, whose dictionaries lose their nulls on the way to NumPy
    if listed is not None and (given.null_count or array.dtype.kind not in "biufMm"):
        return np.array([*listed(), None], dtype=object)[:-1]
    if array.dtype.kind == "U" and isinstance(given, (list, tuple)):  # numbers among texts would become texts
        array = np.array(given, dtype=object)
    return array if array.dtype.kind in "biufUOMm" else array.astype(object)


def _missing(values: np.ndarray, also: Sequence[str | float] = ()) -> BoolArray:
    """`(N,)` where there is no value, or one of `also`, whether it is written as a text or as a number."""
    texts = {str(value).strip().lower() for value in also}
    figures = {float(text) for text in texts if _NUMBER.fullmatch(text)}
    kind = values.dtype.kind
    if kind in "biuf":
        listed = np.isin(values, list(figures)) if figures else np.zeros(len(values), dtype=bool)
        return listed | np.isnan(values) if kind == "f" else listed
    if kind in "Mm":
        return np.asarray(np.isnat(values))

    def absent(value: Any) -> bool:
        text = str(value).strip().lower()
        return text in texts or (bool(figures) and _NUMBER.fullmatch(text) is not None and float(text) in figures)

    return np.fromiter((_is_missing(value) or absent(value) for value in values.tolist()), bool, len(values))


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
