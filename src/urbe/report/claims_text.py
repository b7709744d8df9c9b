"""The paper's claims as Markdown, for a README."""

from __future__ import annotations

from collections.abc import Iterable

from urbe.report.claims import RULE, claims
from urbe.report.content import PageChapter


def markdown(chapters: Iterable[PageChapter]) -> str:
    """A table of every claim with its verdict, and the rules below it; empty when there are no claims with a source.

    >>> from urbe.report.content import Section, Verdict
    >>> verdict = Verdict("URBE earns more than UBE.", "holds", "0.1 [0.0, 0.2]", "Fig. 2b")
    >>> page = PageChapter("seven", "Seven", (Section("", verdicts=(verdict,)),))
    >>> print(*markdown([page]).splitlines()[:3], sep="\\n")
    | where | claim of the paper | verdict |
    |---|---|---|
    | Fig. 2b | URBE earns more than UBE. | **holds** |
    """
    found = claims(chapters)
    if not found:
        return ""
    lines = ["| where | claim of the paper | verdict |", "|---|---|---|"]
    for claim in found:
        verdict = f"**{claim.outcome}** {_cell(claim.condition)}".rstrip()
        lines.append(f"| {_cell(claim.source)} | {_cell(claim.text)} | {verdict} |")
    return "\n".join([*lines, "", RULE.text, ""])


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")
