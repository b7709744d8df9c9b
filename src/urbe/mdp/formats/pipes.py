"""Logs from pipes: what can be read only once is copied to a file, which other readers may open several times."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from urbe.mdp.formats.errors import ModelFileError

STANDARD_INPUT = "/dev/stdin"

_BEGINNINGS = ((b"PAR1", ".parquet"), (b"\x1f\x8b", ".csv.gz"))


def is_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether a path is standard input, a named pipe or another stream without a file behind it."""
    if os.fspath(path) == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


@contextmanager
def copied(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary file with the content of a pipe, whose suffix tells CSV, compressed CSV and Parquet apart.

    Errors about the file name the pipe instead.
    """
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "log")
        with open(path, "rb") as pipe, open(whole, "wb") as file:
            shutil.copyfileobj(pipe, file)
        with open(whole, "rb") as file:
            start = file.read(4)
        suffix = next((suffix for begins, suffix in _BEGINNINGS if start.startswith(begins)), ".csv")
        copy = whole.rename(whole.with_suffix(suffix))
        try:
            yield copy
        except ModelFileError as error:
            raise type(error)(path, error.message, error.line, error.column) from None
