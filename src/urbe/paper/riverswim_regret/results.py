"""The results of the RiverSwim comparison: a curve for each agent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from urbe.paper.riverswim_regret.cells import Row
from urbe.statistics.estimates import Band, mean_band
from urbe.types import FloatArray


class Curve(NamedTuple):
    """Regret of one agent.

    Attributes:
      setting: the parameters chosen on the tuning seeds.
      episode: `(points,)`.
      regret: `(seeds, points)`.
    """

    agent: str
    setting: str
    episode: FloatArray
    regret: FloatArray

    @property
    def band(self) -> Band:
        """Mean over the seeds, with 95 % intervals."""
        return mean_band(self.regret)


def analyse(rows: Sequence[Row]) -> list[Curve]:
    """One curve for each agent."""
    curves = []
    for (agent, setting), group in groupby(rows, key=lambda row: row[:2]):
        cell = list(group)
        episode = np.array(sorted({row.episode for row in cell}), dtype=np.float64)
        regret = np.array([row.regret for row in cell]).reshape(-1, len(episode))
        curves.append(Curve(agent, setting, episode, regret))
    return curves
