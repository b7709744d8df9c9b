"""The paper's claims: what the verdicts under each reading say together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from urbe.report.content import Chapter, Outcome, Verdict

AS_STATED = "the words as they stand"
"""Names a reading that has no name, beside others."""

MOST_NAMED = 4
"""Readings that are named in a conclusion; more are counted."""

RULES = (
    "A paired difference between agents over seeds, whose interval (95 %, corrected for the number of comparisons) "
    "lies above 0, holds; below 0, does not hold; else it is undecided. A claim of the paper holds when it holds under "
    "every reading tested; when it holds under some, they are named; when under none, it does not hold if any reading "
    "says so, and else is undecided, or not testable when no reading could be tested."
)


class Claim(NamedTuple):
    """A claim of the paper with all that was found on it.

    Attributes:
      source: where the paper claims it.
      text: the claim.
      outcome: the conclusion; "holds" also when it does under some readings alone.
      under: the readings under which it holds, when there are others under which it does not; else empty.
      found: each verdict, and the anchor at which it stands on the page.
    """

    source: str
    text: str
    outcome: Outcome
    under: tuple[str, ...]
    found: tuple[tuple[Verdict, str], ...]

    @property
    def conclusion(self) -> str:
        """The outcome in words, with the readings on which it depends."""
        return f"{self.outcome} {self.condition}".rstrip()

    @property
    def condition(self) -> str:
        """The readings on which the outcome depends, in words; many are counted. Empty when it holds under all."""
        if len(self.under) <= MOST_NAMED:
            return f"under {'; '.join(self.under)}" if self.under else ""
        return f"under {len(self.under)} of {len({verdict.reading for verdict, _ in self.found})} readings"


def combine(verdicts: Sequence[Verdict]) -> tuple[Outcome, tuple[str, ...]]:
    """The outcome of one claim over its readings, and those under which it holds when it does not under all.

    A reading with several verdicts holds when all of them do.

    Args:
      verdicts: at least one, of the same claim.

    >>> combine([Verdict("A", "holds", "", "Fig. 1", "greedy"), Verdict("A", "undecided", "", "Fig. 1", "noisy")])
    ('holds', ('greedy',))
    >>> combine([Verdict("A", "not testable", ""), Verdict("A", "undecided", "")])
    ('undecided', ())
    """
    if not verdicts:
        raise ValueError("verdicts is empty, expected at least one.")
    readings: dict[str, list[Outcome]] = {}
    for verdict in verdicts:
        readings.setdefault(verdict.reading or AS_STATED, []).append(verdict.outcome)
    holding = tuple(name for name, outcomes in readings.items() if set(outcomes) == {"holds"})
    if holding:
        return "holds", () if len(holding) == len(readings) else holding
    seen = {outcome for outcomes in readings.values() for outcome in outcomes}
    none: tuple[Outcome, ...] = ("does not hold", "undecided", "not testable")
    return next(outcome for outcome in none if outcome in seen), ()


def claims(chapters: Iterable[Chapter]) -> list[Claim]:
    """The claims with a source, in the order of the sources, then as they come; verdicts grouped by source and claim.

    Args:
      chapters: of the page.
    """
    grouped: dict[tuple[str, str], list[tuple[Verdict, str]]] = {}
    for chapter in chapters:
        for verdict, anchor in sourced(chapter):
            grouped.setdefault((verdict.source, verdict.claim), []).append((verdict, anchor))
    found = [
        Claim(source, text, *combine([verdict for verdict, _ in items]), tuple(items))
        for (source, text), items in grouped.items()
    ]
    return sorted(found, key=lambda claim: _order(claim.source))


def sourced(chapter: Chapter) -> list[tuple[Verdict, str]]:
    """The verdicts of a chapter on claims of the paper, each with its anchor on the page: `name--claim-1`, ..."""
    verdicts = [verdict for section in chapter.sections for verdict in section.verdicts if verdict.source]
    return [(verdict, f"{chapter.name}--claim-{i}") for i, verdict in enumerate(verdicts, start=1)]


def _order(source: str) -> tuple[tuple[bool, int, str], ...]:
    """Sorts by numbers as numbers: Fig. 2b, Fig. 3, Fig. 10."""
    pieces = ("".join(group) for _, group in groupby(source, str.isdigit))
    return tuple((piece.isdigit(), int(piece) if piece.isdigit() else 0, piece) for piece in pieces)
