"""Logs of numbers: CSV files that grow by whole lines, and can be cut back to an earlier length.

A line has been passed to the operating system when `append` returns, so a killed process loses none; `sync` waits for
the disk.
Floats are written as by Python's `repr`, the shortest text that reads back to the same bits; integers never look like
floats, so types are restored, too. A resumed run cuts its logs to their length at the checkpoint; the lines that follow
are then the same, byte for byte, as without interruption.

A changed digit does not show in the form of a line, so checkpoints store the SHA-256 of a log beside its length.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.atomic import sync_folder
from urbe.runs.errors import CheckpointError
from urbe.runs.sealed import read_bytes

_NAME = re.compile(r'[^,"\s](?:[^,"\r\n]*[^,"\s])?')
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_FLOAT = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:e[-+][0-9]+)?|inf)|nan")


class RowLog:
    """A log open for writing.

    Args:
      path: the file.
      columns: names of the columns.
      position: None discards the content of the file; a length, from `position`, continues there.
      digest: hash of these bytes, from `digest`; None skips the check.

    Raises:
      CheckpointError: `position` is given, and the file is missing, shorter, damaged, or has other columns; it is not
        changed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str],
        position: int | None = None,
        digest: str | None = None,
    ) -> None:
        self.path, self.columns = path, _names(columns)
        self._header = _header(self.columns)
        fresh = os.O_CREAT | os.O_TRUNC if position is None else 0
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | fresh, 0o666)
        except FileNotFoundError:
            if position is None:
                raise
            message = f"is missing, expected at least {position} bytes. Put it back, or start a new run."
            raise CheckpointError(path, message) from None
        try:
            self._length, self._hash = 0, hashlib.sha256()
            if position is None:
                self._write(self._header)
                sync_folder(os.path.dirname(os.path.abspath(path)))
            else:
                self._length = os.fstat(self._file).st_size
                self.truncate(position, digest)
        except BaseException:
            self.close()
            raise

    def append(self, row: Mapping[str, Any]) -> None:
        """Adds one row: a number for each column, NaN and infinities included."""
        values = {name: np.asarray(value) for name, value in row.items()}
        for name, value in values.items():
            if value.ndim:
                raise ValueError(f"row[{name!r}] has shape {value.shape}, expected a number; see `extend`.")
        self.extend({name: value.reshape(1) for name, value in values.items()})

    def extend(self, rows: Mapping[str, ArrayLike]) -> None:
        """Adds many rows at once, `(N,)` numbers for each column; either all of them are added or none."""
        self._write(_lines(self.columns, rows))

    def position(self) -> int:
        """The length in bytes, for `truncate`."""
        return self._length

    def digest(self) -> str:
        """The SHA-256 of all bytes up to `position()`, in hexadecimal."""
        return self._hash.hexdigest()

    def truncate(self, position: int, digest: str | None = None) -> None:
        """Removes everything after `position`, which must be the end of a line.

        Raises:
          CheckpointError: the file is shorter, has other columns or another digest, or no line ends there.
        """
        header = os.pread(self._file, len(self._header), 0)
        if header != self._header:
            found = header.partition(b"\n")[0]
            raise CheckpointError(self.path, f"begins with {found!r}, expected {self._header[:-1]!r}: other columns.")
        length = os.fstat(self._file).st_size
        if length < position:
            raise CheckpointError(self.path, _lost(length, position))
        if position < len(self._header) or os.pread(self._file, 1, position - 1) != b"\n":
            raise CheckpointError(self.path, f"has no line that ends at byte {position}: it is not the same log.")
        found = self._hashed(position)
        _require_digest(self.path, position, found.hexdigest(), digest)
        os.ftruncate(self._file, position)
        self._length, self._hash = position, found

    def sync(self) -> None:
        """Returns when all rows are on the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Closes the log; no rows can be added afterwards."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> RowLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        if self._file < 0:
            raise ValueError(f"{os.fspath(self.path)} is closed, expected an open log.")
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except BaseException:
            os.ftruncate(self._file, self._length)  # no half lines
            raise
        self._length += len(data)
        self._hash.update(data)

    def _hashed(self, position: int) -> Any:
        found, at = hashlib.sha256(), 0
        while at < position and (data := os.pread(self._file, min(position - at, 1 << 20), at)):
            found.update(data)
            at += len(data)
        return found


def read_rows(
    path: str | os.PathLike[str], position: int | None = None, digest: str | None = None
) -> dict[str, np.ndarray]:
    """Reads the columns of a log: `(N,)` int64 if all numbers of a column are integers, else float64.

    An incomplete last line, as a killed process may leave it, is ignored.

    Args:
      path: the file.
      position: number of bytes to read, from `RowLog.position`; None reads all.
      digest: hash of these bytes, from `RowLog.digest`; None skips the check.

    Raises:
      CheckpointError: the file is missing, shorter or damaged, or a line is not a row of numbers.
    """
    data = read_bytes(path)
    if position is not None:
        if len(data) < position:
            raise CheckpointError(path, _lost(len(data), position))
        data = data[:position]
        _require_digest(path, position, hashlib.sha256(data).hexdigest(), digest)
    try:
        lines = data.decode().split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise CheckpointError(path, f"is not text: {error}.") from None
    if not lines:
        raise CheckpointError(path, "has no line, expected one with the names of the columns.")
    try:
        names = _names(lines[0].split(","))
    except ValueError as error:
        raise CheckpointError(path, f"line 1: {error}") from None
    rows = [line.split(",") for line in lines[1:]]
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise CheckpointError(path, f"line {number}: found {len(row)} fields, expected {len(names)}.")
    return {name: _numbers(path, name, [row[i] for row in rows]) for i, name in enumerate(names)}


def _lost(length: int, position: int) -> str:
    return f"has {length} bytes, expected at least {position}: lines are lost. Put them back, or start a new run."


def _require_digest(path: str | os.PathLike[str], position: int, found: str, expected: str | None) -> None:
    if expected not in (None, found):
        raise CheckpointError(
            path,
            f"is damaged: its first {position} bytes have the SHA-256 {found}, expected {expected} of the "
            "checkpoint. Put it back, or start a new run.",
        )


def _numbers(path: str | os.PathLike[str], name: str, texts: list[str]) -> np.ndarray:
    try:
        if texts and all(map(_INTEGER.fullmatch, texts)):
            return np.array(list(map(int, texts)), dtype=np.int64)
    except OverflowError:
        raise CheckpointError(path, f"column {name}: found integers of more than 64 bits.") from None
    for number, text in enumerate(texts, 2):
        if not _FLOAT.fullmatch(text):
            raise CheckpointError(path, f"line {number}, column {name}: found {text[:40]!r}, expected a number.")
    return np.array(list(map(float, texts)), dtype=np.float64)


def _names(columns: Sequence[str]) -> tuple[str, ...]:
    for i, name in enumerate(columns):
        if not _NAME.fullmatch(name):
            raise ValueError(f"columns[{i}] is {name!r}, expected a name without commas, quotes and outer blanks.")
        if name in columns[:i]:
            raise ValueError(f"columns[{i}] is {name!r} again, expected each name once.")
    if not columns:
        raise ValueError("columns is empty, expected at least one name.")
    return tuple(columns)


def _header(columns: Sequence[str]) -> bytes:
    return (",".join(columns) + "\n").encode()


def _lines(columns: Sequence[str], rows: Mapping[str, ArrayLike]) -> bytes:
    if set(rows) != set(columns):
        columns_text = f"{checks.listing([*rows]) or 'nothing'}, expected {checks.listing(columns)}"
        raise ValueError(f"rows has the columns {columns_text}.")
    texts = {name: _texts(name, np.asarray(rows[name])) for name in columns}
    checks.same_length(texts)
    return "".join(f"{','.join(row)}\n" for row in zip(*texts.values(), strict=True)).encode()


def _texts(name: str, column: np.ndarray) -> list[str]:
    if column.ndim != 1 or column.dtype.kind not in "biuf" or column.dtype.itemsize > 8:
        raise TypeError(
            f"rows[{name!r}] has type {column.dtype} and shape {column.shape}, expected numbers of at most 64 bits, "
            "one per row."
        )
    if column.dtype == np.uint64 and column.size and column.max() >= 2**63:
        raise ValueError(f"rows[{name!r}] holds {column.max()}, expected integers below 2**63.")
    return list(map(repr, (column.astype(np.int8) if column.dtype == bool else column).tolist()))
