"""Figures of equal panels, with room for what stands beside them; all sizes in inches."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 10.0
"""Of every figure: it fills the page."""


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
    """An empty figure and its panels, `axes[row][column]`. Make it within `figures.styled()`.

    Args:
      rows, columns: how many panels.
      height: of a panel.
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
