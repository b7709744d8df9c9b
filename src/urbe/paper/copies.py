"""Reports without their cells, such as a light copy in a repository: rows and manifest are enough to draw from."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from urbe.extras import need
from urbe.paper.chapter import Chapter
from urbe.paper.drawn import Drawn, draw
from urbe.sweep.cells import columns
from urbe.sweep.finished import PLAN

MANIFEST = "manifest.json"


def is_copy(folder: Path) -> bool:
    """Whether a folder holds a report without the cells that it was drawn from."""
    return (folder / MANIFEST).exists() and not (folder / PLAN).exists()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a report.

    Raises:
      ValueError: the file is not the manifest of a report.
    """
    path = folder / MANIFEST
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        if not isinstance(content["experiments"], dict):
            raise TypeError("experiments is not a table")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not the manifest of a report ({error!r}). Run urbe reproduce again.") from None
    return content


def draw_copy(folder: Path, manifest: dict[str, Any], chapter: Chapter) -> Drawn:
    """Draws a chapter from its file of rows.

    Raises:
      FileNotFoundError: the chapter has no file of rows.
      ValueError: the file has other columns than the chapter.
    """
    made = dict(manifest["experiments"][chapter.name])
    made.setdefault("versions", [{**manifest.get("versions", {}), "cells": made["cells"]}])
    return draw(chapter, _rows(folder, chapter), made, str(manifest.get("scale", "")))


def _rows(folder: Path, chapter: Chapter) -> Sequence[Any]:
    stem = folder / "rows" / chapter.name
    kinds = columns(chapter.row)
    for suffix, read in ((".parquet", _parquet), (".csv", _csv)):
        path = stem.with_name(stem.name + suffix)
        if path.exists():
            found = read(path, kinds)
            if list(found) != list(kinds):
                raise ValueError(f"{path} has the columns {', '.join(found)}, expected {', '.join(kinds)}.")
            return [chapter.row(*row) for row in zip(*found.values(), strict=True)]
    raise FileNotFoundError(f"{stem}.parquet and {stem}.csv are missing, expected one of them. Copy it there.")


def _parquet(path: Path, kinds: dict[str, type]) -> dict[str, Sequence[Any]]:  # noqa: ARG001, like _csv
    need("Parquet", "pyarrow")
    from pyarrow.parquet import read_table

    table = read_table(path)
    return {name: table[name].to_pylist() for name in table.column_names}


def _csv(path: Path, kinds: dict[str, type]) -> dict[str, Sequence[Any]]:
    with path.open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    read: dict[str, Callable[[str], Any]] = dict(kinds)
    return {name: [read.get(name, str)(line[i]) for line in lines] for i, name in enumerate(head)}
