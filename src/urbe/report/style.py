"""Colours and sizes of all figures: one meaning per colour, safe for colour-blind readers, light and dark.

Data colours are from the palette of Okabe and Ito. `THEMED` colours become CSS variables of the page when a figure is
written as SVG, so that one drawing is readable on a light and on a dark page.
"""

from __future__ import annotations

from typing import Any

ROBUST = "#0072b2"
NOMINAL = "#d55e00"
INK = "#1a1c20"
MUTED = "#5b6068"
RULE = "#d5d8dd"
CARD = "#fefefe"

ACTIONS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#cc79a7")
"""Action 0, 1, ... where actions are names; black writing is readable on each."""

THEMED = {
    ROBUST: ("robust", "#0072b2", "#4aa8e8"),
    NOMINAL: ("nominal", "#c25400", "#f28a45"),
    INK: ("ink", INK, "#e8eaed"),
    MUTED: ("muted", MUTED, "#a3a9b3"),
    RULE: ("rule", RULE, "#3b4048"),
    CARD: ("card", "#ffffff", "#1b1e24"),
}
"""Colour as drawn -> CSS variable, its value on a light page, and on a dark one."""

RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.titlepad": 8.0,
    "axes.labelsize": 10.0,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": "none",
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",
    "path.simplify": False,
}
"""Settings for `matplotlib.rc_context`; nothing global is changed. Text stays text: it scales, prints, is found."""
