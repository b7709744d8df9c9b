"""The price of robustness: values of the robust and the nominal policy over the radius, and strips of policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from urbe.report import style
from urbe.report.curves import draw_bands
from urbe.report.figures import WIDTH, Figure, mark_gap, panels
from urbe.report.maps import draw_map
from urbe.statistics.estimates import Band
from urbe.types import FloatArray, IntArray

POLICIES = ("robust", "nominal")
TITLES = ("Worst case within the radius", "If the model is right")
ROW = 0.235
"""Height of a strip in inches."""


class PriceCurves(NamedTuple):
    """Values over n radii, of the robust and of the nominal policy.

    Attributes:
      set: name of the set.
      radius: `(n,)` increasing.
      worst: `(n,)` each, in the worst case.
      right: `(n,)` each, if the model is right.
    """

    set: str
    radius: FloatArray
    worst: tuple[FloatArray, FloatArray]
    right: tuple[FloatArray, FloatArray]


class PolicyStrips(NamedTuple):
    """Actions over n radii.

    Attributes:
      set: name of the set.
      radius: `(n,)` evenly spaced.
      codes: `(rows, n)` indices of actions.
    """

    set: str
    radius: FloatArray
    codes: IntArray


def best_radius(insurance: FloatArray) -> int:
    """Returns the index of the first radius whose insurance is within 1 % of the largest."""
    return int(np.argmax(insurance >= 0.99 * insurance.max()))


def price_figure(curves: Sequence[PriceCurves]) -> Figure:
    """Draws a row of two panels for each set: the worst case on the left, the nominal model on the right."""
    figure, axes = panels(len(curves), 2, height=2.15, right=0.85)
    for curve, (left, right) in zip(curves, axes, strict=True):
        draw_price(left, right, curve)
    for panel, title in zip(axes[0], TITLES, strict=True):
        panel.set_title(title)
    return figure


def draw_price(left: Axes, right: Axes, curve: PriceCurves) -> None:
    """Draws the values of both policies in the worst case, and if the model is right."""
    left.set_ylabel("value")
    insurance = curve.worst[0] - curve.worst[1]
    for panel, (robust, nominal), name, colour in (
        (left, curve.worst, "insurance", style.ROBUST),
        (right, curve.right, "price", style.NOMINAL),
    ):
        panel.set_xlabel(f"{curve.set} radius")
        panel.fill_between(curve.radius, nominal, robust, color=colour, alpha=0.16, linewidth=0)
        bands = zip(POLICIES, (robust, nominal), strict=True)
        draw_bands(panel, curve.radius, {policy: Band(*[value] * 3) for policy, value in bands})
        at = best_radius(insurance)
        if insurance[at] > 0.0:
            mark_gap(panel, curve.radius, robust, nominal, at, name)


def policy_figure(
    strips: Sequence[PolicyStrips], states: Sequence[str], actions: Sequence[str], colours: Sequence[str]
) -> Figure:
    """Draws maps of the sets side by side: a strip for each state, coloured by its action.

    Args:
      strips: strips of the sets, with the same rows.
      states: names of the rows.
      actions: names of the actions.
      colours: colours of the actions.
    """
    margin, top, bottom, gap = strip_margin(states), 0.1, 0.5, 0.35
    height = top + bottom + ROW * len(states)
    figure = Figure(figsize=(WIDTH, height))
    across = (WIDTH - margin - 0.2 - gap * (len(strips) - 1)) / len(strips)
    for i, strip in enumerate(strips):
        left = margin + i * (across + gap)
        axes = figure.add_axes(
            (left / WIDTH, bottom / height, across / WIDTH, (height - top - bottom) / height)
        )  # fmt: skip
        draw_map(axes, strip.radius, strip.codes, states if i == 0 else [""] * len(states), actions, colours)
        axes.set_xlabel(f"{strip.set} radius")
    return figure


def strip_margin(states: Sequence[str]) -> float:
    """Width in inches to the left of strips, for the names of the rows."""
    return min(max(1.35, 0.3 + 0.068 * max(map(len, states), default=0)), 3.5)
