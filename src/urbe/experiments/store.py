"""Finished cells on disk: one compact file each, so that a run continues where the last one stopped.

A file is a zip of columns, readable by `numpy.load`: `float` and `int` fields are arrays, `str` fields arrays of
indices into the words of the header. All bits come back, those of NaN and minus zero too. A file counts only if it says
what it should, whole: the cell's hash covers its fields, its row type and the code that computed it, another hash the
rest of the file. Anything else is computed again and overwritten.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from urbe.experiments.base import AnyExperiment, columns
from urbe.io.atomic import replace_files


class Finished(NamedTuple):
    """The rows of a cell and the seconds they took."""

    rows: list[Any]
    seconds: float


_DTYPES = {float: "<f8", int: "<i8", str: "<i4"}

# what numpy and zipfile raise over damaged bytes, and what a file of another shape leads to
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, OverflowError, ValueError,
    NotImplementedError, KeyError, IndexError, TypeError, AttributeError,
)  # fmt: skip


def cell_path(folder: Path, experiment: str, cell: Any) -> Path:
    """Where the finished cell lies, under the folder of all cells."""
    return folder / experiment / f"{cell.name}.npz"


def cell_hash(experiment: AnyExperiment, cell: Any, code: str) -> str:
    """A hash of an experiment's name, its row type, a cell's fields and the code: equal hashes give equal rows."""
    fields = [(name, kind.__name__) for name, kind in columns(experiment.Row).items()]
    return _hash(
        {"experiment": experiment.NAME, "fields": fields, "cell": [cell.name, dataclasses.asdict(cell)], "code": code}
    )


def save(path: Path, identity: str, row: type[Any], finished: Finished) -> None:
    """Writes a finished cell, atomically.

    Args:
      path: where, see `cell_path`.
      identity: see `cell_hash`.
      row: the type of the rows.
      finished: what to write.
    """
    arrays: dict[str, NDArray[Any]] = {}
    words: dict[str, list[str]] = {}
    values = zip(*finished.rows, strict=True) if finished.rows else iter([()] * len(row._fields))
    for (name, kind), column in zip(columns(row).items(), values, strict=True):
        _check_column(name, kind, column)
        index = {word: i for i, word in enumerate(dict.fromkeys(column))} if kind is str else {}
        if kind is str:
            words[name] = list(index)
        stored = [index[word] for word in column] if kind is str else column
        arrays[f"column_{name}"] = np.array(stored, dtype=_DTYPES[kind])
    header = json.dumps({"hash": identity, "seconds": finished.seconds, "words": words}, allow_nan=False).encode()
    arrays["header"] = np.frombuffer(header, dtype=np.uint8)
    arrays["sha256"] = np.frombuffer(_digest(arrays), dtype=np.uint8)

    def write(file: BinaryIO) -> None:
        np.savez_compressed(file, allow_pickle=False, **arrays)

    path.parent.mkdir(parents=True, exist_ok=True)
    replace_files({path: write})


def load(path: Path, identity: str, row: type[Any]) -> Finished | None:
    """The finished cell; None when the file is missing, damaged, or of another cell or code."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if arrays.pop("sha256").tobytes() != _digest(arrays):
            return None
        header = json.loads(arrays["header"].tobytes())
        seconds = float(header["seconds"])
        if header["hash"] != identity or not math.isfinite(seconds):
            return None
        read = []
        for name, kind in columns(row).items():
            column = arrays[f"column_{name}"].tolist()
            read.append([header["words"][name][i] for i in column] if kind is str else column)
        return Finished(list(map(row._make, zip(*read, strict=True))), seconds)
    except _DAMAGE:
        return None


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


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
