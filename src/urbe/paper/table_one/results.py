"""The results of the comparison: the gains of each system on common tasks, and the verdicts on the paper's ticks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from urbe.paper.results import Results
from urbe.paper.table_one.systems import REFERENCE, SYSTEMS
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.statistics.verdicts import ExactNumber, Mean, Question, Test
from urbe.types import FloatArray

SOURCE = "Table 1"

LARGEST = 10_000
"""Number of states for which a system that scales must plan."""

VALUES = ("nominal", "held_out", "worst")

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
      change: by metric, `(lives,)`; empty if the system rejects the seven states.
      seconds: by number of states, the least of the repeats.
      solved: the largest number of states within the limit.
    """

    name: str
    score: dict[tuple[str, str], FloatArray]
    gain: dict[str, FloatArray]
    change: dict[str, FloatArray]
    seconds: dict[int, float]
    solved: int

    @property
    def kept(self) -> float:
        """The share of plans whose true value is at least the stated one; NaN if none is stated."""
        worlds = {world for world, _ in self.score}
        held = [self.score[world, "true"] >= self.score[world, "stated"] - 1e-6 for world in sorted(worlds)]
        return float(np.mean(held)) if held and len(self.gain["stated"]) else np.nan

    @property
    def exponent(self) -> float:
        """The exponent of the growth of time with the number of states, over the three largest; NaN with fewer."""
        sizes = sorted(self.seconds)[-3:]
        if len(sizes) < 3:
            return np.nan
        return float(np.log(self.seconds[sizes[2]] / self.seconds[sizes[0]]) / np.log(sizes[2] / sizes[0]))


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
    solved = times.where(metric="solved").column("value")
    return Measured(
        name,
        score,
        {metric: np.mean(found, axis=0) if found else np.zeros(0) for metric, found in gains.items()},
        {} if change.get("refused", np.zeros(1)).any() else change,
        seconds,
        int(solved[0]) if solved else 0,
    )


def _by_metric(rows: Results) -> dict[str, FloatArray]:
    """The values of all replicates, in order, by metric."""
    if not len(rows):
        return {}
    return {metric: rows.where(metric=metric).pivot("replicate") for metric in rows.unique("metric")}


def verdicts(found: list[Measured]) -> dict[tuple[str, str], list[Verdict]]:
    """The verdicts on the paper's ticks and crosses under each definition, by system and column."""
    out: dict[tuple[str, str], list[Verdict]] = {}
    for each in found:
        system = SYSTEMS[each.name]
        if system.ticks is None:
            continue
        _, online, scales = system.ticks
        line = each.name[0].upper() + each.name[1:]
        line += f" ({system.source})" if system.source != each.name else ""
        out[each.name, "mitigates"] = judge(
            f"{line} mitigates the conservativeness of robust MDPs.", _mitigates(each), source=SOURCE
        )
        does = "learns" if online else "does not learn"
        out[each.name, "online"] = judge(
            f"{line} {does} its uncertainty set online.", [_online(each, online)], source=SOURCE
        )
        out[each.name, "scales"] = judge(
            f"{line} {'scales' if scales else 'does not scale'}.", [_scales(each, scales)], source=SOURCE
        )
    return out


def _mitigates(each: Measured) -> list[Test]:
    """Tests by the return of the policy, and by the stated worst-case value."""
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
    return tests


def _online(each: Measured, ticked: bool) -> Test:
    if not each.change:
        return Test([], note="It rejects the seven states, because their rewards depend on the successor.")
    revised = ExactNumber(float(each.change["revisions"].mean()))
    words = "The mean number of episodes after the change whose reward learning changes"
    if not ticked:
        return Test([Question(words, revised, 0.5, "below")])
    gain = Mean(each.change["after"] - each.change["kept"], of="lives")
    return Test([Question(words, revised), Question("The gain per episode from learning after the change", gain)])


def _scales(each: Measured, ticked: bool) -> Test:
    if not each.solved:
        return Test([])
    words = f"The largest number of states, up to {LARGEST}, for which it plans within the limit"
    return Test([Question(words, ExactNumber(float(each.solved)), LARGEST - 0.5, "above" if ticked else "below")])
