"""Figures on a page: the drawing, its values for the pointer, its caption, and its numbers folded below."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from urbe.report.content import Exhibit
from urbe.report.markup import fill, links_html, table_html


def figure_anchor(exhibit: Exhibit) -> str:
    """The name of a figure on the page of its chapter."""
    return f"figure-{exhibit.name}"


def exhibit_html(exhibit: Exhibit, anchor: str, files: Sequence[str], *, brief: bool = False) -> str:
    """Returns the HTML of a figure; its numbers are those of its tables or, without tables, those of the drawing.

    Lines that coincide everywhere are named below the caption, since one hides the other.

    Args:
      exhibit: the figure to show.
      anchor: its name on the page.
      files: relative paths of the drawing in other formats.
      brief: whether to leave out the numbers.
    """
    from urbe.report.drawing import svg
    from urbe.report.values import as_json, coincidences, panels_of, tables_of

    drawing = svg(exhibit.figure, anchor, exhibit.alt)
    panels = panels_of(exhibit.figure)
    tables = "" if brief else "\n".join(map(table_html, exhibit.tables or tables_of(panels)))
    return fill(
        "figure",
        anchor=escape(anchor),
        label=f"Chart {escape(exhibit.name)}{'; arrow keys read its values' if panels else ''}",
        drawing=drawing,
        values=fill("values", json=as_json(panels)) if panels else "",
        caption=escape(" ".join(filter(None, (exhibit.caption, coincidences(panels))))),
        links=links_html(files),
        numbers=fill("numbers", anchor=anchor, tables=tables) if tables else "",
    )
