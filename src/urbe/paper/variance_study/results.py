"""The results of the study of variances: ratios to the true variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from urbe.paper.results import Results
from urbe.paper.variance_study.cells import FORMS, LAYERS
from urbe.statistics.verdicts import Share
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FormComparison:
    """One set and radius; arrays over all its rows.

    Attributes:
      observations, model: `(n,)` of each pair.
      ratio: for each form, `(n,)` what it says over the true variance.
      excess: `(n,)` the published local term over its published bound.
    """

    set: str
    radius: float
    observations: IntArray
    model: IntArray
    ratio: dict[str, FloatArray]
    excess: FloatArray


KNOWN = 1e-12
"""Pairs whose value varies by less, relative to the largest one squared, are left out: nature alone decides there."""


def comparisons(results: Results) -> list[FormComparison]:
    """One for each set and radius, in the order of the rows."""
    found = []
    for (name, radius), rows in results.groups("set", "radius"):
        truth = np.array(rows.column("truth"))
        keep = truth > KNOWN * (LAYERS**2)
        column = {
            field: np.array(rows.column(field))[keep] for field in (*FORMS, "observations", "model", "local", "limit")
        }
        ratio = {form: column[form] / truth[keep] for form in FORMS}
        excess = column["local"] / column["limit"]
        found.append(FormComparison(name, radius, column["observations"], column["model"], ratio, excess))
    return found


ENOUGH = 50
"""Observations of a row from which on the calibrated forms are held to their ranges."""


def share_above(table: Sequence[FormComparison], least: int = ENOUGH) -> Share:
    """Share of the pairs with at least so many observations whose local term exceeds its bound."""
    over = np.concatenate([each.excess[each.observations >= least] > 1.0 for each in table])
    return Share(int(over.sum()), len(over), "pairs")
