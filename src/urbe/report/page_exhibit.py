"""Figures on a page: the drawing, what to see in it, its numbers to read and to unfold, and its files."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import PurePosixPath

from urbe.report.content import Exhibit
from urbe.report.page_table import table_html


def exhibit_html(exhibit: Exhibit, anchor: str, files: Sequence[str]) -> str:
    """The figure.

    Its numbers are those of its tables; without any, those of the drawing.

    Args:
      exhibit: what to show.
      anchor: its name on the page.
      files: relative paths of the drawing in other formats.
    """
    from urbe.report.figures import svg
    from urbe.report.values import as_json, panels_of, tables_of

    drawing = svg(exhibit.figure, anchor, exhibit.alt)
    panels = panels_of(exhibit.figure)
    told = (
        f'<script type="application/json">{as_json(panels)}</script>\n<div class="tip" role="status" hidden></div>\n'
        if panels
        else ""
    )
    label = f"Chart {escape(exhibit.name)}{'; arrow keys read its values' if panels else ''}"
    tables = "\n".join(map(table_html, exhibit.tables or tables_of(panels)))
    numbers = (
        f'<details id="{anchor}--numbers"><summary>The numbers</summary>\n{tables}\n</details>\n' if tables else ""
    )
    return (
        f'<figure id="{escape(anchor)}">\n'
        f'<div class="drawing" tabindex="0" role="group" aria-label="{label}">\n{drawing}\n{told}</div>\n'
        f"<figcaption>{escape(exhibit.caption)}{links_html(files)}</figcaption>\n{numbers}</figure>"
    )


def links_html(files: Sequence[str]) -> str:
    """Links to files beside the page, named by their kind."""
    links = " ".join(
        f'<a href="{escape(file)}" aria-label="{escape(PurePosixPath(file).name)}">{_kind(file)}</a>' for file in files
    )
    return f' <span class="files">{links}</span>' if files else ""


def _kind(file: str) -> str:
    suffix = PurePosixPath(file).suffix[1:]
    return suffix.capitalize() if suffix == "parquet" else suffix.upper()
