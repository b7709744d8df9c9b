"""Figures as files; whether they can be written is checked before anything is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from urbe import extras
from urbe.atomic import replace_files

SUFFIXES = (".png", ".svg", ".pdf")


def check_figure(path: str | None) -> None:
    """Raises if a figure cannot be written: wrong suffix, or matplotlib is missing."""
    if path is None:
        return
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"--figure {path} ends in {Path(path).suffix!r}, expected one of {', '.join(SUFFIXES)}.")
    extras.need("Figures", "matplotlib")


def write_figure(path: str, figure: Any) -> None:
    """Writes a figure atomically."""
    from urbe.report.export import figure_writer

    replace_files({path: figure_writer(figure, Path(path).suffix.lower()[1:])})
