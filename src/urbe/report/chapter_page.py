"""The page of a chapter: its sections with verdicts, tables and figures, then an appendix, then how it was computed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from urbe.report.claims import combine, file_of, sourced
from urbe.report.content import PageChapter, Section, Verdict
from urbe.report.exhibits import exhibit_html, figure_anchor
from urbe.report.front import css_class, verdict_of
from urbe.report.markup import below, facts_html, fill, links_html, paragraph, table_html
from urbe.statistics.verdicts import OUTCOMES

MOST_ROWS = 8
"""Longer tables are folded beside figures and in the appendix."""


def chapter_head(chapter: PageChapter) -> str:
    """The title, the question that the chapter answers, and the contents."""
    entries = [(_anchor(each), each.title) for each in chapter.sections if each.title and not each.appendix]
    if any(each.appendix for each in chapter.sections):
        entries.append(("appendix", "Appendix"))
    entries.append(("provenance", "How this was computed"))
    return fill(
        "chapter_head",
        name=chapter.name,
        title=escape(chapter.title),
        summary=below(paragraph(chapter.summary)) if chapter.summary else "",
        contents="\n".join(fill("entry", anchor=anchor, title=escape(title)) for anchor, title in entries),
    )


def chapter_main(chapter: PageChapter, files: Mapping[str, Sequence[str]]) -> str:
    """All sections; those of the appendix come last."""
    anchors = iter([anchor for _, anchor in sourced(chapter)])
    written = [(section.appendix, _section(chapter, section, anchors, files)) for section in chapter.sections]
    parts = [text for appendix, text in written if not appendix]
    rest = [text for appendix, text in written if appendix]
    return "\n".join([*parts, *([fill("appendix"), *rest] if rest else [])])


def chapter_foot(
    chapter: PageChapter, files: Mapping[str, Sequence[str]], near: tuple[PageChapter | None, PageChapter | None]
) -> str:
    """How the chapter was computed, its rows, and the chapters before and after."""
    rows = files.get(chapter.name, ())
    facts = (*(fact for section in chapter.sections for fact in section.facts), *chapter.facts)
    inner = [facts_html(facts), fill("rows", links=links_html(rows)) if rows else ""]
    computed = fill("provenance", inner="\n".join(filter(None, inner))) if any(inner) else ""
    links = " ".join(
        fill("neighbour", file=escape(file_of(each)), word=word, title=escape(each.title))
        for word, each in zip(("Previous", "Next"), near, strict=True)
        if each is not None
    )
    return "\n".join(filter(None, (computed, fill("neighbours", links=links) if links else "")))


def anchors_of(chapter: PageChapter) -> list[str]:
    """Every anchor of the page, for a check that they differ."""
    anchors = ["main", "theme", "appendix", "provenance", chapter.name]
    anchors += [_anchor(section) for section in chapter.sections if section.title]
    return anchors + [figure_anchor(exhibit) for section in chapter.sections for exhibit in section.exhibits]


def _anchor(section: Section) -> str:
    return re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")


def _section(chapter: PageChapter, section: Section, anchors: Iterator[str], files: Mapping[str, Sequence[str]]) -> str:
    level = 3 if section.appendix else 2
    heading = fill("heading", anchor=_anchor(section), title=escape(section.title), level=level)
    drawings = (
        (exhibit, figure_anchor(exhibit), files.get(f"{chapter.name}-{exhibit.name}", ()))
        for exhibit in section.exhibits
    )
    return "\n".join(
        [
            heading if section.title else "<section>",
            *([_verdicts(section.verdicts, anchors)] if section.verdicts else []),
            *map(paragraph, section.paragraphs),
            *(exhibit_html(*each) for each in drawings),
            *(
                fill("table_fold", title=escape(table.title), table=table_html(table))
                if len(table.rows) > MOST_ROWS and (section.exhibits or section.appendix)
                else table_html(table)
                for table in section.tables
            ),
            "</section>",
        ]
    )


def _verdicts(verdicts: Sequence[Verdict], anchors: Iterator[str]) -> str:
    """A line for each claim that unfolds to its verdict under each assumption.

    Args:
      verdicts: the verdicts to show.
      anchors: names for claims of the paper; each claim takes one.
    """
    grouped: dict[tuple[str, str], list[tuple[Verdict, str]]] = {}
    for verdict in verdicts:
        anchor = next(anchors) if verdict.source else ""
        grouped.setdefault((verdict.source, verdict.claim), []).append((verdict, anchor))
    return fill("verdicts", inner="\n".join(_fold(*key, found) for key, found in grouped.items()))


def _fold(source: str, claim: str, found: Sequence[tuple[Verdict, str]]) -> str:
    verdicts = [each for each, _ in found]
    verdict = verdict_of(*combine(verdicts))
    return fill(
        "verdict_fold",
        kind=css_class(verdict),
        verdict=escape(verdict.capitalize()),
        cite=f"<cite>{escape(source)}</cite> " if source else "",
        claim=escape(claim),
        count=escape(_count(verdicts)),
        inner="\n".join(_line(*each) for each in found),
    )


def _count(found: Sequence[Verdict]) -> str:
    """Counts the tested assumptions by outcome."""
    if len(found) == 1:
        return found[0].reading
    counts = Counter(verdict.outcome for verdict in found)
    if len(counts) == 1:
        return "under both assumptions" if len(found) == 2 else f"under all {len(found)} assumptions"
    first, *others = [f"{outcome} under {counts[outcome]}" for outcome in OUTCOMES if counts[outcome]]
    return ", ".join([f"{first} of {len(found)} assumptions", *others])


def _line(verdict: Verdict, anchor: str) -> str:
    return fill(
        "verdict",
        anchor=f' id="{anchor}"' if anchor else "",
        kind=css_class(verdict.outcome),
        verdict=escape(verdict.outcome.capitalize()),
        reading=f" <em>{escape(verdict.reading)}</em>" if verdict.reading else "",
        evidence=escape(verdict.evidence),
    )
