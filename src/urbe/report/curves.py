"""Draw curves with bands, and mark changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from urbe.report import style, values
from urbe.report.figures import figure_of, name_ends
from urbe.statistics.estimates import Band
from urbe.types import FloatArray


def draw_bands(axes: Axes, x: FloatArray, bands: Mapping[str, Band]) -> None:
    """Draws a line for each estimate, its interval as a pale band, and its name at the right end.

    Names that would overlap are moved apart; if ends coincide, they are in the order given, the first on top. A line
    that ends early ends in a dot, from which a thin line leads to the name. Exact numbers are bands of zero width,
    `Band(y, y, y)`.

    Set a logarithmic scale first (`axes.set_yscale("log")`).

    Args:
      axes: the axes to draw on; its place in the figure must be final.
      x: `(n,)` common abscissae, increasing.
      bands: by name, which determines colour and dash; `(n,)` arrays each.
    """
    if axes.get_xscale() == "log" and not (x > 0.0).all():
        at = int(np.argmin(x > 0.0))
        raise ValueError(f"x[{at}] is {x[at]}, expected a positive finite number: the axis is logarithmic.")
    shown = style.looks(list(bands))
    for name, band in bands.items():
        colour = shown[name].colour
        if not np.array_equal(band.low, band.high):
            axes.fill_between(x, band.low, band.high, color=colour, alpha=0.14, linewidth=0.0)
        axes.plot(x, band.estimate, color=colour, linestyle=shown[name].dash, linewidth=1.8)
        values.note(axes, values.curve(name, x, band.estimate, band.low, band.high))
    ends = [(name, shown[name].colour, *_last(x, band.estimate)) for name, band in bands.items()]
    for _, colour, end, height in ends:
        if end < x[-1]:
            line = axes.plot([end, x[-1]], [height, height], color=colour, linewidth=0.6, linestyle=style.DOTTED)
            line[0].set(marker="o", markersize=4.0, markevery=[0])
    axes.margins(x=0.0, y=0.06)
    axes.set_xlim(x[0], x[-1])
    name_ends(axes, [(name, colour, height) for name, colour, _, height in ends])


def mark_changes(axes: Axes, at: Sequence[float], names: Sequence[str]) -> None:
    """Draws thin vertical lines at changes, each with a name above the panel; names that would overlap are staggered.

    Args:
      axes: the axes to draw on; its horizontal limits must be final. Give the panel a `top` of 0.6 inches.
      at: abscissae, increasing.
      names: names of the phases that begin there.
    """
    width = 72.0 * axes.get_position().width * figure_of(axes).get_size_inches()[0]
    in_axes = axes.transData + axes.transAxes.inverted()
    level_of_end = [-np.inf, -np.inf]  # how far each line of names extends so far
    for position, name in zip(at, names, strict=True):
        axes.axvline(position, color=style.MUTED, linewidth=1.0, linestyle=style.DASHED, zorder=1.5)
        left = in_axes.transform((position, 1.0))[0] * width
        level = int(left < level_of_end[0] + 6.0 and level_of_end[1] <= level_of_end[0])
        level_of_end[level] = left + 5.6 * len(name)
        axes.annotate(
            name,
            xy=(left / width, 1.0),
            xycoords="axes fraction",
            xytext=(0.0, 3.0 + 12.0 * level),
            textcoords="offset points",
            ha="left",
            va="bottom",
            fontsize=9.0,
            color=style.MUTED,
            annotation_clip=False,
        )


def _last(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Returns the last finite point; without one, zero at the right end."""
    finite = np.flatnonzero(np.isfinite(y))
    return (float(x[finite[-1]]), float(y[finite[-1]])) if len(finite) else (float(x[-1]), 0.0)
