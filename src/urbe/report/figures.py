"""Figures of equal panels, and lines with labels at their ends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Figure

from urbe.report import style
from urbe.types import FloatArray

WIDTH = 10.0
"""Width of every figure: it fills the page."""


SMALL = 4.4
"""Width of a figure of the front page, where three stand side by side."""


def styled() -> AbstractContextManager[None]:
    """A context in which figures have the project's style; global settings are restored afterwards."""
    return matplotlib.rc_context(style.RC)


def panels(
    rows: int = 1,
    columns: int = 1,
    *,
    height: float = 2.4,
    left: float = 0.85,
    right: float = 1.4,
    top: float = 0.35,
    bottom: float = 0.5,
) -> tuple[Figure, list[list[Axes]]]:
    """Makes an empty figure and its panels, `axes[row][column]`. Call it within `styled()`.

    Args:
      rows, columns: numbers of panels.
      height: height of a panel.
      left, right: room beside each panel: for ticks, and for the names of lines.
      top, bottom: room above and below each: for the title, and for the label of the axis.
    """
    whole = rows * (top + height + bottom)
    across = WIDTH / columns - left - right
    figure = Figure(figsize=(WIDTH, whole))
    axes = [
        [
            figure.add_axes(
                (
                    (j * WIDTH / columns + left) / WIDTH,
                    ((rows - 1 - i) * (top + height + bottom) + bottom) / whole,
                    across / WIDTH,
                    height / whole,
                )
            )
            for j in range(columns)
        ]
        for i in range(rows)
    ]
    return figure, axes


def small(*, height: float = 2.3, left: float = 0.65, right: float = 0.95, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Makes an empty figure for the front page, and its panels, one above the other. Call it within `styled()`.

    Args:
      height: height of a panel.
      left, right: room beside the panels: for ticks, and for the names of lines.
      rows: number of panels.
    """
    top, bottom = 0.35, 0.5
    whole = rows * (top + height + bottom)
    figure = Figure(figsize=(SMALL, whole))
    across = (SMALL - left - right) / SMALL
    places = [(left / SMALL, (bottom + (rows - 1 - i) * (top + height + bottom)) / whole) for i in range(rows)]
    return figure, [figure.add_axes((x, y, across, height / whole)) for x, y in places]


def name_ends(axes: Axes, ends: Sequence[tuple[str, str, float]]) -> None:
    """Writes names right of the panel, each as near to its height as the others allow, with leaders to distant ones.

    Args:
      axes: the panel; its place in the figure and its limits must be final.
      ends: name, colour and height of each line's end.
    """
    length = 72.0 * axes.get_position().height * figure_of(axes).get_size_inches()[1]
    in_axes = axes.transData + axes.transAxes.inverted()  # on linear and on logarithmic scales
    left = axes.get_xlim()[0]
    wanted = np.array([in_axes.transform((left, height))[1] * length for _, _, height in ends])
    heights = spread(wanted[::-1].round(1), 13.0, length)[::-1]
    moved = heights - wanted.clip(0.0, length)
    far = np.abs(moved) > 4.0
    for (name, colour, _), height, up, is_far in zip(ends, heights, moved, far, strict=True):
        axes.annotate(
            name,
            xy=(1.0, (height - up) / length),
            xycoords="axes fraction",
            xytext=(14.0 if far.any() else 6.0, up),
            textcoords="offset points",
            va="center",
            color=colour,
            arrowprops=_leader(colour) if is_far else None,
            annotation_clip=False,
        )


def _leader(colour: str) -> dict[str, Any]:
    return {"arrowstyle": "-", "color": colour, "linewidth": 0.7, "relpos": (0.0, 0.5), "shrinkA": 1.0, "shrinkB": 1.0}


def mark_gap(axes: Axes, x: FloatArray, first: FloatArray, second: FloatArray, at: int, name: str) -> None:
    """Draws a thin vertical line between two curves at x[at], with the name of their distance where it touches neither.

    The name is between the curves, right or left of the line, or above them to the right; without room it is left out.

    Args:
      axes: the axes to draw on; its limits must be final.
      x: `(n,)` abscissae, increasing.
      first, second: `(n,)` heights of the lines.
      at: index of the vertical line.
      name: the text to write.
    """
    axes.plot([x[at], x[at]], [first[at], second[at]], color=style.INK, linewidth=1.0, marker="_", markersize=5.0)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    place, (inches_across, inches_up) = axes.get_position(), figure_of(axes).get_size_inches()
    width, height = 72.0 * place.width * inches_across, 72.0 * place.height * inches_up
    across, up = (x - left) / (right - left) * width, (np.stack((first, second)) - low) / (high - low) * height
    length, half, gap = 5.8 * len(name), 7.0, 5.0
    if np.ptp(up[:, at]) < 1.5:  # less than the lines are wide
        return
    for start, between in ((across[at] + gap, True), (across[at] - gap - length, True), (across[at] + gap, False)):
        span = np.linspace(start, start + length, 20)
        lines = np.stack([np.interp(span, across, line) for line in up])
        floor, ceiling = lines.min(axis=0).max(), lines.max(axis=0).min()
        level = 0.5 * (floor + ceiling) if between else up[:, at].max() + half + 1.0
        fits = start > 0.0 and start + length < width and level + half < height
        if fits and np.abs(lines - level).min() > half:
            axes.text(start / width, level / height, name, transform=axes.transAxes, va="center")
            return


def spread(wanted: FloatArray, distance: float, length: float) -> FloatArray:
    """Positions near `wanted`, in the same order, at least `distance` apart and within [0, length] if they fit.

    >>> spread(np.array([5.0, 5.0, 40.0]), 10.0, 100.0)
    array([ 0., 10., 40.])
    """
    order = np.argsort(wanted, kind="stable")
    placed = wanted[order].astype(np.float64)
    offset = distance * np.arange(len(placed))
    # after subtracting equal steps, "at least distance apart" means "increasing": pool values that are out of order
    blocks: list[list[float]] = []
    for value in placed - offset:
        blocks.append([float(value), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, count = blocks.pop()
            before, n_before = blocks[-1]
            blocks[-1] = [(mean * count + before * n_before) / (count + n_before), count + n_before]
    level = np.concatenate([np.full(int(count), mean) for mean, count in blocks])
    room = max(length - distance * (len(placed) - 1), 0.0)
    result = np.empty_like(placed)
    result[order] = np.clip(level, 0.0, room) + offset
    return result


def figure_of(axes: Axes) -> Figure:
    """Returns the figure that contains the axes."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("axes belongs to no figure.")
    return figure
