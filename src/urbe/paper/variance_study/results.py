"""The results of the study of variances: ratios to the true variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from urbe.paper.variance_study.cells import FORMS, LAYERS, Row
from urbe.statistics.estimates import Interval, frequency_interval
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Comparison:
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


def analyse(rows: Sequence[Row]) -> list[Comparison]:
    """One `Comparison` for each set and radius, in the order in which they first appear."""
    found: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        found.setdefault((row.set, row.radius), []).append(row)
    out = []
    for (name, radius), group in found.items():
        truth = np.array([row.truth for row in group])
        keep = truth > KNOWN * (LAYERS**2)
        column = {field: np.array([getattr(row, field) for row in group])[keep] for field in Row._fields[2:]}
        out.append(
            Comparison(
                name,
                radius,
                column["observations"],
                column["model"],
                {form: column[form] / truth[keep] for form in FORMS},
                column["local"] / column["limit"],
            )
        )
    return out


ENOUGH = 50
"""Observations of a row from which on the calibrated forms are held to their ranges."""


def share_above(table: Sequence[Comparison], least: int = ENOUGH) -> Interval:
    """Share of the pairs with at least so many observations whose local term exceeds its bound."""
    over = np.concatenate([each.excess[each.observations >= least] > 1.0 for each in table])
    return frequency_interval(int(over.sum()), len(over))
