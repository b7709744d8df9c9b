"""Verdicts, figures and tables of the seven-state comparison."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from urbe.experiments.seven_states import ODDS, SCHEDULES, TUNING_SEEDS, Result
from urbe.report.content import Exhibit, Outcome, Section, Table, Verdict
from urbe.report.curves import draw_bands, mark_changes
from urbe.report.dots import ROW, draw_dots, rows_of
from urbe.report.figures import Figure, styled
from urbe.report.numbers import decide, decimals, interval_column, interval_text
from urbe.report.panels import panels
from urbe.statistics.estimates import Band, Interval, mean_interval, paired_difference

WANTED = 1.90
"""The total that calibrated URBE should reach on the paper's schedule, in the direct reading."""

OURS = "calibrated URBE"


def sections(results: Sequence[Result]) -> list[Section]:
    """The verdicts, then one section for each reading and schedule."""
    worlds = dict.fromkeys((result.reading, result.schedule) for result in results)
    with styled():
        return [_verdicts(results), *(_world(results, *world) for world in worlds)]


def _verdicts(results: Sequence[Result]) -> Section:
    seeds = len(results[0].phases)
    odds = ", ".join(f"{p:g}" for p in ODDS)
    text = (
        "An agent chooses in state 0 between a safe reward of 0.14 and three gambles for a reward of 1, whose odds "
        f"jump between phases ({odds}). In the direct reading of the paper's drawing a failed gamble ends with "
        "nothing; in the chain reading it falls through to the next one. Below, a total is four times the mean reward "
        "per episode: with four phases of equal length, the sum of what an episode earns in each. On the paper's "
        "schedule, read directly, it is 1.98 for an oracle and 0.56 for always playing safe.",
        "Every learner has its parameters chosen among at most twelve settings, with no exploration among them, on "
        f"{TUNING_SEEDS} tuning seeds (a quarter for all settings, the rest for the best quarter of them), and is "
        f"reported on {seeds} fresh ones. All share the prior, the belief about the dynamics and, seed by seed, the "
        "same world; differences are paired by seed. Intervals are Student's, at 95 %; those of a claim of the paper "
        "cover together under all its readings at 95 % (Bonferroni).",
    )
    worlds = dict.fromkeys((r.reading, r.schedule) for r in results)
    verdicts = [
        *_claim("URBE earns more than UBE.", [*_pairs(results, "UBE"), *(_best_pair(results, *w) for w in worlds)]),
        *_claim("URBE earns more than the robust policy.", _pairs(results, "robust")),
        *(_adverse(results, belief) for belief in _beliefs(results)),
        *(_reached(results, belief) for belief in _beliefs(results)),
        *(_among_the_best(results, schedule) for schedule in SCHEDULES),
    ]
    facts = (("Replicates", f"{seeds} seeds for each agent, belief, reading and schedule"),)
    return Section("Verdicts", text, verdicts=tuple(verdicts), facts=facts)


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
        for theirs in [_find(results, r.reading, r.schedule, r.belief, other)]
    ]


def _best_pair(results: Sequence[Result], reading: str, schedule: str) -> _Pair:
    """Each with the belief that suits it."""
    here = [r for r in results if (r.reading, r.schedule) == (reading, schedule)]
    ours, theirs = (_best([r for r in here if r.agent == agent]) for agent in ("URBE", "UBE"))
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
    ours, theirs = (_find(results, "direct", "paper", belief, name) for name in ("URBE", "UBE"))
    adverse = [k for k, p in enumerate(ODDS) if p < 0.14]
    difference = paired_difference(ours.phases[:, adverse].sum(axis=1), theirs.phases[:, adverse].sum(axis=1))
    claim = f"URBE earns more than UBE in the phases where gambling does not pay: {belief} belief."
    return decide(claim, "The difference over those phases", difference)


def _reached(results: Sequence[Result], belief: str) -> Verdict:
    ours = _find(results, "direct", "paper", belief, OURS)
    claim = f"{OURS[0].upper()}{OURS[1:]} reaches {WANTED:.2f} on fresh seeds: direct reading, {belief} belief."
    return decide(claim, "Its total", mean_interval(ours.total), above=WANTED)


def _among_the_best(results: Sequence[Result], schedule: str) -> Verdict:
    """Whether no other learner is better by more than the interval of the difference, whatever the belief of each."""
    here = [r for r in results if (r.reading, r.schedule) == ("direct", schedule) and r.agent != "oracle"]
    ours, best = _best([r for r in here if r.agent == OURS]), _best([r for r in here if r.agent != OURS])
    difference = paired_difference(ours.total, best.total)
    outcome: Outcome = "holds" if difference.high >= 0.0 else "does not hold"
    told = interval_text(difference, decimals([difference]))
    return Verdict(
        f"No other learner is better than {OURS} by more than the interval of their difference, each with its best "
        f"belief: direct reading, {schedule} schedule.",
        outcome,
        f"{OURS} ({ours.belief}) minus {best.agent} ({best.belief}) is {told}; totals {_both(ours, best)}.",
    )


def _world(results: Sequence[Result], reading: str, schedule: str) -> Section:
    here = [r for r in results if (r.reading, r.schedule) == (reading, schedule)]
    lengths = SCHEDULES[schedule]
    told = f"{reading} reading, {schedule} schedule"
    curves = Exhibit(
        f"curves-{reading}-{schedule.replace(' ', '-')}",
        _curves(here, lengths),
        f"Cumulated reward of every agent over the episodes, one panel for each belief; {told}.",
        "Left, the cumulated reward; right, how far the learners are behind the oracle: mean, and the range between "
        "the 10th and the 90th percentile of the seeds. Rules mark where the odds of the gamble change.",
    )
    dots = Exhibit(
        f"totals-{reading}-{schedule.replace(' ', '-')}",
        _totals(here),
        f"Total of every agent with every belief, with intervals; {told}.",
        "Four times the mean reward per episode, with 95 % intervals over the seeds. "
        + " ".join(f"{r.agent.capitalize()}: {np.mean(r.total):.2f}." for r in here if r.belief == "none"),
        (_settings(here),),
    )
    phases = ", ".join(f"{p:g} for {n} episodes" for p, n in zip(ODDS, lengths, strict=True))
    return Section(
        f"{reading.capitalize()} reading, {schedule} schedule",
        (f"Odds of the gamble: {phases}.",),
        (curves, dots),
        (_phases(here),),
    )


def _curves(here: Sequence[Result], lengths: Sequence[int]) -> Figure:
    """For each belief the cumulated reward, and what learners are behind the oracle, where they can be told apart."""
    beliefs = _beliefs(here)
    oracle = next(r for r in here if r.agent == "oracle").curve.estimate
    figure, axes = panels(len(beliefs), 2, height=2.9, right=1.6, top=0.75)
    for belief, (left, right) in zip(beliefs, axes, strict=True):
        shown = [r for r in here if r.belief in (belief, "none")]
        behind = {
            r.agent: Band(oracle - r.curve.estimate, oracle - r.curve.high, oracle - r.curve.low)
            for r in shown
            if r.belief == belief
        }
        for panel, what, bands in (
            (left, "cumulated reward", {r.agent: r.curve for r in shown}),
            (right, "behind the oracle", behind),
        ):
            panel.set_title(f"{belief} belief", pad=26.0)
            panel.set_xlabel("episode")
            panel.set_ylabel(what)
            draw_bands(panel, shown[0].at, bands)
            mark_changes(panel, [0, *accumulate(lengths[:-1])], [f"{p:g}" for p in ODDS])
    return figure


def _totals(here: Sequence[Result]) -> Figure:
    beliefs, agents = _beliefs(here), _learners(here)
    figure, axes = panels(height=ROW * (rows_of(len(agents), len(beliefs)) + 1), left=1.5, right=0.3, top=0.6)
    groups = {belief: [_interval(here, belief, agent) for agent in agents] for belief in beliefs}
    draw_dots(axes[0][0], agents, groups)
    axes[0][0].set_xlabel("four times the mean reward per episode")
    return figure


def _interval(here: Sequence[Result], belief: str, agent: str) -> Interval:
    return mean_interval(next(r for r in here if r.agent == agent and r.belief in (belief, "none")).total)


def _phases(here: Sequence[Result]) -> Table:
    ordered = sorted(here, key=lambda r: -float(r.total.mean()))
    columns = [interval_column([mean_interval(r.total) for r in ordered])]
    columns += [interval_column([mean_interval(r.phases[:, k]) for r in ordered], most=3) for k in range(len(ODDS))]
    head = ("agent", "belief", "total", *(f"odds {p:g}" for p in ODDS))
    rows = tuple((r.agent, r.belief, *(column[i] for column in columns)) for i, r in enumerate(ordered))
    return Table("Mean reward per episode in each phase, best total first", head, rows)


def _settings(here: Sequence[Result]) -> Table:
    rows = tuple((r.agent, r.belief, r.setting or "nothing to choose") for r in here)
    return Table("Settings chosen on the tuning seeds", ("agent", "belief", "setting"), rows)


def _best(results: Sequence[Result]) -> Result:
    return max(results, key=lambda r: float(r.total.mean()))


def _learners(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(r.agent for r in results if r.belief != "none"))


def _beliefs(results: Sequence[Result]) -> list[str]:
    return [belief for belief in dict.fromkeys(r.belief for r in results) if belief != "none"]


def _find(results: Sequence[Result], reading: str, schedule: str, belief: str, agent: str) -> Result:
    wanted = (reading, schedule, agent)
    return next(r for r in results if (r.reading, r.schedule, r.agent) == wanted and r.belief in (belief, "none"))


def _both(first: Result, second: Result) -> str:
    return f"{np.mean(first.total):.3f} and {np.mean(second.total):.3f}"
