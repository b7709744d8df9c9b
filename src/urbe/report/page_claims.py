"""The head of a page: every claim of the paper, what became of it, and where its numbers are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from urbe.report.claims import AS_STATED, RULES, claims
from urbe.report.content import Chapter, Outcome, Verdict

ANCHOR = "claims"
TITLE = "The paper's claims"


def claims_table(chapters: Sequence[Chapter]) -> str:
    """A section with the table of all claims and the rules behind it; empty when there are none with a source."""
    found = claims(chapters)
    if not found:
        return ""
    lines = []
    for claim in found:
        readings = "".join(
            f'<li>{mark(verdict.outcome)} <a href="#{anchor}">{escape(verdict.reading or AS_STATED)}</a></li>'
            for verdict, anchor in claim.found
        )
        lines.append(
            f'<tr><th scope="row" class="words">{escape(claim.source)}</th><td class="words">{escape(claim.text)}</td>'
            f'<td class="words {css_class(claim.outcome, claim.under)}"><strong>{escape(claim.conclusion)}</strong>'
            f'</td><td class="words"><ul>{readings}</ul></td></tr>'
        )
    head = "".join(f'<th scope="col" class="words">{name}</th>' for name in ("Where", "Claim", "Verdict", "Readings"))
    return "\n".join(
        [
            f'<section class="claims" aria-labelledby="{ANCHOR}">',
            f'<h2 id="{ANCHOR}">{escape(TITLE)}</h2>',
            '<div class="scroll" tabindex="0" role="group" aria-label="Claims and verdicts"><table>',
            "<caption>Claims, verdicts, and the readings behind them</caption>",
            f"<thead><tr>{head}</tr></thead>",
            "<tbody>",
            *lines,
            "</tbody></table></div>",
            f"<p>{escape(RULES)}</p>",
            "</section>",
        ]
    )


def verdict_list(verdicts: Sequence[Verdict], anchors: Iterator[str]) -> str:
    """Verdicts as they stand in a section.

    Args:
      verdicts: what to show.
      anchors: for those on claims of the paper; one is taken for each.
    """
    lines = []
    for verdict in verdicts:
        anchor = f' id="{next(anchors)}"' if verdict.source else ""
        source = f" <cite>{escape(verdict.source)}</cite>" if verdict.source else ""
        reading = f" <em>{escape(verdict.reading)}</em>" if verdict.reading else ""
        lines.append(
            f'<li{anchor} class="{css_class(verdict.outcome)}"><strong>{escape(verdict.outcome)}</strong>{source} '
            f"<span>{escape(verdict.claim)}</span>{reading} <small>{escape(verdict.evidence)}</small></li>"
        )
    return "\n".join(['<ul class="verdicts">', *lines, "</ul>"])


def mark(outcome: Outcome) -> str:
    """The outcome in words, with the class that gives it colour and sign."""
    return f'<strong class="{css_class(outcome)}">{escape(outcome)}</strong>'


def css_class(outcome: Outcome, under: Sequence[str] = ()) -> str:
    """The class of an outcome; one of its own when it depends on the reading."""
    return "depends" if under else outcome.replace(" ", "-")
