"""Record the numbers in a drawing with their places, to be read by pointer or keys, and for tables.

Drawings of this package record their numbers; other drawings call `note`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from urbe import checks
from urbe.report.content import Table
from urbe.report.numbers import number
from urbe.types import FloatArray, IntArray

MOST = 60
"""A line has at most this many readable points; longer lines are thinned evenly."""

MOST_ROWS, MOST_COLUMNS = 26, 13
"""Largest size of a table made from a drawing, so that it fits on paper."""

LEAST_POINTS = 2
"""A line has at least this many points."""

LINE_WIDTH = 1.8
"""Lines closer than this, in points, cannot be distinguished."""


class Series(NamedTuple):
    """One name of a panel with its points.

    Attributes:
      name: name of the line, the row or the group.
      at: `(n, 2)` places, in the data's coordinates.
      where: for each point its position on the horizontal axis, as text; empty if the name identifies it.
      value: for each point the number, with its interval when there is one.
    """

    name: str
    at: FloatArray
    where: tuple[str, ...]
    value: tuple[str, ...]


class Panel(NamedTuple):
    """The content of a panel: title, name of the horizontal axis, series with places in the drawing, and short title.

    Places are `(n, 2)` in points, from the upper left corner of the figure.
    """

    title: str
    across: str
    series: tuple[Series, ...]
    name: str = ""


class Noted(Artist):
    """An invisible artist that carries a series, so that a figure knows its numbers."""

    def __init__(self, series: Series) -> None:
        super().__init__()
        self.series = series
        self.set_in_layout(False)


def curve(name: str, x: ArrayLike, y: ArrayLike, low: ArrayLike | None = None, high: ArrayLike | None = None) -> Series:
    """The points of a line, with their intervals if given; those that are not finite are left out.

    Args:
      name: name of the line.
      x, y: `(n,)` its points.
      low, high: `(n,)` ends of the intervals.
    """
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    ends = None if low is None or high is None else np.stack((low, high), axis=1)
    kept = _thinned(np.flatnonzero(np.isfinite(across) & np.isfinite(up)), MOST)
    value = tuple(_with_interval(up[i], None if ends is None else ends[i]) for i in kept)
    return Series(name, np.stack((across, up), axis=1)[kept], tuple(number(across[i], 5) for i in kept), value)


def row(name: str, x: ArrayLike, height: float, words: Sequence[str]) -> Series:
    """Words at equal height, such as the actions of a state along a parameter."""
    across = np.asarray(x, dtype=np.float64)
    kept = _thinned(np.arange(len(across)), MOST)
    at = np.stack((across, np.full(len(across), height)), axis=1)[kept]
    return Series(name, at, tuple(number(across[i], 5) for i in kept), tuple(words[i] for i in kept))


def point(name: str, x: float, y: float, value: str) -> Series:
    """One point that its name identifies, such as a dot in a row of its own."""
    return Series(name, np.array([[x, y]]), ("",), (value,))


def note(axes: Axes, series: Series) -> None:
    """Records a series that is drawn on the axes."""
    axes.add_artist(Noted(series))


def panels_of(figure: Figure) -> list[Panel]:
    """The panels of a figure that have numbers to read. The figure must have been drawn: places are final then."""
    height = 72.0 * figure.get_size_inches()[1]
    found = []
    for axes in figure.axes:
        series = [artist.series for artist in axes.artists if isinstance(artist, Noted)]
        places = [
            s._replace(at=axes.transData.transform(s.at) * (72.0 / figure.dpi) * (1.0, -1.0) + (0.0, height))
            for s in series
            if len(s.at)
        ]
        if places:
            found.append(Panel(_title(axes), axes.get_xlabel(), tuple(places), _name(axes)))
    return found


def coincidences(panels: Sequence[Panel]) -> str:
    """Says which lines coincide; empty if none do."""
    found: dict[str, list[str]] = {}
    for panel in panels:
        for names in _coinciding(panel):
            found.setdefault(checks.listing(names), []).append(panel.name or panel.across)
    several = len(panels) > 1
    texts = [f"{names} ({', '.join(titles)})" if several and any(titles) else names for names, titles in found.items()]
    return f"Lines that coincide: {'; '.join(texts)}." if texts else ""


def _coinciding(panel: Panel) -> list[list[str]]:
    """Groups the names of lines whose distance is at most the width of a line everywhere."""
    groups: list[list[Series]] = []
    for series in panel.series:
        if len(series.at) < LEAST_POINTS or not all(series.where):
            continue
        for group in groups:
            if group[0].where == series.where and np.abs(group[0].at - series.at).max() < LINE_WIDTH:
                group.append(series)
                break
        else:
            groups.append([series])
    return [[series.name for series in group] for group in groups if len(group) > 1]


def as_json(panels: Sequence[Panel]) -> str:
    """Panels for the script of the page: `[[title, across, [[name, [[x, y, where, value], ...]], ...]], ...]`."""
    content = [(panel.title, panel.across, [(s.name, _points(s)) for s in panel.series]) for panel in panels]
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _points(s: Series) -> list[tuple[float, float, str, str]]:
    return [(round(x, 1), round(y, 1), w, v) for (x, y), w, v in zip(s.at.tolist(), s.where, s.value, strict=True)]


def tables_of(panels: Sequence[Panel]) -> tuple[Table, ...]:
    """The same numbers as tables, one for each panel: a row for each place, a column for each name, thinned."""
    return tuple(table for panel in panels if (table := _table(panel)) is not None)


def _table(panel: Panel) -> Table | None:
    title = panel.title or "Values"
    if all(where == "" for s in panel.series for where in s.where):
        named = tuple((s.name, value) for s in panel.series for value in s.value)
        return Table(title, ("", panel.across or "value"), named)
    cells: dict[str, dict[str, str]] = {}
    for s in panel.series:
        for where, value in zip(s.where, s.value, strict=True):
            cells.setdefault(where, {})[s.name] = value
    names = list(dict.fromkeys(s.name for s in panel.series))
    if len(names) > MOST_COLUMNS:
        return None
    order = sorted(cells, key=lambda where: float(where or "-inf"))
    order = [order[i] for i in _thinned(np.arange(len(order)), MOST_ROWS)]
    rows = tuple((where, *(cells[where].get(name, "-") for name in names)) for where in order)
    return Table(title, (panel.across or "at", *names), rows)


def _title(axes: Axes) -> str:
    """The title with the name of the vertical axis, or one of them."""
    title, up = _name(axes), str(axes.get_ylabel())
    return f"{title} ({up})" if title and up else title or up


def _name(axes: Axes) -> str:
    """Returns only the title; empty if there is none."""
    titles = (str(axes.get_title(loc=loc)).strip() for loc in ("left", "center", "right"))
    return next(filter(None, titles), "")


def _with_interval(value: float, interval: FloatArray | None) -> str:
    if interval is None or not np.isfinite(interval).all() or interval[0] == interval[1]:
        return number(float(value), 4)
    return f"{number(float(value), 4)} [{number(float(interval[0]), 4)}, {number(float(interval[1]), 4)}]"


def _thinned(indices: IntArray, most: int) -> IntArray:
    return indices if len(indices) <= most else indices[np.linspace(0, len(indices) - 1, most).round().astype(np.int64)]
