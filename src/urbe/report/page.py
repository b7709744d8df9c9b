"""A self-contained page: text, figures with captions, and the numbers behind them.

Opens from disk, prints, follows the reader's light or dark setting, and refers to nothing outside itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from urbe.report.page_style import style_sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Table:
    """Rows of text under a head; the first column names the row.

    Attributes:
      title: what it shows.
      head: name of each column.
      rows: cells, as many as `head` has.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A figure with what to see in it.

    Attributes:
      name: unique on the page; letters, digits, dashes, underscores.
      figure: the drawing.
      alt: the drawing in words, for those who do not see it.
      caption: what to see.
      tables: its numbers.
    """

    name: str
    figure: Figure
    alt: str
    caption: str
    tables: tuple[Table, ...]


@dataclass(frozen=True, eq=False)
class Section:
    """A heading, paragraphs, tables, and exhibits."""

    title: str
    paragraphs: tuple[str, ...]
    exhibits: tuple[Exhibit, ...]
    tables: tuple[Table, ...]


def render(title: str, lead: Sequence[str], facts: Sequence[tuple[str, str]], sections: Sequence[Section]) -> str:
    """The page as HTML text.

    Args:
      title: of the page.
      lead: opening paragraphs.
      facts: (name, value) pairs on how it was made.
      sections: the content.
    """
    anchors = [_anchor(section.title) for section in sections]
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{style_sheet()}</style>",
        "</head>",
        "<body>",
        "<header>",
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(text)}</p>" for text in lead),
        '<nav aria-label="Sections"><ul>',
        *(
            f'<li><a href="#{anchor}">{escape(section.title)}</a></li>'
            for anchor, section in zip(anchors, sections, strict=True)
        ),
        "</ul></nav>",
        "<dl>",
        *(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts),
        "</dl>",
        "</header>",
        "<main>",
    ]
    for anchor, section in zip(anchors, sections, strict=True):
        parts.append(f'<section aria-labelledby="{anchor}">')
        parts.append(f'<h2 id="{anchor}">{escape(section.title)}</h2>')
        parts += [f"<p>{escape(text)}</p>" for text in section.paragraphs]
        parts += [_table(table) for table in section.tables]
        parts += [_exhibit(exhibit) for exhibit in section.exhibits]
        parts.append("</section>")
    parts += ["</main>", "</body>", "</html>", ""]
    return "\n".join(parts)


def number(value: float, digits: int = 6) -> str:
    """So many significant digits, and never minus zero.

    >>> number(3179.16214), number(-0.0000000001), number(0.000123456789)
    ('3179.16', '0', '0.000123457')
    """
    if abs(value) < 1e-7:  # below what any solve here is asked to tell
        return "0"
    return f"{value:.{digits}g}"


def _exhibit(exhibit: Exhibit) -> str:
    from urbe.report.figures import svg

    drawing = svg(exhibit.figure, exhibit.name, exhibit.alt)
    tables = "\n".join(_table(table) for table in exhibit.tables)
    return (
        f'<figure id="{escape(exhibit.name)}">\n<div class="drawing">\n{drawing}\n</div>\n'
        f"<figcaption>{escape(exhibit.caption)}</figcaption>\n"
        f"<details><summary>The numbers</summary>\n{tables}\n</details>\n</figure>"
    )


def _table(table: Table) -> str:
    words = [not all(_numeric(row[i]) for row in table.rows) for i in range(len(table.head))]
    kinds = [' class="words"' if is_words else "" for is_words in words]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(table.head, kinds, strict=True))
    lines = [
        '<div class="scroll"><table>',
        f"<caption>{escape(table.title)}</caption>",
        f"<thead><tr>{head}</tr></thead>",
        "<tbody>",
    ]
    for row in table.rows:
        cells = [f'<th scope="row"{kinds[0]}>{escape(row[0])}</th>']
        cells += [f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _numeric(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text) is not None


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
