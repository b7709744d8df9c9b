"""Quantities of the study of safe policies, from its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from urbe.paper.results import Results
from urbe.paper.safe_policies.cells import METHODS, NOMINAL
from urbe.statistics.estimates import Band, mean_band
from urbe.statistics.verdicts import Share
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Planned:
    """All planners on one model and kind of truth, over n lengths of the log.

    Attributes:
      transitions: `(n,)` increasing.
      data_sets: in each of them.
      guaranteed: `(data sets, n)` values for each method.
      value: means over the data sets with 95 % intervals, for each method.
      optimum: the same of the best policy for each truth.
      failures: in how many data sets, for each length, for each method.
    """

    model: str
    truth: str
    transitions: IntArray
    data_sets: int
    guaranteed: dict[str, FloatArray]
    value: dict[str, Band]
    optimum: Band
    failures: dict[str, list[Share]]

    def stated(self, name: str) -> Band:
        """Means of the guaranteed values with 95 % intervals."""
        return mean_band(self.guaranteed[name])


def planned(results: Results) -> list[Planned]:
    """One for each model and kind of truth, in the order of the rows."""
    return [_planned(model, truth, rows) for (model, truth), rows in results.groups("model", "truth")]


def _planned(model: str, truth: str, rows: Results) -> Planned:
    names = [name for name in (*METHODS, NOMINAL) if name in rows.unique("method")]
    sets = len(rows.unique("data_set"))

    def table(name: str, field: str) -> FloatArray:
        """`(data sets, lengths)`."""
        return rows.where(method=name).pivot("data_set", "transitions", value=field)

    return Planned(
        model=model,
        truth=truth,
        transitions=np.array(sorted(rows.unique("transitions"))),
        data_sets=sets,
        guaranteed={name: table(name, "guaranteed") for name in names},
        value={name: mean_band(table(name, "value")) for name in names},
        optimum=mean_band(table(NOMINAL, "optimum")),
        failures={
            name: [Share(int(failed), sets, "data sets") for failed in table(name, "failed").sum(axis=0)]
            for name in names
        },
    )
