"""Files to write; whether they can be written is checked before anything is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from urbe import extras
from urbe.atomic import final_path, replace_files
from urbe.tables import format_of

SUFFIXES = (".png", ".svg", ".pdf")


def check_figure(path: str | None) -> None:
    """Raises if a figure cannot be written: wrong suffix, no such folder, or matplotlib is missing."""
    if path is None:
        return
    check_folders(path)
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"--figure {path} ends in {Path(path).suffix!r}, expected one of {', '.join(SUFFIXES)}.")
    extras.need("Figures", "matplotlib")


def check_table(option: str, path: str | None) -> None:
    """Raises if a table cannot be written: wrong suffix, or no such folder."""
    if path is not None:
        try:
            format_of(path)
        except ValueError as error:
            raise ValueError(f"{option} {error}") from None
    check_folders(path)


def check_folders(*paths: str | None) -> None:
    """Raises if a folder of these files does not exist."""
    for path in paths:
        if path is not None:
            final_path(path)


def write_figure(path: str, figure: Any) -> None:
    """Writes a figure atomically."""
    from urbe.report.export import figure_writer

    replace_files({path: figure_writer(figure, Path(path).suffix.lower()[1:])})
