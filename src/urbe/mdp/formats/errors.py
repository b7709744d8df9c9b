"""The error for files that cannot be read in their format."""

from __future__ import annotations

import os


class ModelFileError(ValueError):
    """A file does not hold a valid model; the message says where, and what was expected.

    `str(error)` reads `model.csv, line 17, column probability: found 'abc', expected a number.`

    Args:
      path: the file.
      message: what was found, what was expected, what to do.
      line: 1-based line of a text file; None if the error is not in one line.
      column: name of the column; None if the error is not in one column.
    """

    def __init__(
        self, path: str | os.PathLike[str], message: str, line: int | None = None, column: str | None = None
    ) -> None:
        super().__init__(path, message, line, column)
        self.path, self.message, self.line, self.column = path, message, line, column

    def __str__(self) -> str:
        where = os.fspath(self.path)
        if self.line is not None:
            where += f", line {self.line}"
        if self.column is not None:
            where += f", column {self.column}"
        return f"{where}: {self.message}"


class LabelsLost(UserWarning):
    """A model was written in a format that cannot hold some of its labels; the message says which."""


class NotUtf8(ModelFileError):
    """A file is text in another encoding, or no text."""
