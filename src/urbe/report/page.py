"""A self-contained page: text, figures with captions, and the numbers behind them.

Opens from disk, prints, follows the reader's light or dark setting or choice, and refers to nothing outside its folder.
Its one script, small and inside it, is for reading values in charts and choosing the theme; without it, everything is
there to see. The markup is in `page.html`, cut into fragments by comments that name them; the layout
in `page.css`; the script in `page.js`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from urbe.report.claims import AS_STATED, RULE, Claim, claims, sourced
from urbe.report.content import Exhibit, Facts, PageChapter, Section, State, Verdict
from urbe.report.markup import below, fill, links_html, paragraph, read, table_html
from urbe.report.numbers import duration
from urbe.report.style import THEMED
from urbe.statistics.verdicts import OUTCOMES, Outcome

CLAIMS = "The paper's claims"
PAGE = ("page", "#f4f5f7", "#121418")
"""Behind everything: variable, light, dark."""


def render(
    title: str,
    lead: Sequence[str],
    facts: Facts,
    chapters: Sequence[PageChapter],
    *,
    files: Mapping[str, Sequence[str]] | None = None,
    state: State | None = None,
) -> str:
    """The page as HTML text.

    Args:
      title: of the page.
      lead: opening paragraphs.
      facts: on the whole page.
      chapters: the content.
      files: relative paths of files beside the page, by name of the chapter (its rows) or `figure_anchor` (the drawing
        in other formats).
      state: the progress of an unfinished run.
    """
    _check_anchors(chapters)
    claimed = _claims(chapters)
    return fill(
        "page",
        title=escape(title),
        style=style_sheet(),
        lead=below(*map(paragraph, lead)),
        state=below(_state(state)) if state is not None else "",
        contents="\n".join(_contents(chapters, bool(claimed))),
        facts=_facts(facts),
        claims=claimed + "\n",
        chapters="\n".join(_chapter(chapter, files or {}) for chapter in chapters),
        script=read("page.js"),
    )


def figure_anchor(chapter: PageChapter, exhibit: Exhibit) -> str:
    """The name of a figure on the page."""
    return f"{chapter.name}--{exhibit.name}"  # two dashes: no section's anchor has them


def state_text(state: State) -> str:
    """How far a run has come, in words.

    >>> state_text(State(3, 10, running=2, seconds_left=125.0))
    '3 of 10 cells done, 2 running, about 2 min left'
    """
    parts = [f"{state.done} of {state.total} cells done"]
    parts += [f"{state.running} running"] if state.running else []
    parts += [f"{state.failed} failed"] if state.failed else []
    parts += [f"about {duration(state.seconds_left)} left"] if state.seconds_left is not None else []
    return ", ".join(parts)


def style_sheet() -> str:
    """The whole style sheet: the system's theme unless the reader chose one; paper is white."""
    light, dark = (" ".join(f"--{each[0]}: {each[mode]};" for each in (*THEMED.values(), PAGE)) for mode in (1, 2))
    return (
        f":root {{ {light} }}\n"
        "@media screen and (prefers-color-scheme: dark) { "
        f':root:not([data-theme="light"]) {{ {dark} }} }}\n'
        f'@media screen {{ :root[data-theme="dark"] {{ {dark} }} }}\n'
        f"{read('page.css')}"
        '@media screen { :root[data-theme="light"] { color-scheme: light; } '
        ':root[data-theme="dark"] { color-scheme: dark; } }\n'
        "@media print { :root { --page: #ffffff; } }\n"
    )


def exhibit_html(exhibit: Exhibit, anchor: str, files: Sequence[str]) -> str:
    """A figure; its numbers are those of its tables or, without any, those of the drawing.

    Args:
      exhibit: what to show.
      anchor: its name on the page.
      files: relative paths of the drawing in other formats.
    """
    from urbe.report.figures import svg
    from urbe.report.values import as_json, panels_of, tables_of

    drawing = svg(exhibit.figure, anchor, exhibit.alt)
    panels = panels_of(exhibit.figure)
    tables = "\n".join(map(table_html, exhibit.tables or tables_of(panels)))
    return fill(
        "figure",
        anchor=escape(anchor),
        label=f"Chart {escape(exhibit.name)}{'; arrow keys read its values' if panels else ''}",
        drawing=drawing,
        values=fill("values", json=as_json(panels)) if panels else "",
        caption=escape(exhibit.caption),
        links=links_html(files),
        numbers=fill("numbers", anchor=anchor, tables=tables) if tables else "",
    )


def _state(state: State) -> str:
    return fill(
        "state",
        counts=escape(state_text(state)),
        done=state.done,
        total=state.total,
        notes=below(*map(paragraph, state.notes)),
    )


def _contents(chapters: Sequence[PageChapter], claimed: bool) -> Iterator[str]:
    if claimed:
        yield fill("entry", anchor="claims", title=escape(CLAIMS), below="")
    for chapter in chapters:
        inner = "".join(
            fill("entry", anchor=_anchor(chapter, section), title=escape(section.title), below="")
            for section in chapter.sections
            if section.title
        )
        nested = f"\n<ul>{inner}</ul>" if inner else ""
        yield fill("entry", anchor=chapter.name, title=escape(chapter.title), below=nested)


def _facts(facts: Facts) -> str:
    inner = "\n".join(fill("fact", name=escape(name), value=escape(value)) for name, value in facts)
    return fill("facts", inner=inner) if facts else ""


def _chapter(chapter: PageChapter, files: Mapping[str, Sequence[str]]) -> str:
    anchors = iter([anchor for _, anchor in sourced(chapter)])
    facts = tuple(fact for section in chapter.sections for fact in section.facts) + chapter.facts
    rows = files.get(chapter.name, ())
    return fill(
        "chapter",
        name=chapter.name,
        title=escape(chapter.title),
        facts=_facts(facts),
        rows=below(fill("rows", links=links_html(rows)) if rows else ""),
        sections="\n".join(_section(chapter, section, anchors, files) for section in chapter.sections),
    )


def _section(chapter: PageChapter, section: Section, anchors: Iterator[str], files: Mapping[str, Sequence[str]]) -> str:
    named = [(exhibit, figure_anchor(chapter, exhibit)) for exhibit in section.exhibits]
    heading = fill("heading", anchor=_anchor(chapter, section), title=escape(section.title))
    return "\n".join(
        [
            heading if section.title else "<section>",
            *map(paragraph, section.paragraphs),
            *([_verdicts(section.verdicts, anchors)] if section.verdicts else []),
            *map(table_html, section.tables),
            *(exhibit_html(exhibit, name, files.get(name, ())) for exhibit, name in named),
            "</section>",
        ]
    )


def _claims(chapters: Sequence[PageChapter]) -> str:
    """The table of all claims of the paper and the rule behind it; empty when there are none."""
    found = claims(chapters)
    if not found:
        return ""
    rows = "\n".join(
        fill(
            "claim",
            source=escape(claim.source),
            text=escape(claim.text),
            kind=_css_class(claim.outcome, claim.under),
            conclusion=escape(claim.conclusion),
            readings=_readings(claim, i),
        )
        for i, claim in enumerate(found, start=1)
    )
    return fill("claims", title=escape(CLAIMS), rows=rows, rule=escape(RULE.text))


def _readings(claim: Claim, number: int) -> str:
    """The readings of a claim; more than two are folded under their counts."""
    lines = "".join(
        fill(
            "reading",
            kind=_css_class(verdict.outcome),
            outcome=escape(verdict.outcome),
            anchor=anchor,
            reading=escape(verdict.reading or AS_STATED),
        )
        for verdict, anchor in claim.found
    )
    if len(claim.found) <= 2:
        return f"<ul>{lines}</ul>"
    counts = Counter(verdict.outcome for verdict, _ in claim.found)
    split = ", ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES if counts[outcome])
    text = f"{len(claim.found)} readings" + (f": {split}" if len(counts) > 1 else "")
    return fill("folded", number=number, counts=text, lines=lines)


def _verdicts(verdicts: Sequence[Verdict], anchors: Iterator[str]) -> str:
    """Verdicts as they stand in a section; those on one claim under several readings stand together, at the first.

    Args:
      verdicts: what to show.
      anchors: for those on claims of the paper; one is taken for each.
    """
    grouped: dict[tuple[str, str], list[tuple[Verdict, str]]] = {}
    for verdict in verdicts:
        anchor = next(anchors) if verdict.source else ""
        grouped.setdefault((verdict.source, verdict.claim), []).append((verdict, anchor))
    lines = []
    for (source, claim), readings in grouped.items():
        text = " ".join([*([f"<cite>{escape(source)}</cite>"] if source else []), f"<span>{escape(claim)}</span>"])
        if len(readings) > 1 and all(verdict.reading for verdict, _ in readings):
            inner = "\n".join(_verdict(verdict, anchor, "") for verdict, anchor in readings)
            lines.append(f"<li>{text}\n<ul>\n{inner}\n</ul></li>")
        else:
            lines += [_verdict(verdict, anchor, text) for verdict, anchor in readings]
    return "\n".join(['<ul class="verdicts">', *lines, "</ul>"])


def _verdict(verdict: Verdict, anchor: str, claim: str) -> str:
    return fill(
        "verdict",
        anchor=f' id="{anchor}"' if anchor else "",
        kind=_css_class(verdict.outcome),
        outcome=escape(verdict.outcome),
        claim=claim,
        reading=f" <em>{escape(verdict.reading)}</em>" if verdict.reading else "",
        evidence=escape(verdict.evidence),
    )


def _css_class(outcome: Outcome, under: Sequence[str] = ()) -> str:
    """The class of an outcome; one of its own when it depends on the reading."""
    return "depends" if under else outcome.replace(" ", "-")


def _check_anchors(chapters: Sequence[PageChapter]) -> None:
    anchors = ["claims", "main", "theme", *(chapter.name for chapter in chapters)]
    for chapter in chapters:
        anchors += [_anchor(chapter, section) for section in chapter.sections if section.title]
        anchors += [figure_anchor(chapter, exhibit) for section in chapter.sections for exhibit in section.exhibits]
    twice = [anchor for anchor, count in Counter(anchors).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]} is not unique on the page; give chapters, sections and exhibits their own names.")


def _anchor(chapter: PageChapter, section: Section) -> str:
    return f"{chapter.name}-{re.sub(r'[^a-z0-9]+', '-', section.title.lower()).strip('-')}"
