"""Read CSV files of strings and numbers: the separator is recognised, and columns of numbers become numbers.

Fields are separated by `,`, `;`, tabs or `|`, whichever splits the header into the most names. Unless the separator is
the comma, numbers may have a decimal comma. Thousands separators are recognised if the column shows which mark is
which: beside 8,5 the number 1.250 is more than a thousand. Numbers with leading zeros (`007`) are strings, since they
are names.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe import memory
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.text import NUMBER, Path, content, shown, text_size
from urbe.mdp.frames import MISSING, RowError

SEPARATORS = (",", ";", "\t", "|")

CHARACTER_BYTES = 12.0
"""Peak bytes of a character of the file: fields are Python strings of a few characters each."""

_NUMBER = re.compile(NUMBER, re.ASCII)
_LEADING_ZERO = re.compile(r"[-+]?0\d", re.ASCII)
_WHOLE = re.compile(r"-?(0|[1-9]\d*)(\.0*)?", re.ASCII)
_LARGEST_WHOLE = 2.0**53
_BETWEEN = r"[ \u00a0\u2009\u202f'\u2019]"
_SPACED = re.compile(rf"[-+]?\d{{1,3}}({_BETWEEN}\d{{3}})+([.,]\d*)?", re.ASCII)


REPEATED = "repeats the header, as when files are joined. Remove this line."


@dataclass(frozen=True, eq=False)
class TextColumns:
    """The columns of a CSV file.

    Attributes:
      path: the file.
      column_names: as the header has them; columns without a name are left out.
      texts: `(N,)` the fields of each column, also of those without a name.
      lines: `(N,)` the line of each row.
      header: the names, empty ones too.
      separator: what separates the fields.
    """

    path: Path
    column_names: tuple[str, ...]
    texts: Sequence[Sequence[str]]
    lines: list[int]
    header: Sequence[str]
    separator: str

    def __getitem__(self, name: str) -> np.ndarray:
        """`(N,)` numbers, or objects if some values are texts."""
        return typed(self._fields(name), self.separator, name)

    def labels_in(self, name: str) -> np.ndarray:
        """`(N,)` texts and whole numbers: 1.1 and 1.10 differ, but 2 and 2.0 do not."""
        out = [int(field.partition(".")[0]) if _WHOLE.fullmatch(field) else field for field in self._fields(name)]
        return np.array([*out, None], dtype=object)[:-1]

    def amounts_in(self, name: str) -> np.ndarray:
        """The column, in which blanks and apostrophes may stand between thousands, and a minus may be a long one."""
        return typed([_ungrouped(field) for field in self._fields(name)], self.separator, name)

    def thousands(self, name: str) -> str | None:
        """A number whose point may stand before thousands, if all numbers with a point are such."""
        fields = [] if self.separator == "," else self._fields(name)
        marked = [field for field in fields if "." in field]
        alike = all(map(_is_grouped_by_points, marked)) and not any("," in field for field in fields)
        return marked[0] if marked and alike else None

    def _fields(self, name: str) -> list[str]:
        if self.header.count(name) > 1:
            raise ModelFileError(self.path, f"the header names {shown(name)} twice, expected it once.")
        return [field.strip() for field in self.texts[self.header.index(name)]]


def separator_of(header: str) -> str:
    """What separates the names of a header, and so the fields of all lines.

    >>> separator_of("machine;date;profit, in euros"), separator_of("state")
    (';', ',')
    """
    return max(SEPARATORS, key=lambda separator: len(fields_of(header, separator)))


def fields_of(line: str, separator: str) -> list[str]:
    """The fields of one line, without the blanks around them."""
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]
    except csv.Error:
        return line.split(separator)


def is_number(text: str) -> bool:
    """Whether a field is a number rather than a name."""
    return _NUMBER.fullmatch(text) is not None and not _LEADING_ZERO.match(text)


def read_text(path: Path, encoding: str | None = None) -> TextColumns:
    """Reads all columns of a CSV file.

    Args:
      path: the file.
      encoding: by default UTF-8, or UTF-16 with a byte order mark.

    Raises:
      ModelFileError: a line has other fields than the header, or nothing follows the header.
      OSError: the file cannot be opened.
    """
    memory.require(
        {f"the text of {os.fspath(path)}": CHARACTER_BYTES * text_size(path)},
        "Use a smaller file, or a .parquet file.",
    )
    lines = _Lines(path, encoding)
    first = next(lines, None)
    if first is None:
        raise ModelFileError(path, "is empty, expected a header that names the columns.")
    lines.first = 0
    separator = separator_of(first)
    header = fields_of(first, separator)
    rows: list[list[str]] = []
    where: list[int] = []
    try:
        for row in csv.reader(lines, delimiter=separator, skipinitialspace=True):
            if len(row) > len(header) and not any(row[len(header) :]):
                del row[len(header) :]  # separators at the end of the line
            if len(row) != len(header):
                found = shown(separator.join(row), 80)
                message = f"found {found} with {len(row)} fields, expected {len(header)} as in the header."
                if lines.first < lines.number:
                    message = f"a field in quotes begins here and goes on to line {lines.number}. Close the quotes."
                raise ModelFileError(path, message, lines.first)
            if row == header:
                raise ModelFileError(path, REPEATED, lines.number)
            rows.append(row)
            where.append(lines.number)
            lines.first = 0
    except csv.Error as error:
        raise ModelFileError(path, f"cannot be read as CSV: {error}.", lines.number) from None
    while rows and not any(map(str.strip, rows[-1])):  # what spreadsheets write below the last row
        rows.pop()
    if not rows:
        raise ModelFileError(path, "has a header and no rows, expected at least one.")
    return TextColumns(path, tuple(filter(None, header)), list(zip(*rows, strict=True)), where, header, separator)


def typed(fields: Sequence[str], separator: str = ",", name: str = "column") -> np.ndarray:
    """Converts a column to numbers, NaN where one is missing, if all of its values are; else to strings and numbers.

    Raises:
      RowError: a number may be more than a thousand or not, since the column has decimal points and decimal commas.

    >>> typed(["1", " 2", ""]), typed(["a", "2"]), typed(["3", "4"])
    (array([ 1.,  2., nan]), array(['a', 2], dtype=object), array([3, 4]))
    >>> typed(["8,5", "1.250"], ";"), typed(["1,250", "950.5"]), typed(["8,5", "1"])
    (array([   8.5, 1250. ]), array([1250. ,  950.5]), array(['8,5', 1], dtype=object))
    """
    stripped = [field.strip() for field in fields]
    if any("," in field for field in stripped):
        stripped = _with_decimal_points(stripped, separator, name)
    out: list[Any] = [_value(field) for field in stripped]
    if any(isinstance(value, str) for value in out):
        return np.array([*out, None], dtype=object)[:-1]
    if all(isinstance(value, int) for value in out):
        return np.array(out, dtype=np.int64)
    return np.array([np.nan if value is None else value for value in out], dtype=np.float64)


def _with_decimal_points(fields: list[str], separator: str, name: str) -> list[str]:
    """Returns the fields with a decimal point and no other mark in numbers, if the column shows which mark is which.

    A mark is decimal if it is the last of two kinds, or if the number of digits after it is not three. A mark that
    occurs twice, or before the other kind, separates thousands. A mark before three digits has the meaning that it has
    elsewhere in the column; without evidence it is decimal, and with contradictory evidence it is an error. If fields
    are separated by commas, a comma is never decimal.
    """
    decimal = {mark for field in fields for mark in ",." if _is_decimal(field, mark)}
    if not decimal and not any("." in field for field in fields):
        decimal = {","}
    if decimal == {","} and separator != ",":
        return [field.replace(".", "").replace(",", ".") if _grouped(field, ".", ",") else field for field in fields]
    if decimal == {"."}:
        return [field.replace(",", "") if _grouped(field, ",", ".") else field for field in fields]
    if separator == ",":
        return fields
    if decimal:
        for row, field in enumerate(fields):
            if _is_grouped_by_points(field) and field.count(".") == 1 and "," not in field:
                raise RowError(
                    name, row, f"is {field!r}, which may be {field.replace('.', '')} or {float(field):g}: other values "
                    "have decimal commas, and others decimal points. Write all with a point.",
                )  # fmt: skip
    return [field.replace(".", "").replace(",", ".") if _is_decimal(field, ",") else field for field in fields]


def _ungrouped(field: str) -> str:
    """An amount without marks between thousands that are neither points nor commas."""
    field = field.replace("\u2212", "-")
    return re.sub(_BETWEEN, "", field) if _SPACED.fullmatch(field) else field


def _is_grouped_by_points(field: str) -> bool:
    """Whether the points in a field can stand between thousands."""
    return "." in field and not _is_decimal(field, ".") and _grouped(field, ".", ",")


def _is_decimal(field: str, mark: str) -> bool:
    """Whether a mark can be nothing but that before the decimals of a number."""
    other = "," if mark == "." else "."
    whole, found, decimals = field.partition(mark)
    if not found or not _grouped(field, other, mark):
        return False
    return other in whole or len(decimals) != 3 or whole.lstrip("+-") in ("", "0") or len(whole.lstrip("+-")) > 3


def _grouped(field: str, between: str, decimal: str) -> bool:
    """Whether a field is a number with these marks between thousands and before decimals."""
    between, decimal = re.escape(between), re.escape(decimal)
    pattern = rf"[-+]?(\d+|\d{{1,3}}({between}\d{{3}})+)?({decimal}\d*)?([eE][-+]?\d+)?"
    return re.fullmatch(pattern, field, re.ASCII) is not None and any(map(str.isdecimal, field))


def _value(text: str) -> str | int | float | None:
    if text.lower() in MISSING:
        return None
    if not is_number(text):
        return text
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _LARGEST_WHOLE else number


class _Lines(Iterator[str]):
    """Iterates over the lines of a file that have content, and counts all lines.

    Attributes:
      number: the last line read.
      first: the first one read since `first` was set to 0.
    """

    def __init__(self, path: Path, encoding: str | None) -> None:
        self._content, self.number, self.first = content(path, encoding), 0, 0

    def __next__(self) -> str:
        self.number, line = next(self._content)
        self.first = self.first or self.number
        return line
