"""The head of a page: every claim of the paper, what became of it, and where its numbers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from urbe.report.claims import AS_STATED, RULE, Claim, claims
from urbe.report.content import Chapter, Verdict
from urbe.statistics.verdicts import OUTCOMES, Outcome

ANCHOR = "claims"
TITLE = "The paper's claims"


def claims_table(chapters: Sequence[Chapter]) -> str:
    """A section with the table of all claims and the rules behind it; empty when there are none with a source."""
    found = claims(chapters)
    if not found:
        return ""
    lines = [
        f'<tr><th scope="row" class="words">{escape(claim.source)}</th><td class="words">{escape(claim.text)}</td>'
        f'<td class="words {css_class(claim.outcome, claim.under)}"><strong>{escape(claim.conclusion)}</strong></td>'
        f'<td class="words">{_readings(claim, i)}</td></tr>'
        for i, claim in enumerate(found, start=1)
    ]
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
            f"<p>{escape(RULE.text)}</p>",
            "</section>",
        ]
    )


def verdict_list(verdicts: Sequence[Verdict], anchors: Iterator[str]) -> str:
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
        told = " ".join([*([f"<cite>{escape(source)}</cite>"] if source else []), f"<span>{escape(claim)}</span>"])
        if len(readings) > 1 and all(verdict.reading for verdict, _ in readings):
            inner = "\n".join(_verdict(verdict, anchor, "") for verdict, anchor in readings)
            lines.append(f"<li>{told}\n<ul>\n{inner}\n</ul></li>")
        else:
            lines += [_verdict(verdict, anchor, told) for verdict, anchor in readings]
    return "\n".join(['<ul class="verdicts">', *lines, "</ul>"])


def _verdict(verdict: Verdict, anchor: str, told: str) -> str:
    name = f' id="{anchor}"' if anchor else ""
    reading = f" <em>{escape(verdict.reading)}</em>" if verdict.reading else ""
    return (
        f'<li{name} class="{css_class(verdict.outcome)}"><strong>{escape(verdict.outcome)}</strong> {told}{reading} '
        f"<small>{escape(verdict.evidence)}</small></li>"
    )


def _readings(claim: Claim, number: int) -> str:
    """The readings of a claim; more than two are folded under their counts."""
    lines = "".join(
        f'<li>{mark(verdict.outcome)} <a href="#{anchor}">{escape(verdict.reading or AS_STATED)}</a></li>'
        for verdict, anchor in claim.found
    )
    if len(claim.found) <= 2:
        return f"<ul>{lines}</ul>"
    counts = Counter(verdict.outcome for verdict, _ in claim.found)
    split = ", ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES if counts[outcome])
    told = f"{len(claim.found)} readings" + (f": {split}" if len(counts) > 1 else "")
    return f'<details id="{ANCHOR}-{number}"><summary>{told}</summary><ul>{lines}</ul></details>'


def mark(outcome: Outcome) -> str:
    """The outcome in words, with the class that gives it colour and sign."""
    return f'<strong class="{css_class(outcome)}">{escape(outcome)}</strong>'


def css_class(outcome: Outcome, under: Sequence[str] = ()) -> str:
    """The class of an outcome; one of its own when it depends on the reading."""
    return "depends" if under else outcome.replace(" ", "-")
