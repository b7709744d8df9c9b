"""Figures and tables of the seven-state comparison."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from urbe.paper.results import Results
from urbe.paper.seven_states import ODDS, SCHEDULES, TUNING_SEEDS
from urbe.paper.seven_states.results import (
    NO_BELIEF,
    beliefs_of,
    curve,
    learners,
    phases,
    select,
    setting,
    total,
    verdicts,
)
from urbe.report.content import Exhibit, Section, Table
from urbe.report.curves import draw_bands, mark_changes
from urbe.report.dots import ROW, draw_dots, rows_of
from urbe.report.figures import Figure, panels, styled
from urbe.report.numbers import interval_column
from urbe.statistics.estimates import Band, mean_interval


def sections(results: Results) -> list[Section]:
    """The verdicts, then one section for each reading and schedule."""
    with styled():
        worlds = results.groups("reading", "schedule")
        return [_opening(results), *(_world(here, *world) for world, here in worlds)]


def _opening(results: Results) -> Section:
    seeds = len(results.where(metric="phase").unique("seed"))
    odds = ", ".join(f"{p:g}" for p in ODDS)
    text = (
        "An agent chooses in state 0 between a safe reward of 0.14 and three gambles for a reward of 1, whose odds "
        f"jump between phases ({odds}). The paper's drawing can be read in two ways: in the direct model a failed "
        "gamble ends with nothing; in the chain model it falls through to the next. A total is four times the "
        "mean reward per episode: with four phases of equal length, the sum of the mean rewards in each. On the "
        "paper's schedule, in the direct model, it is 1.98 for an oracle and 0.56 for always playing safe.",
        "The parameters of every learner are chosen among at most twelve settings, including no exploration, on "
        f"{TUNING_SEEDS} tuning seeds (a quarter for all settings, the rest for the best quarter of them); it is "
        f"reported on {seeds} fresh ones. All share the prior, the belief about the dynamics and, seed by seed, the "
        "same environment; differences are paired by seed. Intervals in figures and tables are Student's, at 95 %.",
        "URBE plans against L1 balls, as in the paper. URBE (KL) and URBE (chi-square) differ from it only in "
        "the balls: to each radius psi among its settings correspond psi^2 / 2 and psi^2 among theirs, whose balls lie "
        "inside the L1 ball and are narrower for more certain transitions.",
    )
    facts = (("Replicates", f"{seeds} seeds for each agent, belief, model and schedule"),)
    return Section("Verdicts", text, verdicts=tuple(verdicts(results)), facts=facts)


def _world(here: Results, reading: str, schedule: str) -> Section:
    lengths = SCHEDULES[schedule]
    where = f"{reading} model, {schedule} schedule"
    curves = Exhibit(
        f"curves-{reading}-{schedule.replace(' ', '-')}",
        _curves(here, lengths),
        f"Cumulative reward of every agent over the episodes, one panel for each belief; {where}.",
        "Left, the cumulative reward; right, how far the learners are behind the oracle: mean, and the range between "
        "the 10th and the 90th percentile of the seeds. Vertical lines mark changes of the odds.",
    )
    fixed = here.where(belief=NO_BELIEF)
    dots = Exhibit(
        f"totals-{reading}-{schedule.replace(' ', '-')}",
        _totals(here),
        f"Total of every agent with every belief, with intervals; {where}.",
        "Four times the mean reward per episode, with 95 % intervals over the seeds. "
        + " ".join(f"{name.capitalize()}: {total(cell).mean():.2f}." for (name,), cell in fixed.groups("agent")),
        (_settings(here),),
    )
    odds = ", ".join(f"{p:g} for {n} episodes" for p, n in zip(ODDS, lengths, strict=True))
    return Section(
        f"{reading.capitalize()} model, {schedule} schedule",
        (f"Odds of the gamble: {odds}.",),
        (curves, dots),
        (_phases(here),),
    )


def _curves(here: Results, lengths: Sequence[int]) -> Figure:
    """For each belief the cumulative reward, and how far learners are behind the oracle, which distinguishes them."""
    beliefs = beliefs_of(here)
    episodes, oracle = curve(here.where(agent="oracle"))
    figure, axes = panels(len(beliefs), 2, height=2.9, right=1.6, top=0.75)
    for belief, (left, right) in zip(beliefs, axes, strict=True):
        reward = {agent: curve(select(here, belief, agent))[1] for agent in here.unique("agent")}
        behind = {
            agent: Band(oracle.estimate - band.estimate, oracle.estimate - band.high, oracle.estimate - band.low)
            for agent, band in reward.items()
            if agent in learners(here)
        }
        for panel, what, bands in ((left, "cumulative reward", reward), (right, "behind the oracle", behind)):
            panel.set_title(f"{belief} belief", pad=26.0)
            panel.set(xlabel="episode", ylabel=what)
            draw_bands(panel, episodes, bands)
            mark_changes(panel, [0, *accumulate(lengths[:-1])], [f"{p:g}" for p in ODDS])
    return figure


def _totals(here: Results) -> Figure:
    beliefs, agents = beliefs_of(here), learners(here)
    figure, axes = panels(height=ROW * (rows_of(len(agents), len(beliefs)) + 1), left=1.5, right=0.3, top=0.6)
    groups = {b: [mean_interval(total(select(here, b, agent))) for agent in agents] for b in beliefs}
    draw_dots(axes[0][0], agents, groups)
    axes[0][0].set_xlabel("four times the mean reward per episode")
    return figure


def _phases(here: Results) -> Table:
    cells = sorted(here.groups("agent", "belief"), key=lambda group: -float(total(group[1]).mean()))
    columns = [interval_column([mean_interval(total(cell)) for _, cell in cells])]
    columns += [
        interval_column([mean_interval(phases(cell)[:, k]) for _, cell in cells], most=3) for k in range(len(ODDS))
    ]
    head = ("agent", "belief", "total", *(f"odds {p:g}" for p in ODDS))
    rows = tuple((*names, *(column[i] for column in columns)) for i, (names, _) in enumerate(cells))
    return Table("Mean reward per episode in each phase, best total first", head, rows)


def _settings(here: Results) -> Table:
    rows = tuple((*names, setting(cell) or "nothing to choose") for names, cell in here.groups("agent", "belief"))
    return Table("Settings chosen on the tuning seeds", ("agent", "belief", "setting"), rows)
