"""A self-contained page: text, figures with captions, and the numbers behind them.

Opens from disk, prints, follows the reader's light or dark setting, and refers to nothing outside itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from urbe.report.claims import sourced
from urbe.report.content import Chapter, Exhibit, Facts, Section, Table
from urbe.report.page_claims import ANCHOR, TITLE, claims_table, verdict_list
from urbe.report.page_style import style_sheet


def render(title: str, lead: Sequence[str], facts: Facts, chapters: Sequence[Chapter]) -> str:
    """The page as HTML text.

    Args:
      title: of the page.
      lead: opening paragraphs.
      facts: on the whole page.
      chapters: the content.
    """
    _check_anchors(chapters)
    claimed = claims_table(chapters)
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
        _contents(chapters, bool(claimed)),
        _facts(facts),
        "</header>",
        "<main>",
        claimed,
        *(_chapter(chapter) for chapter in chapters),
        "</main>",
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def _contents(chapters: Sequence[Chapter], claimed: bool) -> str:
    lines = ['<nav aria-label="Contents"><ul>']
    if claimed:
        lines.append(f'<li><a href="#{ANCHOR}">{escape(TITLE)}</a></li>')
    for chapter in chapters:
        inner = "".join(
            f'<li><a href="#{_anchor(chapter, section)}">{escape(section.title)}</a></li>'
            for section in chapter.sections
            if section.title
        )
        below = f"\n<ul>{inner}</ul>" if inner else ""
        lines.append(f'<li><a href="#{chapter.name}">{escape(chapter.title)}</a>{below}</li>')
    return "\n".join([*lines, "</ul></nav>"])


def _facts(facts: Facts) -> str:
    inner = "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f"<dl>\n{inner}\n</dl>" if facts else ""


def _chapter(chapter: Chapter) -> str:
    anchors = iter([anchor for _, anchor in sourced(chapter)])
    facts = tuple(fact for section in chapter.sections for fact in section.facts) + chapter.facts
    return "\n".join(
        [
            f'<article aria-labelledby="{chapter.name}">',
            f'<h2 id="{chapter.name}">{escape(chapter.title)}</h2>',
            _facts(facts),
            *(_section(chapter, section, anchors) for section in chapter.sections),
            "</article>",
        ]
    )


def _section(chapter: Chapter, section: Section, anchors: Iterator[str]) -> str:
    anchor = _anchor(chapter, section)
    opening = (
        [f'<section aria-labelledby="{anchor}">', f'<h3 id="{anchor}">{escape(section.title)}</h3>']
        if section.title
        else ["<section>"]
    )
    return "\n".join(
        [
            *opening,
            *(f"<p>{escape(text)}</p>" for text in section.paragraphs),
            *([verdict_list(section.verdicts, anchors)] if section.verdicts else []),
            *(_table(table) for table in section.tables),
            *(_exhibit(chapter, exhibit) for exhibit in section.exhibits),
            "</section>",
        ]
    )


def _exhibit(chapter: Chapter, exhibit: Exhibit) -> str:
    from urbe.report.figures import svg

    name = _figure_anchor(chapter, exhibit)
    drawing = svg(exhibit.figure, name, exhibit.alt)
    tables = "\n".join(_table(table) for table in exhibit.tables)
    numbers = f"<details><summary>The numbers</summary>\n{tables}\n</details>\n" if tables else ""
    return (
        f'<figure id="{escape(name)}">\n<div class="drawing">\n{drawing}\n</div>\n'
        f"<figcaption>{escape(exhibit.caption)}</figcaption>\n{numbers}</figure>"
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
    """Whether a cell holds a number, a number with its interval, or the dash of a missing one."""
    one = r"-?(\d+(\.\d+)?(e[+-]?\d+)?|inf)"
    return re.fullmatch(rf"{one}( \[\u2007*{one}, \u2007*{one}\])?|-", text) is not None


def _check_anchors(chapters: Sequence[Chapter]) -> None:
    anchors = [ANCHOR, *(chapter.name for chapter in chapters)]
    for chapter in chapters:
        anchors += [_anchor(chapter, section) for section in chapter.sections if section.title]
        anchors += [_figure_anchor(chapter, exhibit) for section in chapter.sections for exhibit in section.exhibits]
    twice = [anchor for anchor, count in Counter(anchors).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]} is not unique on the page; give chapters, sections and exhibits their own names.")


def _figure_anchor(chapter: Chapter, exhibit: Exhibit) -> str:
    return f"{chapter.name}--{exhibit.name}"  # two dashes: no section's anchor has them


def _anchor(chapter: Chapter, section: Section) -> str:
    return f"{chapter.name}-{re.sub(r'[^a-z0-9]+', '-', section.title.lower()).strip('-')}"
