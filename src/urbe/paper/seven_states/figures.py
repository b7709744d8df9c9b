"""Figures and tables of the seven-state comparison."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from urbe.paper.seven_states.cells import ODDS, SCHEDULES, TUNING_SEEDS
from urbe.paper.seven_states.claims import verdicts
from urbe.paper.seven_states.results import Result, beliefs_of, learners
from urbe.report.content import Exhibit, Section, Table
from urbe.report.curves import draw_bands, mark_changes
from urbe.report.dots import ROW, draw_dots, rows_of
from urbe.report.figures import Figure, styled
from urbe.report.numbers import interval_column
from urbe.report.panels import panels
from urbe.statistics.estimates import Band, Interval, mean_interval


def sections(results: Sequence[Result]) -> list[Section]:
    """The verdicts, then one section for each reading and schedule."""
    worlds = dict.fromkeys((result.reading, result.schedule) for result in results)
    with styled():
        return [_opening(results), *(_world(results, *world) for world in worlds)]


def _opening(results: Sequence[Result]) -> Section:
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
    facts = (("Replicates", f"{seeds} seeds for each agent, belief, reading and schedule"),)
    return Section("Verdicts", text, verdicts=tuple(verdicts(results)), facts=facts)


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
    beliefs = beliefs_of(here)
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
    beliefs, agents = beliefs_of(here), learners(here)
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
