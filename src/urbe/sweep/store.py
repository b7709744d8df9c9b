"""Store finished cells, one compact file each, so that a run resumes where the last one stopped.

A file holds the columns as tensors (`urbe.runs.tensors`): `float` and `int` fields as they are, `str` fields as indices
into words that are stored with them. Values are restored bit for bit, including NaN and minus zero. The record is
stored too: cell, code, commit, machine, date and duration. A file counts only if it is complete and of the right cell;
anything else is computed again and overwritten.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from urbe.atomic import replace_files, text_writer
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import load_tensors, save_tensors
from urbe.sweep.cells import columns


@dataclass(frozen=True)
class CellRecord:
    """The provenance of a cell's rows.

    Attributes:
      experiment, cell: their names.
      config: the fields of the cell.
      identity: identity of cell, row type and code, see `urbe.sweep.cells`.
      code: digest of the code.
      commit: commit of the code, None if unknown.
      versions: versions of the packages that compute.
      machine: processor, cores, system, Python.
      finished: time of the end, as `2026-01-31T12:00:00+00:00`.
      seconds: duration of the attempt that finished it.
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


class Stored(NamedTuple):
    """The rows of a cell and their provenance."""

    rows: list[Any]
    record: CellRecord


_KINDS = {float: "f", int: "i", str: "i"}
_OTHER = (
    CheckpointError,
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
)  # errors when reading files of another kind


def save(path: Path, row: type[Any], stored: Stored) -> None:
    """Writes a finished cell, atomically, and beside it `record.json` for people.

    Args:
      path: the file; see `urbe.sweep.cells`.
      row: the type of the rows.
      stored: rows and record to write.
    """
    arrays: dict[str, np.ndarray] = {}
    words: dict[str, list[str]] = {}
    values = zip(*stored.rows, strict=True) if stored.rows else iter([()] * len(row._fields))
    for (name, kind), column in zip(columns(row).items(), values, strict=True):
        _check_column(name, kind, column)
        index = {word: i for i, word in enumerate(dict.fromkeys(column))} if kind is str else {}
        if kind is str:
            words[name] = list(map(str, index))
        packed = [index[word] for word in column] if kind is str else column
        arrays[name] = np.array(packed, np.float64) if kind is float else _narrow(np.array(packed, np.int64))
    record = json.dumps(dataclasses.asdict(stored.record), allow_nan=False, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_tensors(path, arrays, {"record": json.loads(record), "words": words})
    replace_files({path.with_name("record.json"): text_writer([record, "\n"])})


def load(path: Path, row: type[Any], identity: str | None = None) -> Stored | None:
    """Loads a finished cell; None if the file is missing, damaged, or of another identity.

    Args:
      path: the file.
      row: the type of the rows; a file with other columns is not read.
      identity: identity of cell and code; None accepts the rows of any code.
    """
    try:
        arrays, words, record = _read(path)
        if identity is not None and record.identity != identity:
            return None
        if set(arrays) != set(row._fields):
            return None
        read = []
        for name, kind in columns(row).items():
            column = arrays[name]
            if column.dtype.kind != _KINDS[kind]:
                return None
            packed = column.tolist()
            read.append([words[name][i] for i in packed] if kind is str else packed)
        return Stored(list(map(row._make, zip(*read, strict=True))), record)
    except _OTHER:
        return None


def load_record(path: Path, identity: str) -> CellRecord | None:
    """Loads the record of a finished cell; None if the file is missing, damaged, or of another identity."""
    try:
        record = _read(path)[2]
    except _OTHER:
        return None
    return record if record.identity == identity else None


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, list[str]], CellRecord]:
    arrays, about = load_tensors(path)
    record = CellRecord(**{field.name: about["record"][field.name] for field in dataclasses.fields(CellRecord)})
    if not math.isfinite(record.seconds):
        raise ValueError("The seconds are not a number.")
    return arrays, about["words"], record


def _narrow(column: np.ndarray) -> np.ndarray:
    """Converts whole numbers to the smallest type that holds them all."""
    ends = (int(column.min()), int(column.max())) if column.size else (0, 0)
    return column.astype(np.result_type(*(np.min_scalar_type(end if end < 0 else -end - 1) for end in ends)))


def _check_column(name: str, kind: type, column: Sequence[Any]) -> None:
    """Raises if a value could not be restored exactly."""
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
