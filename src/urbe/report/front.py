"""The front page: counts of verdicts, three figures, a glossary, a line per claim, chapters, provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from urbe.report.claims import RULE, Claim, claims, file_of
from urbe.report.content import Facts, PageChapter, State
from urbe.report.exhibits import exhibit_html, figure_anchor
from urbe.report.markup import below, facts_html, fill, paragraph
from urbe.report.numbers import duration
from urbe.statistics.verdicts import OUTCOMES, Outcome

FRONT = "index.html"

MOST_FIGURES = 3
"""Figures on the front page."""

DEPENDS = "holds under some assumptions"
VERDICTS = (OUTCOMES[0], DEPENDS, *OUTCOMES[1:])
"""The verdicts that are counted and shown: the outcomes, and a separate one for claims that depend on an assumption."""

_ONE = {"holds": "holds", DEPENDS: DEPENDS, "does not hold": "does not hold", "undecided": "is undecided"}
_MANY = {
    "holds": "hold",
    DEPENDS: "hold under some assumptions",
    "does not hold": "do not hold",
    "undecided": "are undecided",
    "not testable": "could not be tested",
}


def front_head(title: str, lead: Sequence[str], state: State | None) -> str:
    """Title, opening paragraphs, and the progress of an unfinished run."""
    shown = below(_state(state)) if state is not None else ""
    return fill("front_head", title=escape(title), lead="\n".join(map(paragraph, lead)), state=shown)


def front_main(chapters: Sequence[PageChapter], glossary: Facts) -> str:
    """Everything between the head and the provenance."""
    found = claims(chapters)
    parts = [_tally(found), _highlights(chapters), _glossary(glossary), _claims(found), _chapters(chapters)]
    return "\n".join(part for part in parts if part)


def provenance(facts: Facts) -> str:
    """How the report was computed."""
    return fill("provenance", inner=facts_html(facts)) if facts else ""


def verdict_of(outcome: Outcome, under: Sequence[str] = ()) -> str:
    """One of `VERDICTS`.

    >>> verdict_of("holds", ("greedy",)), verdict_of("undecided")
    ('holds under some assumptions', 'undecided')
    """
    return DEPENDS if under else outcome


def css_class(verdict: str) -> str:
    """The class of an element that shows one of `VERDICTS`."""
    return "depends" if verdict == DEPENDS else verdict.replace(" ", "-")


def tally_text(found: Sequence[Claim]) -> str:
    """Counts the claims with each verdict, in a sentence.

    >>> tally_text([Claim("Fig. 1", "A.", "holds", (), ()), Claim("Fig. 1", "B.", "undecided", (), ())])
    'Of the 2 claims of the paper, 1 holds and 1 is undecided.'
    """
    counts = Counter(verdict_of(claim.outcome, claim.under) for claim in found)
    parts = [
        f"{counts[each]} {(_ONE if counts[each] == 1 else _MANY).get(each, _MANY[each])}"
        for each in VERDICTS
        if counts[each]
    ]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"Of the {len(found)} claims of the paper, {listed}."


def state_text(state: State) -> str:
    """The progress of a run, in words.

    >>> state_text(State(3, 10, running=2, seconds_left=125.0))
    '3 of 10 cells done, 2 running, about 2 min left'
    """
    parts = [f"{state.done} of {state.total} cells done"]
    parts += [f"{state.running} running"] if state.running else []
    parts += [f"{state.failed} failed"] if state.failed else []
    parts += [f"about {duration(state.seconds_left)} left"] if state.seconds_left is not None else []
    return ", ".join(parts)


def _state(state: State) -> str:
    notes = below(*map(paragraph, state.notes))
    return fill("state", counts=escape(state_text(state)), done=state.done, total=state.total, notes=notes)


def _tally(found: Sequence[Claim]) -> str:
    if not found:
        return ""
    counts = Counter(verdict_of(claim.outcome, claim.under) for claim in found)
    bar = "".join(fill("share", kind=css_class(each), count=counts[each]) for each in VERDICTS if counts[each])
    return fill("tally", sentence=escape(tally_text(found)), bar=bar)


def _highlights(chapters: Sequence[PageChapter]) -> str:
    shown = [(chapter, chapter.highlight) for chapter in chapters if chapter.highlight is not None][:MOST_FIGURES]
    inner = "\n".join(
        fill(
            "highlight",
            message=escape(each.message),
            figure=exhibit_html(each.exhibit, f"{chapter.name}--{figure_anchor(each.exhibit)}", (), brief=True),
            file=escape(file_of(chapter)),
            title=escape(chapter.title),
        )
        for chapter, each in shown
    )
    return fill("highlights", inner=inner) if shown else ""


def _glossary(glossary: Facts) -> str:
    inner = "\n".join(fill("fact", name=escape(word), value=escape(meaning)) for word, meaning in glossary)
    return fill("glossary", inner=inner) if glossary else ""


def _claims(found: Sequence[Claim]) -> str:
    """A line for each claim, and the rule behind the verdicts; empty when there are none."""
    rows = "\n".join(map(_claim, found))
    return fill("claims", rows=rows, rule=escape(RULE.text)) if found else ""


def _claim(claim: Claim) -> str:
    verdict = verdict_of(claim.outcome, claim.under)
    holding = [link for each, link in claim.found if each.outcome == claim.outcome] or [claim.found[0][1]]
    under = claim.condition[0].upper() + claim.condition[1:] if claim.under else ""
    return fill(
        "claim",
        kind=css_class(verdict),
        verdict=escape(verdict.capitalize()),
        link=escape(holding[0]),
        text=escape(claim.text),
        source=escape(claim.source),
        under=fill("under", text=escape(under)) if under else "",
    )


def _chapters(chapters: Sequence[PageChapter]) -> str:
    rows = "\n".join(
        fill(
            "chapter_entry",
            file=escape(file_of(chapter)),
            title=escape(chapter.title),
            summary=below(paragraph(chapter.summary)) if chapter.summary else "",
        )
        for chapter in chapters
    )
    return fill("chapters", rows=rows) if chapters else ""
