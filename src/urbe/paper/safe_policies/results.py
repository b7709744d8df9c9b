"""The results of the study of safe policies: guarantees, true values and failures by planner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from urbe.paper.safe_policies.cells import METHODS, NOMINAL, Row
from urbe.statistics.estimates import Band, Interval, frequency_interval, mean_band, paired_difference
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Outcome:
    """All planners on one model and kind of truth, over n lengths of the log.

    Attributes:
      transitions: `(n,)` increasing.
      data_sets: in each of them.
      guaranteed, value: means over the data sets with 95 % intervals, for each method.
      optimum: the same of the best policy for each truth.
      failures: frequency for each length, with Wilson's 95 % interval, for each method.
      ahead: for neighbours in the order of `METHODS`, the mean difference of their guaranteed values at each length.
    """

    model: str
    truth: str
    transitions: IntArray
    data_sets: int
    guaranteed: dict[str, Band]
    value: dict[str, Band]
    optimum: Band
    failures: dict[str, list[Interval]]
    ahead: dict[tuple[str, str], list[Interval]]


def analyse(rows: Sequence[Row]) -> list[Outcome]:
    """One `Outcome` for each model and kind of truth, in the order in which they first appear."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.model, row.truth), []).append(row)
    return [_outcome(model, truth, each) for (model, truth), each in found.items()]


def _outcome(model: str, truth: str, rows: Sequence[Row]) -> Outcome:
    lengths = sorted({row.transitions for row in rows})
    sets = sorted({row.data_set for row in rows})
    names = [*METHODS, NOMINAL]
    place = {(row.method, row.data_set, row.transitions): row for row in rows}

    def table(name: str, field: str) -> FloatArray:
        """`(data sets, lengths)`."""
        return np.array([[getattr(place[name, k, n], field) for n in lengths] for k in sets], dtype=np.float64)

    guaranteed = {name: table(name, "guaranteed") for name in names}
    failed = {name: table(name, "failed").sum(axis=0) for name in names}
    order = list(METHODS)
    return Outcome(
        model=model,
        truth=truth,
        transitions=np.array(lengths),
        data_sets=len(sets),
        guaranteed={name: mean_band(x) for name, x in guaranteed.items()},
        value={name: mean_band(table(name, "value")) for name in names},
        optimum=mean_band(table(NOMINAL, "optimum")),
        failures={name: [frequency_interval(int(k), len(sets)) for k in x] for name, x in failed.items()},
        ahead={
            (first, second): [
                paired_difference(guaranteed[first][:, i], guaranteed[second][:, i]) for i in range(len(lengths))
            ]
            for first, second in pairwise(order)
        },
    )
