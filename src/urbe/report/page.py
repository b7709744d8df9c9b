"""A self-contained page: text, figures with captions, and the numbers behind them.

Opens from disk, prints, follows the reader's light or dark setting or choice, and refers to nothing outside its folder.
Its one script, small and inside it, is for reading values in charts, choosing the theme and following a run; without
it, everything is there to see.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from urbe.report.claims import sourced
from urbe.report.content import Chapter, Exhibit, Facts, Section, State
from urbe.report.page_claims import ANCHOR, TITLE, claims_table, verdict_list
from urbe.report.page_exhibit import exhibit_html, links_html
from urbe.report.page_state import refresh_html, state_html
from urbe.report.page_style import style_sheet
from urbe.report.page_table import table_html

MAIN = "main"
"""Where the content begins."""


def render(
    title: str,
    lead: Sequence[str],
    facts: Facts,
    chapters: Sequence[Chapter],
    *,
    files: Mapping[str, Sequence[str]] | None = None,
    state: State | None = None,
    drawn: dict[str, str] | None = None,
) -> str:
    """The page as HTML text.

    Args:
      title: of the page.
      lead: opening paragraphs.
      facts: on the whole page.
      chapters: the content.
      files: relative paths of files beside the page, by name of the chapter (its rows) or `figure_anchor` (the drawing
        in other formats).
      state: of a run that is under way.
      drawn: HTML of chapters that are the same as before, by name; those that are not there are added.
    """
    _check_anchors(chapters)
    beside = files or {}
    bodies = {} if drawn is None else drawn
    for chapter in chapters:
        if chapter.name not in bodies:
            bodies[chapter.name] = _chapter(chapter, beside)
    claimed = claims_table(chapters)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        *([refresh_html(state)] if state is not None and state.refresh else []),
        f"<title>{escape(title)}</title>",
        f"<style>\n{style_sheet()}</style>",
        "</head>",
        "<body>",
        f'<a class="skip" href="#{MAIN}">Skip to the content</a>',
        "<header>",
        '<button type="button" id="theme" aria-pressed="false" hidden>Dark</button>',
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(text)}</p>" for text in lead),
        *([state_html(state)] if state is not None else []),
        _contents(chapters, bool(claimed)),
        _facts(facts),
        "</header>",
        f'<main id="{MAIN}" tabindex="-1">',
        claimed,
        *(bodies[chapter.name] for chapter in chapters),
        "</main>",
        f"<script>\n{_script()}</script>",
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def figure_anchor(chapter: Chapter, exhibit: Exhibit) -> str:
    """The name of a figure on the page."""
    return f"{chapter.name}--{exhibit.name}"  # two dashes: no section's anchor has them


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


def _chapter(chapter: Chapter, files: Mapping[str, Sequence[str]]) -> str:
    anchors = iter([anchor for _, anchor in sourced(chapter)])
    facts = tuple(fact for section in chapter.sections for fact in section.facts) + chapter.facts
    rows = files.get(chapter.name, ())
    return "\n".join(
        [
            f'<article aria-labelledby="{chapter.name}">',
            f'<h2 id="{chapter.name}">{escape(chapter.title)}</h2>',
            _facts(facts),
            *([f'<p class="rows">The rows behind this chapter:{links_html(rows)}</p>'] if rows else []),
            *(_section(chapter, section, anchors, files) for section in chapter.sections),
            "</article>",
        ]
    )


def _section(chapter: Chapter, section: Section, anchors: Iterator[str], files: Mapping[str, Sequence[str]]) -> str:
    anchor = _anchor(chapter, section)
    opening = (
        [f'<section aria-labelledby="{anchor}">', f'<h3 id="{anchor}">{escape(section.title)}</h3>']
        if section.title
        else ["<section>"]
    )
    named = [(exhibit, figure_anchor(chapter, exhibit)) for exhibit in section.exhibits]
    return "\n".join(
        [
            *opening,
            *(f"<p>{escape(text)}</p>" for text in section.paragraphs),
            *([verdict_list(section.verdicts, anchors)] if section.verdicts else []),
            *map(table_html, section.tables),
            *(exhibit_html(exhibit, name, files.get(name, ())) for exhibit, name in named),
            "</section>",
        ]
    )


def _check_anchors(chapters: Sequence[Chapter]) -> None:
    anchors = [ANCHOR, MAIN, "theme", "follow", *(chapter.name for chapter in chapters)]
    for chapter in chapters:
        anchors += [_anchor(chapter, section) for section in chapter.sections if section.title]
        anchors += [figure_anchor(chapter, exhibit) for section in chapter.sections for exhibit in section.exhibits]
    twice = [anchor for anchor, count in Counter(anchors).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]} is not unique on the page; give chapters, sections and exhibits their own names.")


def _anchor(chapter: Chapter, section: Section) -> str:
    return f"{chapter.name}-{re.sub(r'[^a-z0-9]+', '-', section.title.lower()).strip('-')}"


def _script() -> str:
    return Path(__file__).with_name("page.js").read_text(encoding="utf-8")
