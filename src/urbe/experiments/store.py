"""Finished cells on disk: one small JSON file each, so that a run continues where the last one stopped.

A file counts only if it says what it should, whole: the cell's hash covers its fields and the code that computed it,
the rows' hash the rows. Anything else is computed again and overwritten.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from urbe.experiments.base import Row
from urbe.experiments.provenance import code_digest
from urbe.io.atomic import replace_files, text_writer


class Finished(NamedTuple):
    """The rows of a cell and the seconds they took."""

    rows: list[Row]
    seconds: float


def cell_hash(figure: str, cell: Any) -> str:
    """A hash of an experiment's name, a cell's fields and the code: equal hashes give equal rows."""
    return _hash({"figure": figure, "cell": dataclasses.asdict(cell), "code": code_digest()})


def save(path: Path, figure: str, cell: Any, finished: Finished) -> None:
    """Writes a finished cell, atomically."""
    rows = [list(row) for row in finished.rows]
    content = {
        "hash": cell_hash(figure, cell),
        "cell": dataclasses.asdict(cell),
        "seconds": finished.seconds,
        "rows_hash": _hash(rows),
        "rows": rows,
    }
    replace_files({path: text_writer([json.dumps(content, allow_nan=False), "\n"])})


def load(path: Path, figure: str, cell: Any) -> Finished | None:
    """The finished cell; None when the file is missing, damaged, or of another cell or code."""
    try:
        content = json.loads(path.read_bytes())
        if content["hash"] != cell_hash(figure, cell) or content["rows_hash"] != _hash(content["rows"]):
            return None
        rows = [Row(*row) for row in content["rows"]]
        seconds = float(content["seconds"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # ValueError: also bad JSON, bad UTF-8
        return None
    return Finished(rows, seconds) if math.isfinite(seconds) else None


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
