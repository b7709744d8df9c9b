"""Places in a plane, coloured by what was done there: a picture of fixed size, however many places there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from urbe.types import FloatArray

PALEST = 0.35
"""Opacity of a cell with a single visit; that of the fullest cell is 1, and visits count by their logarithm."""


def draw_cloud(axes: Axes, counts: FloatArray, ends: tuple[float, float], colours: Sequence[str]) -> None:
    """Cells in the colour of the action taken there most, the stronger the more visits; empty ones stay clear.

    Args:
      axes: where.
      counts: `(actions, across, up)` visits with each action, on equal cells that cover [-ends[0], ends[0]] by
        [-ends[1], ends[1]].
      ends: of the axes.
      colours: of the actions.
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
    """`(up, across, 4)` the picture: red, green, blue and opacity, each in [0, 1].

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
