"""Figures, captions and tables of the comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from urbe import checks
from urbe.paper.models import MODELS
from urbe.paper.results import Results
from urbe.paper.table_one import EACH, HELD_OUT, SIZES, WORLDS
from urbe.paper.table_one.results import COLUMNS, LARGEST, VALUES, Measured, measured, scaling, verdicts
from urbe.paper.table_one.systems import CONDITIONED, MOST_MOMENTS, PAPER, REFERENCE, SYSTEMS, Line
from urbe.report.claims import combine
from urbe.report.content import Exhibit, Section, Table, Verdict
from urbe.report.curves import draw_bands
from urbe.report.dots import ROW, draw_dots, rows_of
from urbe.report.figures import panels, styled
from urbe.report.numbers import interval_column, number, percent
from urbe.statistics.estimates import Band, ConfidenceInterval, mean_interval
from urbe.types import FloatArray

TITLES = {"nominal": "Nominal model", "held_out": "Held-out models", "worst": "Worst case"}

PHASES = {"before": "before the change", "kept": "after, plan kept", "after": "after, still learning"}

LONG = "seven_states"

PLACES = 3
"""Decimals of shares and rewards in tables, at most."""

TIED = 1e-4
"""Scores that differ by less are equal: values are solved to a tolerance."""


def sections(results: Results) -> list[Section]:
    """The table, its verdicts, what systems gain, the models one by one, the change, and time."""
    found = measured(results)
    with styled():
        out = [*_summary(found), _numbers(found)]
        out += [_gains(found)] if any(len(x.gain["held_out"]) for x in found if x.name != REFERENCE) else []
        out += [_world(found, world) for world in WORLDS if any((world, "held_out") in x.score for x in found)]
        out += [_change(found)] if any(x.change for x in found) else []
        out += [_grid(results)] if len(results.where(kind="grid")) else []
        return out + ([_scale(found)] if any(x.seconds for x in found) else [])


def _summary(found: Sequence[Measured]) -> list[Section]:
    """The paper's table with what was measured beside it, and below it the verdict on each entry."""
    judged = verdicts(list(found))
    text = (
        "The paper's Table 1 ticks three properties for each of eight approaches. Here all systems plan from the same "
        "data. For each property the table has the measurement, then the paper's tick or cross with the verdict on it. "
        "A verdict is on the paper's entry, not on the property: a cross holds if the property is absent.",
    )
    head = ("approach", "gain", "mitigates", "revisions", "learns online", "states or growth", "scales")
    by_name = {each.name: each for each in found}
    lines = [line for line in PAPER if (line, COLUMNS[0]) in judged]
    table = Table(
        "The paper's Table 1 by measurement",
        head,
        tuple(_line(line, [by_name[name] for name in line.systems if name in by_name], judged) for line in lines),
    )
    listed = tuple(verdict for verdicts_ in judged.values() for verdict in verdicts_)
    return [Section("Table 1", text, tables=(table,)), Section("Verdict on each entry", verdicts=listed)]


def _line(line: Line, there: Sequence[Measured], judged: dict[tuple[Line, str], list[Verdict]]) -> tuple[str, ...]:
    """A row of the table; numbers of several systems are separated by a slash, in their order."""
    said = [
        f"{'✓' if tick else '✗'} {_concluded(judged[line, column])}"
        for tick, column in zip(line.ticks, COLUMNS, strict=True)
    ]
    gain, _, revised, states, _, growth = zip(*map(_measures, there), strict=True)
    sized = [each.solved == LARGEST or each.rejected for each in there]
    time = [states[i] if by_size else growth[i] for i, by_size in enumerate(sized)]
    return (
        f"{' / '.join(each.name for each in there)}, {line.authors or 'this paper'}",
        *(" / ".join(gain), said[0]),
        *(" / ".join(revised), said[1]),
        *(" / ".join(time), said[2]),
    )


def _measures(each: Measured) -> tuple[str, ...]:
    """The gain, the share of stated values that were kept, revisions, the largest size in time, its time, growth."""
    gain = each.gain["held_out"]
    return (
        f"{gain.mean():+.3f}" if len(gain) else "-",
        "-" if np.isnan(each.kept) else f"{percent(each.kept)}",
        f"{each.change['revisions'].mean():.0f}" if each.change else "-",
        f"{each.solved:,}" if each.seconds else "-",
        f"{each.seconds[each.solved]:.2g}" if each.solved in each.seconds else "-",
        "-" if np.isnan(each.exponent) else f"n^{each.exponent:.1f}",
    )


def _concluded(found: list[Verdict]) -> str:
    """The verdict on an entry."""
    outcome, under = combine(found)
    return f"{outcome} under {len(under)} of {len(found)}" if under else outcome


def _numbers(found: Sequence[Measured]) -> Section:
    """The definitions, and the numbers of every system, also of those that are not in the paper's table."""
    text = (
        f"Data: {EACH} transitions of each pair. The reference is the classic robust MDP for these data: an L1 ball of "
        "Hoeffding's radius around each pair. Gains over it are shares of the way from the uniform policy to the best "
        "one under the true model, averaged over the models.",
        "A system mitigates conservativeness under one definition if its policy earns more under held-out posterior "
        "models than that of the reference, and under the other if its stated worst case is higher. Neither measures "
        "safety. The nominal policy, which is not robust at all, shows how much there is to gain; the share of plans "
        "whose true value was at least the stated one shows whether a higher stated value can be trusted.",
        "A system learns online if its plan changes after the dynamics have changed and, for a tick, if the change "
        "pays. Revisions count the episodes after the change whose reward learning changes. A planner that is run once "
        "cannot revise; any of them could be run again.",
        f"A system scales if it {scaling(_limit(found))}. Models of growing size are tables of states; the paper's "
        "deep agents have chapters of their own.",
        "One line of the paper may be represented by two systems: BCI and RSVF are both Petrik and Russel's, so that "
        "each is an assumption on what the line means. Policy-conditioned sets are made for trajectories of a known "
        "policy. Here their moments are those of the uniform policy in the model of the batch, one for every "
        f"transition. Models of more than {MOST_MOMENTS:,} transitions, which only the measurements of time have, "
        "share moments, and so do the cells of the grid below, on which their policy and their own worst case are "
        "tested as well.",
    )
    head = ("system", "gain", "stated value kept", "revisions", "states in time", "seconds", "growth")
    rows = tuple((each.name, *_measures(each)) for each in found)
    facts = (
        (
            "Replicates",
            f"{_batches(found)} batches of data for each model, {_lives(found)} lives in the changing environment",
        ),
        ("Intervals", "95 %: Student's for means over batches or lives"),
        (
            "Times",
            "processor time of one core on the machine of the run: the only numbers here that change from run to run",
        ),
        ("Held-out models", f"{HELD_OUT} draws from the posterior of each batch, the same for all systems"),
    )
    return Section(
        "Definitions, and the numbers of all systems", text, tables=(Table("Measured", head, rows),), facts=facts
    )


def _limit(found: Sequence[Measured]) -> float:
    return max((each.limit for each in found if each.seconds), default=np.nan)


def _gains(found: Sequence[Measured]) -> Section:
    names = [each.name for each in found if each.name != REFERENCE and len(each.gain["held_out"])]
    by_name = {each.name: each for each in found}
    columns = {metric: [_interval(by_name[name].gain[metric]) for name in names] for metric in ("held_out", "stated")}
    figure, axes = panels(1, 2, height=ROW * (rows_of(len(names)) + 1.0), left=1.45, right=0.25)
    titles = ("Gain in return, held-out models", "Gain in the stated worst case")
    for panel, title, intervals in zip(axes[0], titles, columns.values(), strict=True):
        draw_dots(panel, names, {"": intervals})
        panel.axvline(0.0, color="0.5", linewidth=0.8)
        panel.set_title(title)
        panel.set_xlabel("share of the way from uniform to best")
    order = sorted(names, key=lambda name: float(by_name[name].gain["held_out"].mean()))
    worst, best = order[0], order[-1]
    sentence = (
        f"Under held-out models the largest gain is that of {best} ({by_name[best].gain['held_out'].mean():+.3f}), the "
        f"smallest that of {worst} ({by_name[worst].gain['held_out'].mean():+.3f})."
    )
    rows = tuple(
        (name, *cells)
        for name, *cells in zip(names, *(interval_column(x, PLACES) for x in columns.values()), strict=True)
    )
    exhibit = Exhibit(
        "gains",
        figure,
        f"Dots with intervals: the gain of each system over the rectangular set. {sentence}",
        f"Gain of each system over the rectangular set for the same data, mean over models and batches. {sentence} "
        "Systems without a dot on the right state no worst case.",
        (Table("Gains over the rectangular set", ("system", "held-out return", "stated worst case"), rows),),
    )
    return Section("Gains over rectangular sets", exhibits=(exhibit,))


def _world(found: Sequence[Measured], world: str) -> Section:
    there = [each for each in found if (world, "held_out") in each.score]
    names = [each.name for each in there]
    figure, axes = panels(1, 3, height=ROW * (rows_of(len(names)) + 1.0), left=1.35, right=0.15)
    columns = {metric: [_interval(each.score[world, metric]) for each in there] for metric in VALUES}
    for panel, (metric, intervals) in zip(axes[0], columns.items(), strict=True):
        draw_dots(panel, names, {"": intervals})
        panel.set_title(TITLES[metric])
        panel.set_xlabel("0: uniform, 1: best")
    best, safest = (_best(there, world, metric) for metric in ("held_out", "worst"))
    refused = [each.name for each in found if each.name not in names and each.gain]
    sentence = f"The highest value under held-out models is that of {best}; in the worst case, that of {safest}."
    if refused:
        sentence += f" This model is refused by: {', '.join(refused)}."
    shown = (*VALUES, "held_low", "true", "stated")
    head = ("system", "nominal", "held-out", "worst case", "held-out, 10 % quantile", "true model", "stated")
    cells = [interval_column([_interval(each.score[world, metric]) for each in there], PLACES) for metric in shown]
    exhibit = Exhibit(
        f"{world}-values",
        figure,
        f"Dots with intervals for {_title(world)}: the value of each system's policy. {sentence}",
        "Value of each policy from the start, on a scale on which the uniform policy has 0 and the best policy 1 under "
        f"the true model. The worst case is that of the reference set for all systems. {sentence}",
        (Table(f"Values, {_title(world)}", head, tuple(zip(names, *cells, strict=True))),),
    )
    return Section(_title(world), exhibits=(exhibit,))


def _best(there: Sequence[Measured], world: str, metric: str) -> str:
    """The systems with the highest mean score, up to rounding, by name."""
    scores = {each.name: float(each.score[world, metric].mean()) for each in there}
    return checks.listing([name for name, score in scores.items() if score >= max(scores.values()) - TIED])


def _change(found: Sequence[Measured]) -> Section:
    there = [each for each in found if each.change]
    names = [each.name for each in there]
    figure, axes = panels(1, 3, height=ROW * (rows_of(len(names)) + 1.0), left=1.35, right=0.15)
    columns = {metric: [_interval(each.change[metric]) for each in there] for metric in PHASES}
    for panel, (metric, intervals) in zip(axes[0], columns.items(), strict=True):
        draw_dots(panel, names, {"": intervals})
        panel.set_title(PHASES[metric].capitalize())
        panel.set_xlabel("reward of an episode")
    learners = [each for each in there if SYSTEMS[each.name].agent is not None]
    sentence = " ".join(
        f"{each.name} earns {number(float(each.change['after'].mean()), 3)} per episode after the change, and would "
        f"have earned {number(float(each.change['kept'].mean()), 3)} with the plan that it had before."
        for each in learners
    )
    cells = [interval_column(intervals, PLACES) for intervals in columns.values()]
    text = (
        "The seven states offer a safe reward of .14 or a gamble for 1, which succeeds with probability .8, and from "
        "episode 300 on with .1. Planners plan once, from ten transitions of each pair before the change, so both "
        "panels on the right show the same for them. Learners forget with factor .98; each is compared with a copy of "
        "itself that stops learning at the change."
    )
    exhibit = Exhibit(
        "change",
        figure,
        f"Dots with intervals: reward of an episode before and after the change. {sentence}",
        "Mean reward of an episode: exact for planners; for learners, over the last hundred episodes of each phase. "
        f"{sentence}",
        (Table("Reward of an episode", ("system", *PHASES.values()), tuple(zip(names, *cells, strict=True))),),
    )
    return Section("Seven states with a change", (text,), (exhibit,))


def _grid(results: Results) -> Section:
    rows = results.where(kind="grid")
    sizes = [int(n) for n in sorted(rows.unique("at"))]

    def loss(system: str, metric: str, size: int) -> FloatArray:
        """Losses against the best return, as shares of it, of all logs."""
        there = rows.where(system=system, at=size)
        best = there.where(metric="optimum").pivot("replicate")
        return there.where(metric=metric).pivot("replicate") / best - 1.0

    lines = {
        "policy-conditioned, true grid": (CONDITIONED, "true"),
        "rectangular, true grid": (REFERENCE, "true"),
        "policy-conditioned, worst case": (CONDITIONED, "own"),
        "rectangular, worst case": (REFERENCE, "own"),
    }
    means = {name: np.array([loss(*key, n).mean() for n in sizes]) for name, key in lines.items()}
    figure, axes = panels(1, 1, height=3.4, right=2.3)
    axes[0][0].set_xlabel("cells on a side")
    axes[0][0].set_ylabel("loss, share of the best return")
    if len(sizes) > 1:
        axes[0][0].set_xticks(sizes)
        draw_bands(axes[0][0], np.array(sizes, dtype=float), {name: Band(x, x, x) for name, x in means.items()})
    (mine, its_own, rough) = (means[name][-1] for name in list(lines)[:3])
    sentence = (
        f"On the largest grid the policy-conditioned plan loses {percent(mine, 1)} of the best return, and the "
        f"rectangular one {percent(its_own, 1)}; in the worst case over its own set the former loses "
        f"{percent(rough)}."
    )
    cells = [interval_column([_interval(loss(*key, n)) for n in sizes], PLACES) for key in lines.values()]
    text = (
        "An agent has 2N steps to cross an N x N grid from corner to corner. Each step costs the distance to the goal, "
        "and moves slip with probability .3. The log has 50 trajectories of the uniform policy. Policy-conditioned "
        "sets constrain how often each action leads in each direction, regardless of the cell; rectangular sets have a "
        "credible ball for each pair."
    )
    exhibit = Exhibit(
        "grid",
        figure,
        f"Lines: mean loss against the best policy of the true grid, by size. {sentence}",
        "Loss against the best policy of the true grid: in the true grid, and in the worst case over each system's own "
        f"set. {sentence}",
        (Table("Losses on the grid", ("cells on a side", *lines), tuple(zip(map(str, sizes), *cells, strict=True))),),
    )
    return Section("A grid from trajectories", (text,), (exhibit,))


def _scale(found: Sequence[Measured]) -> Section:
    there = [each for each in found if each.seconds]
    figure, limit = _scale_figure(there), _limit(found)
    most = [each.name for each in there if each.solved == LARGEST]
    sentence = f"Systems that plan for {LARGEST:,} states in time: {', '.join(most) if most else 'none'}."
    short = [f"{each.name} ({each.solved:,}, {_measures(each)[-1]})" for each in there if each.solved < LARGEST]
    if short:
        sentence += f" The largest sizes of the others, and their growth: {', '.join(short)}."
    rows = tuple(
        (each.name, *(f"{each.seconds[n]:.2g}" if n in each.seconds else "-" for n in SIZES), f"{each.exponent:.2f}")
        for each in there
    )
    exhibit = Exhibit(
        "scale",
        figure,
        f"Lines, both axes logarithmic: seconds to a plan against the number of states. {sentence}",
        "Processor time of a plan for sparse random models (4 actions, 5 successors, 20 transitions of each pair, "
        f"discount .9), the least of three if they are short. A system scales if it {scaling(limit)}. Sizes grow until "
        f"a plan takes more than {limit:g} s, or until the next would take twice as long at the growth measured "
        f"between the last two. {sentence}",
        (
            Table(
                "Seconds to a plan, by number of states",
                ("system", *(f"{n:,}" for n in SIZES), "growth exponent"),
                rows,
            ),
        ),
    )
    return Section("Time", exhibits=(exhibit,))


def _scale_figure(there: Sequence[Measured]) -> Figure:
    figure, axes = panels(1, 1, height=4.2, right=1.6)
    panel = axes[0][0]
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("states")
    panel.set_ylabel("seconds")
    bands = {}
    for each in there:
        line = np.array([each.seconds.get(n, np.nan) for n in SIZES])
        bands[each.name] = Band(line, line, line)
    draw_bands(panel, np.array(SIZES, dtype=float), bands)
    return figure


def _interval(samples: FloatArray) -> ConfidenceInterval | None:
    """The interval of the mean; None with fewer than two samples, or if one is missing."""
    if len(samples) < 2 or not np.isfinite(samples).all():
        return None
    return mean_interval(samples)


def _title(world: str) -> str:
    return "Seven states" if world == LONG else MODELS[world].title


def _batches(found: Sequence[Measured]) -> int:
    return max((len(each.gain["held_out"]) for each in found), default=0)


def _lives(found: Sequence[Measured]) -> int:
    return max((len(each.change["after"]) for each in found if each.change), default=0)
