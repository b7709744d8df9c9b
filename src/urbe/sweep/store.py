"""Finished cells on disk: one compact file each, so that a run continues where the last one stopped.

A file is a zip of columns, readable by `numpy.load`: `float` and `int` fields are arrays, `str` fields arrays of
indices into the words of the header. All bits come back, those of NaN and minus zero too. The header also holds the
record: which cell it was, by which code, at which commit, on what machine, when and for how long. A file counts only
if it says what it should, whole; anything else is computed again and overwritten.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from urbe.atomic import replace_files, text_writer
from urbe.sweep.cells import columns


@dataclass(frozen=True)
class Record:
    """How the rows of a cell came about.

    Attributes:
      experiment, cell: their names.
      config: the fields of the cell.
      identity: of cell, row type and code, see `urbe.sweep.cells`.
      code: digest of the code.
      commit: of the code, None where unknown.
      versions: of the packages that compute.
      machine: processor, cores, system, Python.
      finished: when, as `2026-01-31T12:00:00+00:00`.
      seconds: computing took, over all attempts, the killed ones too.
      attempts: how often it was begun.
    """

    experiment: str
    cell: str
    config: dict[str, Any]
    identity: str
    code: str
    commit: str | None
    versions: dict[str, str]
    machine: dict[str, str]
    finished: str
    seconds: float
    attempts: int


class Stored(NamedTuple):
    """The rows of a cell and how they came about."""

    rows: list[Any]
    record: Record


_DTYPES = {float: "<f8", int: "<i8", str: "<i4"}

# what numpy and zipfile raise over damaged bytes, and what a file of another shape leads to
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, OverflowError, ValueError,
    NotImplementedError, KeyError, IndexError, TypeError, AttributeError,
)  # fmt: skip


def save(path: Path, row: type[Any], stored: Stored) -> None:
    """Writes a finished cell, atomically, and beside it `record.json` for people.

    Args:
      path: where; see `urbe.sweep.cells`.
      row: the type of the rows.
      stored: what to write.
    """
    put(path, encode(row, stored))


def put(path: Path, content: bytes) -> None:
    """Writes what `encode` gave."""
    record = _header(_arrays(io.BytesIO(content)))["record"]

    def write(file: BinaryIO) -> None:
        file.write(content)

    path.parent.mkdir(parents=True, exist_ok=True)
    told = text_writer([json.dumps(record, indent=1), "\n"])
    replace_files({path: write, path.with_name("record.json"): told})


def encode(row: type[Any], stored: Stored) -> bytes:
    """The bytes of a finished cell."""
    arrays: dict[str, NDArray[Any]] = {}
    words: dict[str, list[str]] = {}
    values = zip(*stored.rows, strict=True) if stored.rows else iter([()] * len(row._fields))
    for (name, kind), column in zip(columns(row).items(), values, strict=True):
        _check_column(name, kind, column)
        index = {word: i for i, word in enumerate(dict.fromkeys(column))} if kind is str else {}
        if kind is str:
            words[name] = list(index)
        told = [index[word] for word in column] if kind is str else column
        arrays[f"column_{name}"] = np.array(told, dtype=_DTYPES[kind])
    header = json.dumps({"record": dataclasses.asdict(stored.record), "words": words}, allow_nan=False).encode()
    arrays["header"] = np.frombuffer(header, dtype=np.uint8)
    arrays["sha256"] = np.frombuffer(_digest(arrays), dtype=np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def load(path: Path, row: type[Any], identity: str | None = None) -> Stored | None:
    """The finished cell; None when the file is missing, damaged, or of another identity.

    Args:
      path: where.
      row: the type of the rows; a file of other columns is not read.
      identity: of the cell and its code; None takes the rows whatever code computed them.
    """
    try:
        arrays, header, record = _read(path)
        if identity is not None and record.identity != identity:
            return None
        if {name for name in arrays if name.startswith("column_")} != {f"column_{name}" for name in row._fields}:
            return None
        read = []
        for name, kind in columns(row).items():
            column = arrays[f"column_{name}"]
            if column.dtype != _DTYPES[kind]:
                return None
            told = column.tolist()
            read.append([header["words"][name][i] for i in told] if kind is str else told)
        return Stored(list(map(row._make, zip(*read, strict=True))), record)
    except _DAMAGE:
        return None


def load_record(path: Path, identity: str) -> Record | None:
    """The record of a finished cell; None when the file is missing, damaged, or of another identity."""
    try:
        record = _read(path)[2]
    except _DAMAGE:
        return None
    return record if record.identity == identity else None


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any], Record]:
    with path.open("rb") as file:
        arrays = _arrays(file)
    header = _header(arrays)
    record = Record(**header["record"])
    if not math.isfinite(record.seconds):
        raise ValueError("The seconds are no number.")
    return arrays, header, record


def _arrays(file: Any) -> dict[str, NDArray[Any]]:
    with np.load(file, allow_pickle=False) as opened:
        arrays = {name: opened[name] for name in opened.files}
    if arrays.pop("sha256").tobytes() != _digest(arrays):
        raise ValueError("The hash of the content is another.")
    return arrays


def _header(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(arrays["header"].tobytes())
    return header


def _check_column(name: str, kind: type, column: Sequence[Any]) -> None:
    """Raises when a value would not come back as it was."""
    allowed = {str: str, int: (int, np.integer), float: (float, int, np.floating, np.integer)}[kind]
    wrong = {found for found in set(map(type, column)) if found is bool or not issubclass(found, allowed)}  # type: ignore[arg-type]
    if wrong:
        at = next(i for i, value in enumerate(column) if type(value) in wrong)
        raise TypeError(
            f"{name} of row {at} is {column[at]!r} of type {type(column[at]).__name__}, expected {kind.__name__}, as "
            "the row type says."
        )
    if kind is int and column and not -(2**63) <= min(column) <= max(column) < 2**63:
        raise ValueError(f"{name} holds {max(column, key=abs)}, expected whole numbers of 64 bits.")


def _digest(arrays: dict[str, NDArray[Any]]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\0{name} {array.dtype.str} {array.shape}\0".encode())
        digest.update(array.data)
    return digest.digest()
