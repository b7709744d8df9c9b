"""Draw maps: actions over a parameter, grids of cells coloured by level, and places coloured by the action taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from urbe.report import style, values
from urbe.report.figures import figure_of
from urbe.report.numbers import number
from urbe.types import FloatArray, IntArray

LEVELS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Shares at which the colours of `style.HEAT` begin; smaller shares are left blank."""

NAMES = ("0.1 to 0.3 %", "0.3 to 1 %", "1 to 3 %", "3 to 10 %", "10 to 30 %", "above 30 %")

PALEST = 0.35
"""Opacity of a cell with a single visit; the opacity grows with the logarithm of visits, up to 1."""


class Zone(NamedTuple):
    """Cells to outline, from a corner on: row, column, rows, columns."""

    row: int
    column: int
    rows: int = 1
    columns: int = 1


def draw_map(
    axes: Axes, x: FloatArray, codes: IntArray, rows: Sequence[str], names: Sequence[str], colours: Sequence[str]
) -> None:
    """Draws a table of actions as coloured bars, one row per state; a bar shows its action's name if it fits.

    Args:
      axes: the axes to draw on.
      x: `(n,)` evenly spaced abscissae; column i reaches half a step to both sides of x[i].
      codes: `(rows, n)` actions, as indices into `names` and `colours`.
      rows: the name of each row, the first on top.
      names: name of each action.
      colours: colour of each action.
    """
    half = 0.5 * (x[1] - x[0])
    width = x[-1] - x[0] + 2.0 * half
    inches = axes.get_position().width * figure_of(axes).get_size_inches()[0]
    for i, row in enumerate(codes):
        column = 0
        for code, run in groupby(row.tolist()):
            n = len(list(run))
            left = x[column] - half
            bar = (left, 2.0 * half * n)
            axes.broken_barh(
                [bar], (i - 0.5, 1.0), facecolor=colours[code], edgecolor=style.CARD, linewidth=0.8
            )  # fmt: skip
            name = names[code]
            if 72.0 * inches * bar[1] / width > 6.0 * len(name) + 4.0:
                axes.text(
                    left + 0.5 * bar[1], i, name, ha="center", va="center", fontsize=8.5, color=on_colour(colours[code])
                )
            column += n
        values.note(axes, values.row(rows[i], x, i, [names[code] for code in row]))
    axes.set_xlim(x[0] - half, x[-1] + half)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(axis="y", length=0.0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def on_colour(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour (WCAG relative luminance).

    >>> on_colour("#f0e442"), on_colour("#00224e")
    ('#000000', '#ffffff')
    """
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return "#000000" if linear @ [0.2126, 0.7152, 0.0722] > 0.179 else "#ffffff"


def ramp(n: int) -> tuple[str, ...]:
    """Returns n colours from light to dark for ordered actions (cividis, made for colour-blind readers)."""
    shades = matplotlib.colormaps["cividis"](np.linspace(1.0, 0.0, n))
    return tuple(to_hex(shade) for shade in shades)


def draw_heatmap(axes: Axes, shares: FloatArray, zones: Mapping[str, Zone]) -> None:
    """Draws a grid coloured by shares, the first row on top; zones are outlined, and named next to the grid.

    Args:
      axes: the axes to draw on; square.
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
        values.note(axes, values.Series(f"row {row + 1}", at, where, tuple(map(_percent, shares[row].tolist()))))
    axes.set_xlim(0.0, columns)
    axes.set_ylim(rows, 0.0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel("column", alpha=0.0)  # the name of places in tables and at the pointer
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def draw_key(axes: Axes, title: str) -> None:
    """Draws the key to the colours in one line, as wide as the axes.

    Args:
      axes: the axes to draw on, a quarter of an inch high.
      title: title of the quantity.
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


def draw_shares(axes: Axes, shares: FloatArray) -> None:
    """Draws columns of shares that add up to one, such as a belief over time; larger shares have stronger colours.

    Args:
      axes: the axes to draw on; row k is centred at height k, the first at the bottom, and column i at abscissa i.
      shares: `(rows, columns)` in [0, 1].
    """
    picture = np.empty((*shares.shape, 4))
    picture[..., :3] = to_rgb(style.ROBUST)
    picture[..., 3] = np.sqrt(shares)  # makes small shares visible
    axes.imshow(picture, origin="lower", aspect="auto", interpolation="none", zorder=2.0)
    axes.grid(visible=False)


def draw_cloud(axes: Axes, counts: FloatArray, ends: tuple[float, float], colours: Sequence[str]) -> None:
    """Draws cells in the colour of their most frequent action, stronger with more visits; empty cells stay clear.

    Args:
      axes: the axes to draw on.
      counts: `(actions, across, up)` visits with each action, on equal cells that cover [-ends[0], ends[0]] by
        [-ends[1], ends[1]].
      ends: ends of the axes.
      colours: colours of the actions.
    """
    axes.imshow(
        cloud(counts, colours),
        origin="lower",
        extent=(-ends[0], ends[0], -ends[1], ends[1]),
        aspect="auto",
        interpolation="none",
        zorder=2.0,
    )
    axes.grid(visible=False)
    axes.axhline(0.0, linewidth=0.6, color=axes.spines["left"].get_edgecolor(), zorder=1.0)
    axes.axvline(0.0, linewidth=0.6, color=axes.spines["left"].get_edgecolor(), zorder=1.0)


def cloud(counts: FloatArray, colours: Sequence[str]) -> FloatArray:
    """Returns the picture, `(up, across, 4)`: red, green, blue and opacity, each in [0, 1].

    >>> counts = np.zeros((2, 1, 3))
    >>> counts[0, 0, 0], counts[1, 0, 2] = 1, 9
    >>> cloud(counts, ("#ff0000", "#0000ff"))[:, 0].round(2).tolist()
    [[1.0, 0.0, 0.0, 0.35], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    """
    total = counts.sum(axis=0).T
    shades = np.array([to_rgb(colour) for colour in colours])[counts.argmax(axis=0).T]
    fullest = max(float(np.log(max(total.max(), 1.0))), 1e-9)
    strength = PALEST + (1.0 - PALEST) * np.log(np.maximum(total, 1.0)) / fullest
    return np.concatenate([shades, np.where(total > 0.0, strength, 0.0)[..., None]], axis=-1)


def _square(row: int, column: int) -> Path:
    corners = [(column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1), (column, row)]
    return Path(corners, [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY])


def _percent(share: float) -> str:
    return f"{number(100.0 * share, 3)} %"
