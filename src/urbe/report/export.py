"""Write figures for papers: PNG, SVG and PDF files on white, with embedded fonts and reproducible bytes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, BinaryIO

import matplotlib
from matplotlib.figure import Figure

from urbe.atomic import Writer
from urbe.report import style
from urbe.report.content import PageChapter

FOLDER = "figures"
FORMATS = ("png", "svg", "pdf")
DPI = 200
"""Resolution of PNG files: figures are 10 inches wide, hence 2000 pixels."""

_RC: Any = {**style.RC, "svg.fonttype": "path", "pdf.fonttype": 42}
"""Letters are outlines in SVG and whole TrueType fonts in PDF, so readers need no font of ours."""

_NO_DATES: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None},
}


def figure_files(
    chapters: Sequence[PageChapter], formats: Collection[str] = FORMATS
) -> tuple[dict[str, Writer], dict[str, tuple[str, ...]]]:
    """Maps every figure to its file in every format.

    Args:
      chapters: chapters of the page.
      formats: the formats to write; only those in `FORMATS` count.

    Returns:
      the writer of each file, by its path relative to the page, `figures/<chapter>-<name>.<format>`; and the paths of
      each figure by `<chapter>-<name>`, as `urbe.report.page.render` takes them.
    """
    kinds = [kind for kind in FORMATS if kind in formats]
    writers: dict[str, Writer] = {}
    files: dict[str, tuple[str, ...]] = {}
    for chapter in chapters:
        for exhibit in (exhibit for section in chapter.sections for exhibit in section.exhibits):
            stem = f"{chapter.name}-{exhibit.name}"
            paths = tuple(f"{FOLDER}/{stem}.{kind}" for kind in kinds)
            if writers.keys() & set(paths):
                raise ValueError(f"Two figures would be written to {paths[0]}; give chapters and exhibits other names.")
            writers |= {path: figure_writer(exhibit.figure, kind) for path, kind in zip(paths, kinds, strict=True)}
            files[stem] = paths
    return writers, files


def figure_writer(figure: Figure, kind: str) -> Writer:
    """Writes a figure as one of `FORMATS`."""

    def write(file: BinaryIO) -> None:
        with matplotlib.rc_context({**_RC, "svg.hashsalt": "urbe"}):
            figure.savefig(file, format=kind, dpi=DPI, facecolor="white", metadata=_NO_DATES[kind])

    return write
