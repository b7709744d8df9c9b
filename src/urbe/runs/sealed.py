"""JSON files in which every changed bit is detected.

The first line is `{"sha256": "<64 hex digits>",`, with the SHA-256 of all bytes after that line. The file is ASCII
JSON; `format` and `version` identify it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from urbe.atomic import replace_files, text_writer
from urbe.runs.errors import CheckpointError


def write_sealed(path: str | os.PathLike[str], form: str, version: int, content: Mapping[str, Any]) -> None:
    """Replaces `path` atomically with `content`, plain values by name: readers find the old or the new file.

    Args:
      path: the file.
      form: the name of the format.
      version: version of the format, from 1.
      content: see `require_plain`.
    """
    fields = {"format": form, "version": version, **content}
    body = json.dumps(fields, allow_nan=False, indent=1)[2:] + "\n"
    head = f'{{"sha256": "{hashlib.sha256(body.encode()).hexdigest()}",\n'
    replace_files({path: text_writer([head, body])})


def read_sealed(path: str | os.PathLike[str], form: str, version: int) -> dict[str, Any]:
    """Reads a file written by `write_sealed`.

    Raises:
      CheckpointError: the file is missing, truncated, damaged, of another format or of a newer version.
    """
    data = read_bytes(path)
    try:
        content = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise CheckpointError(path, f"is truncated, damaged or not JSON: {error}.") from None
    if not isinstance(content, dict) or content.get("format") != form:
        found = content.get("format") if isinstance(content, dict) else content
        raise CheckpointError(path, f"has format {_shown(found)}, expected {form!r}.")
    found = content.get("version")
    if type(found) is not int or not 1 <= found <= version:
        raise CheckpointError(
            path, f"has format version {_shown(found)}, expected at most {version}; read it with a newer urbe."
        )
    head, _, body = data.partition(b"\n")
    seal = f'{{"sha256": "{hashlib.sha256(body).hexdigest()}",'.encode()
    if head != seal:
        raise CheckpointError(
            path, f"is damaged: its first line is {_shown(head)}, expected {seal!r} for the bytes that follow."
        )
    return {key: value for key, value in content.items() if key not in ("sha256", "format", "version")}


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Reads a whole file; raises `CheckpointError` if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise CheckpointError(path, "is missing.") from None
    except OSError as error:
        raise CheckpointError(path, f"cannot be read: {error.strerror}.") from error


def require_plain(name: str, value: object) -> None:
    """Raises unless JSON restores `value` exactly: strings, numbers, None, lists, and dicts with strings as keys.

    >>> require_plain("about", {"rate": (0.5, 1)})
    Traceback (most recent call last):
    TypeError: about.rate is of type tuple, expected a dict, a list, a text, a finite number, a truth value or None.
    """
    if type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError(f"{name} has the key {key!r}, expected a text.")
            require_plain(f"{name}.{key}", item)
    elif type(value) is list:
        for i, item in enumerate(value):
            require_plain(f"{name}[{i}]", item)
    elif type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}, expected a finite number, as JSON has no other; keep it in a tensor.")
    elif value is not None and type(value) not in (bool, int, str):
        raise TypeError(
            f"{name} is of type {type(value).__name__}, expected a dict, a list, a text, a finite number, a truth "
            "value or None."
        )


def _shown(value: object, most: int = 100) -> str:
    text = repr(value)
    return text if len(text) <= most else text[:most] + "..."
