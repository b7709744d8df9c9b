"""Grids of cells coloured by level, few enough levels to distinguish, with marked places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from urbe.report import style, values
from urbe.report.numbers import number
from urbe.types import FloatArray

LEVELS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Shares at which the colours of `style.HEAT` begin; what is below the first is left blank."""

NAMES = ("0.1 to 0.3 %", "0.3 to 1 %", "1 to 3 %", "3 to 10 %", "10 to 30 %", "above 30 %")


class Zone(NamedTuple):
    """Cells to outline, from a corner on: row, column, rows, columns."""

    row: int
    column: int
    rows: int = 1
    columns: int = 1


def draw_heatmap(axes: Axes, shares: FloatArray, zones: Mapping[str, Zone]) -> None:
    """A grid coloured by shares, the first row on top; zones are outlined, and named beside the grid.

    Args:
      axes: where; square.
      shares: `(rows, columns)` in [0, 1].
      zones: by name; those that touch the upper edge are named above, all others below.
    """
    rows, columns = shares.shape
    level = np.searchsorted(LEVELS, shares, side="right")
    for i, colour in enumerate(style.HEAT, start=1):
        places = np.argwhere(level == i)
        if len(places):
            # one path for all cells of a level: the page stays small
            path = Path.make_compound_path(*(_square(row, column) for row, column in places.tolist()))
            axes.add_patch(PathPatch(path, facecolor=colour, edgecolor="none", linewidth=0.0))
    lines = [Path([(0.0, k), (columns, k)]) for k in range(rows + 1)]
    lines += [Path([(k, 0.0), (k, rows)]) for k in range(columns + 1)]
    axes.add_patch(PathPatch(Path.make_compound_path(*lines), facecolor="none", edgecolor=style.RULE, linewidth=0.6))
    for name, zone in zones.items():
        corner, size = (zone.column, zone.row), (zone.columns, zone.rows)
        axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=style.NOMINAL, linewidth=2.0, zorder=3.0))
        above = zone.row == 0
        axes.annotate(
            name,
            xy=(zone.column + 0.5 * zone.columns, zone.row if above else zone.row + zone.rows),
            xytext=(0.0, 3.0 if above else -3.0),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize=8.5,
            color=style.NOMINAL,
            annotation_clip=False,
        )
    for row in range(rows):
        at = np.stack((np.arange(columns) + 0.5, np.full(columns, row + 0.5)), axis=1)
        where = tuple(str(column + 1) for column in range(columns))
        values.note(axes, values.Series(f"row {row + 1}", at, where, tuple(map(_told, shares[row].tolist()))))
    axes.set_xlim(0.0, columns)
    axes.set_ylim(rows, 0.0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel("column", alpha=0.0)  # names the places in tables and when pointed at
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def draw_key(axes: Axes, title: str) -> None:
    """What the colours mean, in one line of the width of the axes.

    Args:
      axes: where, a quarter of an inch high.
      title: of the quantity.
    """
    names: Sequence[str] = ("less", *NAMES)
    left, step = 0.16, 0.12
    axes.text(0.0, 0.5, title, va="center", fontsize=9.0, transform=axes.transAxes)
    for i, name in enumerate(names):
        colour = style.CARD if i == 0 else style.HEAT[i - 1]
        box = Rectangle(
            (left + i * step, 0.2), 0.022, 0.6, transform=axes.transAxes, facecolor=colour, edgecolor=style.MUTED,
            linewidth=0.6,
        )  # fmt: skip
        axes.add_patch(box)
        axes.text(left + i * step + 0.027, 0.5, name, va="center", fontsize=8.5, transform=axes.transAxes)
    axes.set_axis_off()


def _square(row: int, column: int) -> Path:
    corners = [(column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1), (column, row)]
    return Path(corners, [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY])


def _told(share: float) -> str:
    return f"{number(100.0 * share, 3)} %"
