"""The rows behind a chapter as files: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from urbe.atomic import Writer, text_writer
from urbe.mdp.formats.tables import parquet_writer
from urbe.paper.chapter import Chapter
from urbe.sweep.cells import columns

FOLDER = "rows"

FORMATS = ("csv", "parquet")

_CHUNK = 10_000
"""Rows turned into text at a time."""

_DTYPES = {str: np.str_, int: np.int64, float: np.float64}


def row_files(chapter: Chapter, rows: Sequence[Any], formats: Collection[str] = FORMATS) -> dict[str, Writer]:
    """The writer of each file, by its path relative to the page: `rows/<NAME>.csv`, `rows/<NAME>.parquet`.

    Parquet is left out where pyarrow is not installed.
    """
    writers: dict[str, Writer] = {}
    if "csv" in formats:
        writers[f"{FOLDER}/{chapter.name}.csv"] = text_writer(_csv(chapter, rows))
    if "parquet" in formats and find_spec("pyarrow") is not None:
        writers[f"{FOLDER}/{chapter.name}.parquet"] = _parquet(chapter, rows)
    return writers


def _csv(chapter: Chapter, rows: Sequence[Any]) -> Iterator[str]:
    """The rows of all cells as text, a piece at a time; floats as Python writes them, which reads back the same."""
    yield _text([chapter.row._fields])
    left = iter(rows)
    while piece := list(islice(left, _CHUNK)):
        yield _text(piece)


def _text(rows: Sequence[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def _parquet(chapter: Chapter, rows: Sequence[Any]) -> Writer:
    """Made as it is written: columns are large."""
    kinds = columns(chapter.row)

    def write(file: BinaryIO) -> None:
        found = zip(*rows, strict=True) if rows else iter([()] * len(kinds))
        table: dict[str, np.ndarray] = {
            name: np.array(column, dtype=_DTYPES[kind])
            for (name, kind), column in zip(kinds.items(), found, strict=True)
        }
        parquet_writer(table)(file)

    return write
