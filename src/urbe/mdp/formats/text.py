"""Read tables of numbers from text files in bulk; every error names its line.

A table is described by the grammar of its lines, a regular expression with one group for each number. Lines are read in
chunks; a chunk that fits the grammar is converted at once, otherwise the error names the first line that does not fit.
Blank lines and lines that start with `#` are skipped in every format. Text is in UTF-8, or in UTF-16 with a byte order
mark, and may be compressed by gzip.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, NoReturn

import numpy as np

from urbe import memory
from urbe.mdp.formats.errors import ModelFileError, NotUtf8
from urbe.types import FloatArray, IntArray

Path = str | os.PathLike[str]
Explain = Callable[[str], tuple[str | None, str]]

# Possessive: no line, however long or malformed, is scanned more than once or twice.
NUMBER = r"[-+]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?+\d++)?+"
FLAG = rf"(?>{NUMBER}|[Tt]rue|TRUE|[Ff]alse|FALSE)"
BLANK = r"[ \t]*+"
GAP = r"[ \t]++"

_WORDS = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}
_CHUNK = 1 << 24  # characters
_CHARACTER_BYTES = 2.0
"""Peak bytes of a character of a chunk: as text, as lines and as numbers."""

_SEPARATOR_LINE = re.compile(r'"?sep=.?"?\s*', re.IGNORECASE)
_LARGEST_ID = 2**31 - 1
_GZIP = b"\x1f\x8b"
_BEGINS = 1000  # bytes of a file that show whether it is text


@dataclass(frozen=True)
class Grammar:
    """The grammar of one line of a table.

    Args:
      columns: names of the numbers, in the order in which they are taken.
      line: regular expression of a whole line.
      template: replacement of a line by its numbers, separated by blanks.
      explain: for a line that does not fit, the column at fault (or None) and the message.
      plain: whether a line without anything but the numbers, with this separator, is the usual case; those are
        not rewritten.
      flags: columns whose fields may also read true or false, which are taken as 1 and 0.
    """

    columns: tuple[str, ...]
    line: str
    template: str
    explain: Explain
    plain: str | None = None
    flags: tuple[str, ...] = ()

    def numbers(self, text: str, n_lines: int) -> FloatArray | None:
        """`(n_lines, columns)`, or None when some line does not fit."""
        if self.plain is not None:
            separator = GAP if self.plain == " " else f"{BLANK}{re.escape(self.plain)}{BLANK}"
            line = BLANK + separator.join(FLAG if c in self.flags else NUMBER for c in self.columns) + BLANK
            if re.fullmatch(rf"(?:{line}(?:\n|\Z))*+", text, re.ASCII):
                return self._parse(text.replace(self.plain, " "))
        text, found = re.subn(f"^{self.line}$", self.template, text, flags=re.ASCII | re.MULTILINE)
        return self._parse(text) if found == n_lines else None

    def fits(self, line: str) -> bool:
        """Whether one line, without its end, fits."""
        return re.fullmatch(self.line, line, re.ASCII) is not None

    def _parse(self, text: str) -> FloatArray:
        if self.flags:  # no other column has letters but those of exponents
            for word, number in _WORDS.items():
                text = text.replace(word, number)
        return np.fromstring(text, dtype=np.float64, sep=" ").reshape(-1, len(self.columns))


@dataclass(frozen=True, eq=False)
class TextTable:
    """Numbers read from a file, with the line of each.

    Args:
      path: the file.
      columns: names of the columns of `values`.
      values: `(N, columns)`.
      skip: number of lines, blank ones and comments apart, that stand before the table.
    """

    path: Path
    columns: tuple[str, ...]
    values: FloatArray
    skip: int

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def numbers(self, column: str) -> FloatArray:
        """`(N,)` finite numbers."""
        x = self._column(column)
        self.require(np.isfinite(x), column, "a finite number")
        return x

    def non_negative(self, column: str) -> FloatArray:
        """`(N,)` finite numbers, zero or more."""
        x = self.numbers(column)
        self.require(x >= 0.0, column, "at least 0")
        return x

    def probabilities(self, column: str) -> FloatArray:
        """`(N,)` numbers within [0, 1], to the six digits that text often has."""
        x = self.numbers(column)
        self.require((x >= 0.0) & (x <= 1.0 + 1e-5), column, "a probability from 0 to 1")
        return x

    def ids(self, column: str, below: int = _LARGEST_ID) -> IntArray:
        """`(N,)` whole numbers within `[0, below)`."""
        x = self.numbers(column)
        self.require((x >= 0.0) & (x < below) & (x == np.floor(x)), column, f"a whole number from 0 to {below - 1}")
        return x.astype(np.int64)

    def require(self, good: np.ndarray, column: str, expected: str) -> None:
        """Raises for the first row where `good` is False."""
        if not good.all():
            row = int(np.argmin(good))
            self.fail(row, f"found {self._column(column)[row]:.12g}, expected {expected}.", column)

    def fail(self, row: int, message: str, column: str | None = None) -> NoReturn:
        """Raises, naming the line of a row."""
        raise ModelFileError(self.path, message, line_of(self.path, self.skip + row), column)

    def _column(self, column: str) -> FloatArray:
        return np.ascontiguousarray(self.values[:, self.columns.index(column)])


def read_table(path: Path, grammar: Grammar, *, skip: int) -> TextTable:
    """All rows of a table that starts after `skip` lines (blank ones and comments apart)."""
    parts = [np.zeros((0, len(grammar.columns)))]
    to_skip = skip
    for first, lines in _chunks(path):
        if first == 1:
            _require_memory(path, lines, grammar)
        rows = [line for line in lines if _has_content(line)]
        rows, to_skip = rows[to_skip:], max(0, to_skip - len(rows))
        numbers = grammar.numbers("".join(rows), len(rows))
        if numbers is None or len(numbers) != len(rows):
            _refuse(path, grammar, skip, first + len(lines))
        parts.append(numbers)
    return TextTable(path, grammar.columns, np.concatenate(parts), skip)


def content(path: Path, encoding: str | None = None) -> Iterator[tuple[int, str]]:
    """Number and text of each line, blank ones and comments apart."""
    for first, lines in _chunks(path, encoding):
        for number, line in enumerate(lines, first):
            if _has_content(line):
                yield number, line


def head(path: Path, n_lines: int, encoding: str | None = None) -> list[tuple[int, str]]:
    """The first lines, blank ones and comments apart, with their numbers; fewer when the file is shorter."""
    return list(islice(content(path, encoding), n_lines))


def comments_after(path: Path, first: int, encoding: str | None = None) -> list[int]:
    """The numbers of the lines after line `first` that begin with `#`."""
    return [
        number
        for start, lines in _chunks(path, encoding)
        for number, line in enumerate(lines, start)
        if number > first and line[0] == "#"
    ]


def line_of(path: Path, index: int) -> int:
    """The number of the line `index`, counted from 0 without blank lines and comments."""
    return next(islice(content(path), index, None))[0]


def contains(path: Path, text: str) -> bool:
    """Whether some line of the file contains `text`, comments apart."""
    return any(text in line for _, lines in _chunks(path) for line in lines if _has_content(line))


def whole_numbers(line: str) -> list[int] | None:
    """The numbers of a line of whole numbers separated by blanks, or None when it is something else."""
    if not re.fullmatch(rf"{BLANK}\d{{1,18}}(?:{GAP}\d{{1,18}})*+\s*+", line, re.ASCII):
        return None
    return [int(word) for word in line.split()]


def shown(text: str, most: int = 40) -> str:
    """A short quotation for an error message."""
    text = text.strip()
    return repr(text if len(text) <= most else text[:most] + "...")


def explain_fields(names: Sequence[str]) -> Explain:
    """Explains the error in a line of numbers separated by blanks."""

    def explain(line: str) -> tuple[str | None, str]:
        fields = line.split()
        if len(fields) != len(names):
            return None, f"found {shown(line)} with {len(fields)} fields, expected {' '.join(names)}."
        for name, field in zip(names, fields, strict=True):
            if not re.fullmatch(NUMBER, field, re.ASCII):
                return name, f"found {shown(field)}, expected a number."
        return None, f"found {shown(line)}, expected {' '.join(names)}."

    return explain


def lines_of_numbers(columns: Sequence[np.ndarray], separator: str) -> Iterator[str]:
    """Lines of text, in parts; numbers are written so that they read back exactly."""
    step = 1 << 16
    for start in range(0, len(columns[0]), step):
        parts = [map(repr, column[start : start + step].tolist()) for column in columns]
        yield "".join(map("{}\n".format, map(separator.join, zip(*parts, strict=True))))


def _require_memory(path: Path, lines: list[str], grammar: Grammar) -> None:
    """Raises when the table, in parts and as a whole, does not fit; its lines are as long as the first ones."""
    size = text_size(path)
    n_rows = round(size * len(lines) / sum(map(len, lines)))
    table = 16.0 * len(grammar.columns) * n_rows
    memory.require(
        {f"about {n_rows} rows of {path}": table + _CHARACTER_BYTES * min(size, _CHUNK)},
        "Use a smaller file, or a binary one: .npz for models, .parquet for logs.",
    )


def _has_content(line: str) -> bool:
    return not (line[0] == "#" or line.isspace())


def text_size(path: Path) -> int:
    """Bytes of the text, up to 4 GiB if it is compressed."""
    with open(path, "rb") as file:
        if file.read(2) != _GZIP:
            return os.path.getsize(path)
        file.seek(-4, os.SEEK_END)
        return int.from_bytes(file.read(), "little")


def _chunks(path: Path, encoding: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Number of the first line and the lines of each chunk."""
    first = 1
    try:
        with _opened(path, encoding) as file:
            while lines := file.readlines(_CHUNK):
                if first == 1 and _SEPARATOR_LINE.fullmatch(lines[0]):
                    lines[0] = "\n"  # of spreadsheets, which the separator in the header makes superfluous
                yield first, lines
                first += len(lines)
    except UnicodeError:
        if encoding is not None:
            raise ModelFileError(path, f"is text neither in UTF-8 nor in {encoding}.") from None
        raise NotUtf8(path, "is not text in UTF-8; save it in that encoding.", _undecodable(path)) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ModelFileError(path, f"is damaged: {error}.") from None


def _opened(path: Path, encoding: str | None) -> IO[str]:
    """The text of a file, by default in the encoding that its first bytes tell."""
    with open(path, "rb") as file:
        opened = gzip.open if file.read(2) == _GZIP else open
    with opened(path, "rb") as file:
        begins = file.read(_BEGINS)
    marked = begins[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if b"\0" in begins and not marked:
        raise ModelFileError(
            path, "is not text, as it has bytes that are zero; a spreadsheet, perhaps. Export it as CSV in UTF-8.",
            begins[: begins.index(0)].count(b"\n") + 1,
        )  # fmt: skip
    if encoding is None:
        encoding = "utf-16" if marked else "utf-8-sig"
    return opened(path, "rt", encoding=encoding)


def _undecodable(path: Path) -> int | None:
    with open(path, "rb") as file:
        if file.read(2) == _GZIP:
            return None
        file.seek(0)
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None


def _refuse(path: Path, grammar: Grammar, skip: int, stop: int) -> NoReturn:
    """Raises for the first line of the table, before line `stop`, that does not fit."""
    for number, line in islice(content(path), skip, None):
        if number < stop and not grammar.fits(line.rstrip("\n")):
            column, message = grammar.explain(line)
            raise ModelFileError(path, message, number, column)
    raise ModelFileError(path, f"cannot be read as rows of {', '.join(grammar.columns)}.")
