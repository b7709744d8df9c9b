"""Quantities of the seven-state comparison, from its rows."""

from __future__ import annotations

import numpy as np

from urbe.paper.results import Results
from urbe.paper.seven_states.cells import ODDS, SCHEDULES
from urbe.statistics.estimates import Band
from urbe.types import FloatArray

NO_BELIEF = "none"


def select(results: Results, belief: str, agent: str) -> Results:
    """One agent with a belief; those that hold none are found under every belief."""
    return results.where(agent=agent, belief=(belief, NO_BELIEF))


def phases(cell: Results) -> FloatArray:
    """`(seeds, phases)` mean reward per episode."""
    return cell.where(metric="phase").pivot("seed", "at")


def total(cell: Results) -> FloatArray:
    """`(seeds,)` four times the mean reward per episode."""
    weights = SCHEDULES[cell.one("schedule")]
    summed: FloatArray = np.average(phases(cell), axis=1, weights=weights) * len(ODDS)
    return summed


def curve(cell: Results) -> tuple[FloatArray, Band]:
    """Episodes, and the cumulated reward there: mean, and 10th to 90th percentile of the seeds."""
    lines = [cell.where(metric=metric).pivot("at") for metric in ("mean", "low", "high")]
    return np.array(sorted(cell.where(metric="mean").unique("at")), dtype=np.float64), Band(*lines)


def setting(cell: Results) -> str:
    """The parameters chosen on the tuning seeds."""
    return str(cell.where(metric="phase").one("setting"))


def best(results: Results) -> Results:
    """The cell with the highest mean total."""
    return max((cell for _, cell in results.groups("agent", "belief")), key=lambda cell: float(total(cell).mean()))


def beliefs_of(results: Results) -> list[str]:
    """The beliefs there are."""
    return [belief for belief in results.unique("belief") if belief != NO_BELIEF]


def learners(results: Results) -> list[str]:
    """The agents that hold a belief."""
    return list(results.where(belief=beliefs_of(results)).unique("agent"))
