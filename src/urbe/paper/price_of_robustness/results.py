"""The results of the price of robustness: values and policies over the radius."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from urbe.paper.results import Results
from urbe.types import FloatArray, IntArray

POLICIES = ("robust", "nominal")


@dataclass(frozen=True, eq=False)
class Curve:
    """The results of one model and set over n radii.

    Attributes:
      model, set: keys of `MODELS` and `SETS`.
      radius: `(n,)` increasing.
      worst: worst-case value of each policy, a certified lower bound, `(n,)` each.
      nominal: value of each policy under the nominal model, also a certified lower bound, `(n,)` each.
      actions: `(n, S)` actions of each policy, -1 where terminal.
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


def curves(results: Results) -> list[Curve]:
    """Returns the results of each model and set, in the order of the rows."""
    return [_curve(model, name, mine) for (model, name), mine in results.groups("model", "set")]


def _curve(model: str, name: str, mine: Results) -> Curve:
    policies = {policy: mine.where(policy=policy) for policy in POLICIES}

    def over_radii(metric: str) -> dict[str, FloatArray]:
        return {policy: rows.where(metric=metric).pivot("radius") for policy, rows in policies.items()}

    moves = sorted((metric for metric in mine.unique("metric") if metric.startswith("action[")), key=_state)
    actions: dict[str, IntArray] = {
        policy: np.stack([rows.where(metric=metric).pivot("radius") for metric in moves], axis=1).astype(np.int64)
        for policy, rows in policies.items()
    }
    radius = np.array(sorted(mine.unique("radius")))
    gap = max(mine.where(metric="gap").column("value"))
    return Curve(model, name, radius, over_radii("worst_lower"), over_radii("nominal_lower"), actions, gap)


def _state(metric: str) -> int:
    """The 7 of `action[7]`."""
    return int(metric.removeprefix("action[").removesuffix("]"))
