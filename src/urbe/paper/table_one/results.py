"""The results of the comparison: the gains of each system on common tasks, and the verdicts on the paper's ticks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from urbe.paper.results import Results
from urbe.paper.table_one.systems import PAPER, REFERENCE, SYSTEMS, Line
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.statistics.verdicts import ExactNumber, Mean, Question, Test
from urbe.types import FloatArray

SOURCE = "Table 1"

LARGEST, GROWTH = 10_000, 1.5
"""A system scales if it plans for this many states within the limit, or if its time grows at most with this exponent.

Times of the nominal solve grow about as n^1.4 for 100,000 states and more.
"""

VALUES = ("nominal", "held_out", "worst")

GRID_VALUES = {
    "true": ("a definition by the return on the grid", "Mean gain in true return over rectangular sets"),
    "own": ("a definition by the worst case on the grid", "Mean gain of the worst case over that of rectangular sets"),
}
"""By metric of the grid, the assumption and the quantity."""

COLUMNS = ("mitigates", "online", "scales")
"""The columns of the paper's table, in its order."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The results of one system.

    Attributes:
      name: key of `SYSTEMS`.
      score: by world and metric, `(batches,)` shares of the way from the uniform policy to the best one under the true
        model; a metric is missing if the system rejects the world.
      gain: by "held_out" and "stated", `(batches,)` gain over the reference, in such shares, as a mean over the worlds
        that the system accepts; empty if no value is stated.
      grid: by "true" and "own", `(logs,)` gain over the reference on the grid, as a share of the best return and a mean
        over the sizes; empty for systems without shared moments.
      change: by metric, `(lives,)`; empty if the system rejects the seven states.
      seconds: by number of states, the least of the repeats.
      solved: the largest number of states within the limit.
      limit: on the processor time of a plan, in seconds.
      rejected: whether it rejects the next size.
    """

    name: str
    score: dict[tuple[str, str], FloatArray]
    gain: dict[str, FloatArray]
    grid: dict[str, FloatArray]
    change: dict[str, FloatArray]
    seconds: dict[int, float]
    solved: int
    limit: float
    rejected: bool

    @property
    def kept(self) -> float:
        """The share of plans whose true value is at least the stated one; NaN if none is stated."""
        worlds = {world for world, _ in self.score}
        held = [self.score[world, "true"] >= self.score[world, "stated"] - 1e-6 for world in sorted(worlds)]
        return float(np.mean(held)) if held and len(self.gain["stated"]) else np.nan

    @property
    def exponent(self) -> float:
        """The steepest exponent of the growth of time between the three largest sizes; NaN with fewer."""
        sizes = sorted(self.seconds)[-3:]
        if len(sizes) < 3:
            return np.nan
        times = [self.seconds[n] for n in sizes]
        return float((np.diff(np.log(times)) / np.diff(np.log(sizes))).max())


def measured(results: Results) -> list[Measured]:
    """Returns the results of each system, in the order of `SYSTEMS`."""
    plans = results.where(kind="plans")
    worlds = plans.unique("world") if len(plans) else []
    return [_measured(results, name, worlds) for name in SYSTEMS if name in results.unique("system")]


def _measured(results: Results, name: str, worlds: list[str]) -> Measured:
    score: dict[tuple[str, str], FloatArray] = {}
    gains: dict[str, list[FloatArray]] = {"held_out": [], "stated": []}
    for world in worlds:
        there = results.where(kind="plans", world=world)
        mine, other = _by_metric(there.where(system=name)), _by_metric(there.where(system=REFERENCE))
        if mine.get("refused", np.ones(1)).any():
            continue
        low, range_ = mine["uniform"], mine["optimum"] - mine["uniform"]
        for metric in (*VALUES, "held_low", "true", "stated"):
            score[world, metric] = (mine[metric] - low) / range_
        for metric, found in gains.items():
            gain = (mine[metric] - other[metric]) / range_
            if np.isfinite(gain).all():
                found.append(gain)
    change = _by_metric(results.where(kind="change", system=name))
    times = results.where(kind="scale", system=name)
    seconds = {
        int(at): min(times.where(metric="seconds", at=at).column("value"))
        for at in sorted(times.where(metric="seconds").unique("at"))
    }
    facts = {metric: times.where(metric=metric).column("value") for metric in ("solved", "limit", "rejected")}
    return Measured(
        name,
        score,
        {metric: np.mean(found, axis=0) if found else np.zeros(0) for metric, found in gains.items()},
        _grid_gain(results.where(kind="grid"), name),
        {} if change.get("refused", np.zeros(1)).any() else change,
        seconds,
        int(facts["solved"][0]) if facts["solved"] else 0,
        facts["limit"][0] if facts["limit"] else np.nan,
        facts["rejected"] == [1.0],
    )


def _grid_gain(grid: Results, name: str) -> dict[str, FloatArray]:
    """See `Measured.grid`."""
    if name == REFERENCE or not len(grid) or name not in grid.unique("system"):
        return {}
    mine, other = grid.where(system=name), grid.where(system=REFERENCE)
    best = np.abs(mine.where(metric="optimum").pivot("at", "replicate"))
    each = {metric: [x.where(metric=metric).pivot("at", "replicate") for x in (mine, other)] for metric in GRID_VALUES}
    return {metric: ((a - b) / best).mean(axis=0) for metric, (a, b) in each.items()}


def _by_metric(rows: Results) -> dict[str, FloatArray]:
    """The values of all replicates, in order, by metric."""
    if not len(rows):
        return {}
    return {metric: rows.where(metric=metric).pivot("replicate") for metric in rows.unique("metric")}


def scaling(limit: float) -> str:
    """The definition of a system that scales, as the end of a sentence.

    Args:
      limit: on the processor time of a plan, in seconds.
    """
    return (
        f"plans for {LARGEST:,} states within {limit:g} s of processor time, or if it rejects no size and its time "
        f"grows more slowly than n^{GROWTH:g} between the three largest sizes that it was given, at the steepest"
    )


def verdicts(found: list[Measured]) -> dict[tuple[Line, str], list[Verdict]]:
    """The verdicts on each entry of the paper's table, a tick or a cross, by line and column.

    Each definition is an assumption, and so is each system if a line has several.
    """
    out: dict[tuple[Line, str], list[Verdict]] = {}
    by_name = {each.name: each for each in found}
    for line in PAPER:
        there = [by_name[name] for name in line.systems if name in by_name]
        if not there:
            continue
        _, online, scales = line.ticks
        entries = {
            "mitigates": ("mitigates the conservativeness of robust MDPs", [_mitigates(each) for each in there]),
            "online": (
                f"{'learns' if online else 'does not learn'} its uncertainty set online",
                [[_online(each, online)] for each in there],
            ),
            "scales": ("scales" if scales else "does not scale", [[_scales(each, scales)] for each in there]),
        }
        for column, (words, tests) in entries.items():
            named = [_under(test, each, line) for each, own in zip(there, tests, strict=True) for test in own]
            out[line, column] = judge(f"{line.name} {words}.", named, source=SOURCE)
    return out


def _under(test: Test, each: Measured, line: Line) -> Test:
    """The test with the system among its assumptions, if the line has several."""
    if len(line.systems) == 1:
        return test
    return replace(test, reading=" and ".join(filter(None, (f"the choice of {each.name}", test.reading))))


def _mitigates(each: Measured) -> list[Test]:
    """Tests by the return of the policy, by the stated worst-case value, and on the grid."""
    wanted = {
        "held_out": ("a definition by the return under held-out models", "Mean gain over the rectangular set"),
        "stated": (
            "a definition by the stated worst case",
            "Mean gain of the stated value over that of the rectangular set",
        ),
    }
    tests = []
    for metric, (reading, words) in wanted.items():
        if len(each.gain[metric]):
            tests.append(Test([Question(words, Mean(each.gain[metric], of="batches"))], reading=reading))
        else:
            tests.append(Test([], reading=reading, note="No worst-case value is stated."))
    return tests + [
        Test([Question(words, Mean(each.grid[metric], of="logs"))], reading=reading)
        for metric, (reading, words) in GRID_VALUES.items()
        if metric in each.grid
    ]


def _online(each: Measured, ticked: bool) -> Test:
    if not each.change:
        return Test([], note="It rejects the seven states.")
    revised = ExactNumber(float(each.change["revisions"].mean()))
    words = "The mean number of episodes after the change whose reward learning changes"
    if not ticked:
        return Test([Question(words, revised, 0.5, "below")])
    gain = Mean(each.change["after"] - each.change["kept"], of="lives")
    return Test([Question(words, revised), Question("The gain per episode from learning after the change", gain)])


def _scales(each: Measured, ticked: bool) -> Test:
    """A test by size if that decides: if the largest model was planned, or a size was rejected; else by growth."""
    if not each.seconds:
        return Test([])
    size = f"The largest number of states, up to {LARGEST:,}, planned within {each.limit:g} s of processor time"
    note = f"A system scales if it {scaling(each.limit)}."
    if each.solved == LARGEST or each.rejected:
        solved = ExactNumber(float(each.solved))
        asked = Question(size, solved, LARGEST - 1) if ticked else Question(size, solved, LARGEST, "below")
        return Test([asked], note=f"It rejects the next size. {note}" if each.rejected else note)
    sizes = sorted(each.seconds)[-3:]
    grows = Question(
        f"The steepest exponent of its time from {sizes[0]:,} to {sizes[-1]:,} states",
        ExactNumber(each.exponent),
        GROWTH,
        "below" if ticked else "above",
    )
    return Test([grows], note=f"{size} is {each.solved:,}. {note}")
