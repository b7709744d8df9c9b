"""Draw dots with intervals, and distributions as strips: a row for each category, values on the horizontal axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from urbe.report import style, values
from urbe.report.numbers import decimals, interval_text
from urbe.statistics.estimates import ConfidenceInterval
from urbe.types import FloatArray

ROW = 0.27
"""Height of a dot or strip in inches; a panel of height `ROW * (rows_of(...) + 1)` has room for all."""

_GAP = 0.6
"""Space between categories, in rows."""


def rows_of(n_categories: int, n_groups: int = 1) -> float:
    """Height of `draw_dots` or `draw_strips`, in rows."""
    return n_categories * (n_groups + (_GAP if n_groups > 1 else 0.0))


def draw_dots(axes: Axes, categories: Sequence[str], groups: Mapping[str, Sequence[ConfidenceInterval | None]]) -> None:
    """Draws a dot and its interval for each category and group.

    With one group, categories are names of methods and determine colour and marker; "method, variant" looks like the
    method. With several groups, the groups determine them, and their names are above the panel.

    Args:
      axes: the axes to draw on.
      categories: names of the rows, the first on top.
      groups: by name, one interval per category, or None.
    """
    for name, look, height, interval in _places(axes, categories, groups):
        if interval is not None:
            text = interval_text(interval, decimals([interval]))
            values.note(axes, values.point(name, interval.estimate, height, text))
            axes.plot([interval.low, interval.high], [height, height], color=look.colour, linewidth=1.6)
            axes.plot([interval.estimate], [height], color=look.colour, marker=look.marker, markersize=5.5)


def draw_strips(axes: Axes, categories: Sequence[str], groups: Mapping[str, Sequence[FloatArray]]) -> None:
    """Draws distributions: thin lines from the 5 % to the 95 % quantile, thick ones for the middle half, and medians.

    Rows and colours are those of `draw_dots`.

    Args:
      axes: the axes to draw on; set a logarithmic scale first (`axes.set_xscale("log")`).
      categories: names of the rows, the first on top.
      groups: by name, `(n,)` samples for each category; an empty array if there are none.
    """
    for name, look, height, samples in _places(axes, categories, groups):
        if not len(samples):
            continue
        if axes.get_xscale() == "log" and not np.min(samples) > 0.0:
            raise ValueError(
                f"A sample of {name!r} is {np.min(samples):g}, expected positive numbers: the axis is logarithmic."
            )
        for levels, width in (((0.05, 0.95), 1.2), ((0.25, 0.75), 5.0)):
            ends = np.quantile(samples, levels)
            axes.plot(ends, [height, height], color=look.colour, linewidth=width, solid_capstyle="butt")
        low, middle, high = (f"{level:.4g}" for level in np.quantile(samples, (0.05, 0.5, 0.95)))
        values.note(axes, values.point(name, float(np.median(samples)), height, f"{middle} [{low}, {high}]"))
        axes.plot(
            [np.median(samples)], [height], color=look.colour, marker="o", markersize=5.5, markerfacecolor=style.CARD
        )


T = TypeVar("T")


def _places(
    axes: Axes, categories: Sequence[str], groups: Mapping[str, Sequence[T]]
) -> list[tuple[str, style.Look, float, T]]:
    """Prepares the axes and yields name, look, height and item of every row."""
    shown = style.looks(list(groups) if len(groups) > 1 else [style.method_of(each) for each in categories])
    step = rows_of(1, len(groups))
    places = []
    for j, (group, items) in enumerate(groups.items()):
        if len(items) != len(categories):
            raise ValueError(
                f"groups[{group!r}] has {len(items)} entries, expected one for each of {len(categories)} categories."
            )
        for i, (category, item) in enumerate(zip(categories, items, strict=True)):
            look = shown[group if len(groups) > 1 else style.method_of(category)]
            name = ", ".join(word for word in (category, group) if word) if len(groups) > 1 else category
            places.append((name, look, i * step + j, item))
    middle = 0.5 * (len(groups) - 1)
    axes.set_yticks([i * step + middle for i in range(len(categories))], categories)
    axes.set_ylim((len(categories) - 1) * step + len(groups) - 0.25, -0.75)
    axes.tick_params(axis="y", length=0.0)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)
    if len(groups) > 1:
        _name_groups(axes, {group: shown[group] for group in groups})
    return places


def _name_groups(axes: Axes, shown: Mapping[str, style.Look]) -> None:
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, markersize=5.5, linewidth=1.6, label=name)
        for name, look in shown.items()
    ]
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(handles), frameon=False,
        borderaxespad=0.2, handlelength=1.4, columnspacing=1.4,
    )  # fmt: skip
