"""The price of robustness: what a robust policy gives up if the model is right, and gains if it is wrong.

For each model and set U let pi_N be optimal for the nominal model P, and pi_R against the worst model of U:

    price      J(pi_N; P) - J(pi_R; P)                            >= 0
    insurance  min_{Q in U} J(pi_R; Q) - min_{Q in U} J(pi_N; Q)  >= 0

J is the expected discounted reward from the model's start. All four numbers carry certified bounds, and the worst-case
ones are read off as lower bounds. Several policies are often optimal against nature; pi_R is the one that keeps pi_N's
action wherever that is still optimal, so that it changes only where it must. Nothing is random: the one random model
has a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.operator import AmbiguitySet
from urbe.experiments.base import everywhere
from urbe.experiments.models import MODELS
from urbe.mdp.evaluate import start_weights
from urbe.mdp.model import MDP
from urbe.solvers import PartialPolicyIteration, Solution, evaluate_policy, solve
from urbe.types import FloatArray, IntArray

if TYPE_CHECKING:
    from urbe.report.content import Section

NAME = "price_of_robustness"
TITLE = "The price of robustness"

N_RADII = 21

SETS: dict[str, Callable[[float], AmbiguitySet]] = {"L1": L1Ball, "KL": KLBall}

TOLERANCE = 1e-8
"""Wanted gap of every solve."""

TIE = 1e-6
"""Actions whose values differ by less count as equally good; the gap of the policy so chosen is held to this too."""

POLICIES = ("robust", "nominal")


@dataclass(frozen=True)
class PriceCell:
    """One model, one set, one radius.

    Attributes:
      model: key of `MODELS`.
      set: key of `SETS`.
      radius: of the set, the same for every state and action.
    """

    model: str
    set: str
    radius: float

    @property
    def name(self) -> str:
        """E.g. `garnet-L1-0.3`."""
        return f"{self.model}-{self.set}-{self.radius:g}"

    @property
    def cost(self) -> float:
        """See `urbe.experiments.base`: seconds, about."""
        return 0.03


class Row(NamedTuple):
    """One number of a cell: of the robust or the nominal policy; `run` lists the metrics."""

    model: str
    set: str
    radius: float
    policy: str
    metric: str
    value: float


CELLS = everywhere(
    PriceCell(model, name, round(largest * i / (N_RADII - 1), 9))
    for model, demo in MODELS.items()
    for name, largest in (("L1", demo.l1), ("KL", demo.kl))
    for i in range(N_RADII)
)


def run(cell: PriceCell, _: Path) -> list[Row]:
    """Solves one cell.

    Metrics of each policy: `nominal_lower`, `nominal_upper`, `worst_lower`, `worst_upper` bound its value from the
    start under the nominal model and in the worst case; `gap` is the widest certified interval of any state, for the
    robust policy that between what it is sure to get and what any policy could; `action[s]` is its action in state s.
    """
    mdp = MODELS[cell.model].build()
    nature = SETS[cell.set](cell.radius)
    start, method = start_weights(mdp), PartialPolicyIteration(tolerance=TOLERANCE)
    nominal = solve(mdp, None, method)
    best = solve(mdp, nature, method)
    robust, robust_worst = least_changed(mdp, nature, best, nominal.policy)
    nominal_worst = evaluate_policy(mdp, nominal.policy, nature, method)

    rows: list[Row] = []
    for policy, actions, worst, ceiling in (
        ("robust", robust, robust_worst, best.upper),
        ("nominal", nominal.policy, nominal_worst, nominal_worst.upper),
    ):
        right = evaluate_policy(mdp, actions, None, method)
        numbers = {
            "nominal_lower": start @ right.lower,
            "nominal_upper": start @ right.upper,
            "worst_lower": start @ worst.lower,
            "worst_upper": start @ worst.upper,
            "gap": max(right.gap, (ceiling - worst.lower).max()),
        } | {f"action[{s}]": action for s, action in enumerate(actions)}
        rows += [
            Row(cell.model, cell.set, cell.radius, policy, metric, float(value)) for metric, value in numbers.items()
        ]
    return rows


def least_changed(
    mdp: MDP, nature: AmbiguitySet, best: Solution, reference: IntArray | FloatArray
) -> tuple[IntArray | FloatArray, Solution]:
    """A policy optimal against nature that differs from `reference` only where it must, and its worst-case value.

    Args:
      mdp: the model.
      nature: what nature may do.
      best: the robust solution.
      reference: `(S,)` actions to keep where they are within `TIE` of the best.
    """
    method = PartialPolicyIteration(tolerance=TOLERANCE)
    states = np.arange(mdp.n_states)
    keep = mdp.terminal | (best.q[states, reference] >= best.q.max(axis=1) - TIE)
    policy = np.where(keep, reference, best.policy)
    worst = evaluate_policy(mdp, policy, nature, method)
    if (best.upper - worst.lower).max() > TIE:  # near-ties may add up along the way
        return best.policy, evaluate_policy(mdp, best.policy, nature, method)
    return policy, worst


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


def plot(table: Sequence[Curve]) -> list[Section]:
    """A summary, then for each model its values and its policies over the radius."""
    from urbe.experiments import price_plots  # drawing needs matplotlib, solving does not

    return price_plots.sections(table)
