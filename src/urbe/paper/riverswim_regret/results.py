"""Quantities of the RiverSwim comparison, from its rows."""

from __future__ import annotations

import numpy as np

from urbe.paper.results import Results
from urbe.statistics.estimates import ConfidenceInterval, mean_interval
from urbe.types import FloatArray


def episodes(results: Results) -> FloatArray:
    """`(points,)` where the regret is known."""
    return np.array(sorted(results.unique("episode")), dtype=np.float64)


def regret(curve: Results) -> FloatArray:
    """`(seeds, points)` the regret of one agent."""
    return curve.pivot("seed", "episode", value="regret")


def last(curve: Results) -> ConfidenceInterval:
    """The regret after all episodes, with its 95 % interval."""
    return mean_interval(regret(curve)[:, -1])
