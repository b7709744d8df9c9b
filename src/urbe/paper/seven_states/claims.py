"""The claims about the seven states and their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from urbe.paper.seven_states.cells import ODDS, SCHEDULES
from urbe.paper.seven_states.results import Result, beliefs_of, best, find
from urbe.report.content import Outcome, Verdict
from urbe.report.numbers import decide, decimals, interval_text
from urbe.statistics.estimates import mean_interval, paired_difference

WANTED = 1.90
"""The total that calibrated URBE should reach on the paper's schedule, in the direct reading."""


OURS = "calibrated URBE"


def verdicts(results: Sequence[Result]) -> list[Verdict]:
    """On the paper's claims, then on ours."""
    worlds = dict.fromkeys((r.reading, r.schedule) for r in results)
    return [
        *_claim("URBE earns more than UBE.", [*_pairs(results, "UBE"), *(_best_pair(results, *w) for w in worlds)]),
        *_claim("URBE earns more than the robust policy.", _pairs(results, "robust")),
        *(_adverse(results, belief) for belief in beliefs_of(results)),
        *(_reached(results, belief) for belief in beliefs_of(results)),
        *(_among_the_best(results, schedule) for schedule in SCHEDULES),
    ]


class _Pair(NamedTuple):
    """URBE and another, under a reading of the paper's claim."""

    told: str
    ours: Result
    theirs: Result


def _pairs(results: Sequence[Result], other: str) -> list[_Pair]:
    """In every world, with every belief."""
    return [
        _Pair(f"{r.reading} reading, {r.schedule} schedule, {r.belief} belief", r, theirs)
        for r in results
        if r.agent == "URBE"
        for theirs in [find(results, r.reading, r.schedule, r.belief, other)]
    ]


def _best_pair(results: Sequence[Result], reading: str, schedule: str) -> _Pair:
    """Each with the belief that suits it."""
    here = [r for r in results if (r.reading, r.schedule) == (reading, schedule)]
    ours, theirs = (best([r for r in here if r.agent == agent]) for agent in ("URBE", "UBE"))
    return _Pair(f"{reading} reading, {schedule} schedule, each its best belief", ours, theirs)


def _claim(claim: str, pairs: Sequence[_Pair]) -> list[Verdict]:
    """A claim of the paper on its figure, under every reading; the intervals cover together at 95 %."""
    confidence = 1.0 - 0.05 / len(pairs)
    return [
        decide(
            claim,
            f"The difference of their totals ({_both(ours, theirs)}), {len(ours.phases)} seeds,",
            paired_difference(ours.total, theirs.total, confidence=confidence),
            source="Fig. 2b",
            reading=told,
        )
        for told, ours, theirs in pairs
    ]


def _adverse(results: Sequence[Result], belief: str) -> Verdict:
    ours, theirs = (find(results, "direct", "paper", belief, name) for name in ("URBE", "UBE"))
    adverse = [k for k, p in enumerate(ODDS) if p < 0.14]
    difference = paired_difference(ours.phases[:, adverse].sum(axis=1), theirs.phases[:, adverse].sum(axis=1))
    claim = f"URBE earns more than UBE in the phases where gambling does not pay: {belief} belief."
    return decide(claim, "The difference over those phases", difference)


def _reached(results: Sequence[Result], belief: str) -> Verdict:
    ours = find(results, "direct", "paper", belief, OURS)
    claim = f"{OURS[0].upper()}{OURS[1:]} reaches {WANTED:.2f} on fresh seeds: direct reading, {belief} belief."
    return decide(claim, "Its total", mean_interval(ours.total), above=WANTED)


def _among_the_best(results: Sequence[Result], schedule: str) -> Verdict:
    """Whether no other learner is better by more than the interval of the difference, whatever the belief of each."""
    here = [r for r in results if (r.reading, r.schedule) == ("direct", schedule) and r.agent != "oracle"]
    ours, other = best([r for r in here if r.agent == OURS]), best([r for r in here if r.agent != OURS])
    difference = paired_difference(ours.total, other.total)
    outcome: Outcome = "holds" if difference.high >= 0.0 else "does not hold"
    told = interval_text(difference, decimals([difference]))
    return Verdict(
        f"No other learner is better than {OURS} by more than the interval of their difference, each with its best "
        f"belief: direct reading, {schedule} schedule.",
        outcome,
        f"{OURS} ({ours.belief}) minus {other.agent} ({other.belief}) is {told}; totals {_both(ours, other)}.",
    )


def _both(first: Result, second: Result) -> str:
    return f"{np.mean(first.total):.3f} and {np.mean(second.total):.3f}"
