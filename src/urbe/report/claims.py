"""The paper's claims: the verdict under each assumption (a reading of the paper), and the conclusion from all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from urbe.report.content import PageChapter, Verdict
from urbe.report.numbers import decimals, interval_text, number
from urbe.statistics.verdicts import Answer, ExactNumber, Judgement, Outcome, Rule, Test

AS_STATED = "as stated"
"""The name of an unnamed assumption among named ones."""

MOST_NAMED = 4
"""A conclusion names at most this many assumptions; more are counted."""

RULE = Rule()
"""The rule for every claim of every chapter; the report shows its text."""

MOST_DECIMALS = 4
"""Decimals of numbers in the evidence."""


def judge(claim: str, tests: Sequence[Test], *, source: str = "") -> list[Verdict]:
    """Returns the verdict on a claim under each assumption, with the numbers that decide.

    Args:
      claim: a sentence that could be false.
      tests: one per assumption; their intervals cover simultaneously.
      source: see `Verdict`.

    >>> from urbe.statistics.verdicts import Mean, Question
    >>> import numpy as np
    >>> (found,) = judge("A beats B.", [Test([Question("A - B", Mean(np.array([0.4, 0.5, 0.45])))])])
    >>> found.outcome, found.evidence
    ('holds', 'A - B is 0.45 [0.33, 0.57], 3 seeds.')
    """
    found = zip(tests, RULE.judge(tests), strict=True)
    return [Verdict(claim, each.outcome, _evidence(each, test), source, test.reading) for test, each in found]


def _evidence(found: Judgement, test: Test) -> str:
    if not found.answers:
        return test.note or "Its agents were not run."
    sentences = [_sentence(answer) for answer in found.answers]
    if found.supposed not in (None, "holds"):
        word = f"is {found.supposed}" if found.supposed != "does not hold" else found.supposed
        sentences += [f"Its premise {word}:", *(_sentence(answer) for answer in found.premises)]
    return " ".join([*sentences, *([test.note] if test.note else [])])


def _sentence(answer: Answer) -> str:
    question, interval, _ = answer
    if interval is None:
        return f"{question.name}: not testable with {question.quantity.size or 'a missing number'}."
    size = f", {question.quantity.size}" if question.quantity.size else ""
    shown = interval_text(interval, min(decimals([interval]), MOST_DECIMALS))
    if isinstance(question.quantity, ExactNumber):
        exact = interval.estimate
        shown = f"{exact:,.0f}" if exact.is_integer() else number(exact, 4)
    usual = question.number == 0.0 and question.side == "above"
    asked = "" if usual else f", claimed to be {question.side} {question.number:,g}"
    return f"{question.name} is {shown}{asked}{size}."


class Claim(NamedTuple):
    """A claim of the paper with its verdicts.

    Attributes:
      source: where the paper claims it.
      text: the claim.
      outcome: the conclusion; "holds" also when it holds under some assumptions only.
      under: the assumptions under which it holds, if there are others; else empty.
      found: each verdict, and the link to its place in the report.
    """

    source: str
    text: str
    outcome: Outcome
    under: tuple[str, ...]
    found: tuple[tuple[Verdict, str], ...]

    @property
    def conclusion(self) -> str:
        """The outcome in words, with the assumptions on which it depends."""
        return f"{self.outcome} {self.condition}".rstrip()

    @property
    def condition(self) -> str:
        """The assumptions under which it holds, in words; many are counted. Empty when it holds under all."""
        if len(self.under) <= MOST_NAMED:
            return f"under {'; '.join(self.under)}" if self.under else ""
        return f"under {len(self.under)} of {self.readings} assumptions"

    @property
    def readings(self) -> int:
        """The number of assumptions under which it was tested."""
        return len({verdict.reading for verdict, _ in self.found})


def combine(verdicts: Sequence[Verdict]) -> tuple[Outcome, tuple[str, ...]]:
    """The outcome of one claim, and the assumptions under which it holds if it does not hold under all.

    Under an assumption with several verdicts, the claim holds when all of them hold.

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
    return RULE.conclude(readings)


def claims(chapters: Iterable[PageChapter]) -> list[Claim]:
    """The claims with a source, ordered by source; verdicts are grouped by source and claim.

    Args:
      chapters: chapters of the page.
    """
    grouped: dict[tuple[str, str], list[tuple[Verdict, str]]] = {}
    for chapter in chapters:
        for verdict, anchor in sourced(chapter):
            link = f"{file_of(chapter)}#{anchor}"
            grouped.setdefault((verdict.source, verdict.claim), []).append((verdict, link))
    found = [
        Claim(source, text, *combine([verdict for verdict, _ in items]), tuple(items))
        for (source, text), items in grouped.items()
    ]
    return sorted(found, key=lambda claim: _order(claim.source))


def file_of(chapter: PageChapter) -> str:
    """The file of a chapter, beside the front page."""
    return f"{chapter.name}.html"


def sourced(chapter: PageChapter) -> list[tuple[Verdict, str]]:
    """The verdicts of a chapter on claims of the paper, each with its anchor: `claim-1`, ..."""
    verdicts = [verdict for section in chapter.sections for verdict in section.verdicts if verdict.source]
    return [(verdict, f"claim-{i}") for i, verdict in enumerate(verdicts, start=1)]


def markdown(chapters: Iterable[PageChapter]) -> str:
    """A Markdown table of every claim with its verdict, and the rules below it; empty when no claim has a source.

    >>> from urbe.report.content import Section
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


def _order(source: str) -> tuple[tuple[bool, int, str], ...]:
    """A sort key that compares numbers as numbers: Fig. 2b, Fig. 3, Fig. 10."""
    pieces = ("".join(group) for _, group in groupby(source, str.isdigit))
    return tuple((piece.isdigit(), int(piece) if piece.isdigit() else 0, piece) for piece in pieces)
