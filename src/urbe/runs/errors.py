"""Errors of runs and checkpoints that cannot be resumed, and of logs that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


class LogDamaged(UserWarning):
    """A log of a run differs from its state at the checkpoint; the message says how, and what follows."""


class CheckpointError(ValueError):
    """A checkpoint, or a file of a run, is missing, damaged or not what was expected; says which and why.

    `str(error)` reads `runs/7/checkpoints/000000000200.safetensors: is missing.`

    Args:
      path: the file or folder.
      message: what was found, what was expected, what to do.
    """

    def __init__(self, path: str | os.PathLike[str], message: str) -> None:
        super().__init__(path, message)
        self.path, self.message = path, message

    def __str__(self) -> str:
        return f"{os.fspath(self.path)}: {self.message}"


@contextmanager
def refused(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Converts all errors of an invalid description to one kind."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(
            path, f"describes {what} that cannot be built here ({type(error).__name__}): {error}"
        ) from error
