"""The results of the seven-state comparison, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from urbe.paper.seven_states.cells import ODDS, SCHEDULES, Row
from urbe.statistics.estimates import Band
from urbe.types import FloatArray


class Result(NamedTuple):
    """One cell, read back.

    Attributes:
      setting: the parameters chosen on the tuning seeds.
      phases: `(seeds, phases)` mean reward per episode.
      at: `(points,)` episodes; curve: the cumulated reward there, mean and 10th to 90th percentile of the seeds.
    """

    reading: str
    schedule: str
    belief: str
    agent: str
    setting: str
    phases: FloatArray
    at: FloatArray
    curve: Band

    @property
    def total(self) -> FloatArray:
        """`(seeds,)` four times the mean reward per episode."""
        out: FloatArray = np.average(self.phases, axis=1, weights=SCHEDULES[self.schedule]) * len(ODDS)
        return out


def analyse(rows: Sequence[Row]) -> list[Result]:
    """A `Result` for each cell, in the order of the cells."""
    results = []
    for (reading, schedule, belief, agent), group in groupby(rows, key=lambda row: row[:4]):
        cell = list(group)
        seen = [row for row in cell if row.metric == "phase"]
        at = [row.at for row in cell if row.metric == "mean"]
        curve = Band(*(np.array([row.value for row in cell if row.metric == m]) for m in ("mean", "low", "high")))
        phases = np.array([row.value for row in seen]).reshape(-1, len(ODDS))
        results.append(
            Result(reading, schedule, belief, agent, seen[0].setting, phases, np.array(at, dtype=np.float64), curve)
        )
    return results


def best(results: Sequence[Result]) -> Result:
    return max(results, key=lambda r: float(r.total.mean()))


def learners(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(r.agent for r in results if r.belief != "none"))


def beliefs_of(results: Sequence[Result]) -> list[str]:
    return [belief for belief in dict.fromkeys(r.belief for r in results) if belief != "none"]


def find(results: Sequence[Result], reading: str, schedule: str, belief: str, agent: str) -> Result:
    wanted = (reading, schedule, agent)
    return next(r for r in results if (r.reading, r.schedule, r.agent) == wanted and r.belief in (belief, "none"))
