"""How far a running cell has come, in a small file of its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

FILE = "progress.json"


def tell(folder: Path, done: float, total: float) -> None:
    """Says how far the cell has come, in units of its own; `run` may call it as often as it likes.

    Args:
      folder: what `run` was given.
      done: so much, steps for instance.
      total: of so much.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tell(Path(folder), 300, 1000)
    ...     fraction(Path(folder))
    0.3
    """
    write(folder / FILE, {"done": float(done), "total": float(total)})


def fraction(folder: Path) -> float | None:
    """The part that is done, between 0 and 1; None when the cell has not reported it."""
    reported = read(folder / FILE)
    with suppress(KeyError, TypeError, ValueError, ZeroDivisionError):
        return min(max(float(reported["done"]) / float(reported["total"]), 0.0), 1.0)
    return None


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Replaces a small file; readers see the old one or the new. It may not survive a crash of the machine."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(content) + "\n")
    os.replace(temporary, path)


def read(path: Path) -> dict[str, Any]:
    """What `write` wrote; empty when there is nothing, or something else."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
