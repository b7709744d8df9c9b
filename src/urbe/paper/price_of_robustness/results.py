"""The results of the price of robustness: values and policies over the radius."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from urbe.paper.price_of_robustness.cells import Row
from urbe.types import FloatArray, IntArray

POLICIES = ("robust", "nominal")


@dataclass(frozen=True, eq=False)
class Curve:
    """The results of one model and set over n radii.

    Attributes:
      model, set: keys of `MODELS` and `SETS`.
      radius: `(n,)` increasing.
      worst: worst-case value of each policy, a certified lower bound, `(n,)` each.
      nominal: value of each policy under the nominal model, likewise.
      actions: `(n, S)` of each policy, -1 where terminal.
      gap: widest certified interval.
    """

    model: str
    set: str
    radius: FloatArray
    worst: dict[str, FloatArray]
    nominal: dict[str, FloatArray]
    actions: dict[str, IntArray]
    gap: float

    @property
    def price(self) -> FloatArray:
        """`(n,)` nominal value given up by the robust policy."""
        return self.nominal["nominal"] - self.nominal["robust"]

    @property
    def insurance(self) -> FloatArray:
        """`(n,)` worst-case value gained by the robust policy."""
        return self.worst["robust"] - self.worst["nominal"]

    @property
    def changed(self) -> IntArray:
        """`(n,)` number of states in which the two policies differ."""
        count: IntArray = np.count_nonzero(self.actions["robust"] != self.actions["nominal"], axis=1)
        return count


def analyse(rows: Sequence[Row]) -> list[Curve]:
    """One `Curve` for each model and set, in the order in which they first appear."""
    found: dict[tuple[str, str], dict[float, dict[str, dict[str, float]]]] = {}
    for row in rows:
        radii = found.setdefault((row.model, row.set), {})
        radii.setdefault(row.radius, {}).setdefault(row.policy, {})[row.metric] = row.value
    return [_curve(model, name, radii) for (model, name), radii in found.items()]


def _curve(model: str, name: str, radii: dict[float, dict[str, dict[str, float]]]) -> Curve:
    order = sorted(radii)
    n_states = sum(metric.startswith("action[") for metric in radii[order[0]]["robust"])

    def over_radii(metric: str) -> dict[str, FloatArray]:
        return {policy: np.array([radii[radius][policy][metric] for radius in order]) for policy in POLICIES}

    actions = {
        policy: np.array([[int(radii[r][policy][f"action[{s}]"]) for s in range(n_states)] for r in order])
        for policy in POLICIES
    }
    gap = max(radii[radius][policy]["gap"] for radius in order for policy in POLICIES)
    return Curve(model, name, np.array(order), over_radii("worst_lower"), over_radii("nominal_lower"), actions, gap)
