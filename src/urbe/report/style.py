"""Colours and sizes of all figures: one meaning per colour, readable for colour-blind people, light and dark.

Colours of actions are from the palette of Okabe and Ito. `THEMED` colours become CSS variables of the page when a
figure is written as SVG, so that one drawing is readable on a light and on a dark page; those of series are far enough
apart for colour-blind readers (a test measures it), and no two methods share both colour and dash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

ROBUST = "#0072b2"
NOMINAL = "#d55e00"
GREEN = "#085c42"
PINK = "#8e4a7c"
BROWN = "#4e3005"
VIOLET = "#611ea6"
INK = "#1a1c20"
MUTED = "#5b6068"
RULE = "#d5d8dd"
CARD = "#fefefe"

ACTIONS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#cc79a7")
"""Colours of action 0, 1, ...; black text is readable on each."""

HEAT = ("#f9e03a", "#cebc63", "#a39a74", "#777777", "#4f576c", "#083370")
"""Levels from few to many (cividis, made for colour-blind readers); dark pages reverse them, so that more always
contrasts more with the page."""

THEMED = {
    ROBUST: ("robust", "#0072b2", "#4aa8e8"),
    NOMINAL: ("nominal", "#c25400", "#f28a45"),
    GREEN: ("green", GREEN, "#92d6a8"),
    PINK: ("pink", PINK, "#ba72a1"),
    BROWN: ("brown", BROWN, "#fbc72f"),
    VIOLET: ("violet", VIOLET, "#8471fa"),
    INK: ("ink", INK, "#e8eaed"),
    MUTED: ("muted", MUTED, "#a3a9b3"),
    RULE: ("rule", RULE, "#3b4048"),
    CARD: ("card", "#ffffff", "#1b1e24"),
    **{
        light: (f"heat-{i}", light, dark)
        for i, (light, dark) in enumerate(
            zip(HEAT, ("#203a6f", "#545a6d", "#7d7c78", "#a39a74", "#cebc63", "#fee838"), strict=True)
        )
    },
}
"""Colour as drawn -> CSS variable, its value on a light page, and on a dark one."""

SERIES = (ROBUST, NOMINAL, GREEN, PINK, BROWN, VIOLET, INK)

SOLID, DASHED, DOTTED = "-", (0, (3.2, 2.4)), (0, (1.0, 1.6))


class Look(NamedTuple):
    """How a method is drawn: colour, matplotlib's line style, and marker."""

    colour: str
    dash: Any
    marker: str


METHODS = {
    "robust": Look(ROBUST, SOLID, "o"),
    "nominal": Look(NOMINAL, DASHED, "s"),
    "oracle": Look(INK, DOTTED, "D"),
    "calibrated URBE": Look(VIOLET, SOLID, "^"),
    "URBE": Look(VIOLET, DASHED, "^"),
    "URBE (KL)": Look(INK, SOLID, "o"),
    "URBE (chi-square)": Look(ROBUST, DASHED, "D"),
    "calibrated UBE": Look(GREEN, SOLID, "v"),
    "UBE": Look(GREEN, DASHED, "v"),
    "certainty equivalent": Look(INK, DASHED, "8"),
    "PSRL": Look(PINK, SOLID, "P"),
    "RLSVI": Look(PINK, DASHED, "X"),
    "UCRL2": Look(BROWN, SOLID, "h"),
    "OLRM": Look(BROWN, DASHED, "p"),
    "Q-learning": Look(NOMINAL, SOLID, "<"),
    "Bayesian Q-learning": Look(NOMINAL, DOTTED, ">"),
    "RSVF": Look(GREEN, DOTTED, "s"),
    "BCI": Look(VIOLET, DOTTED, "d"),
    "Hoeffding": Look(BROWN, DOTTED, "H"),
}
"""The look of each method, the same in every figure."""

SYSTEMS = {
    "rectangular L1": Look(ROBUST, SOLID, "o"),
    "s-rectangular": Look(ROBUST, DASHED, "X"),
    "factor matrix": Look(BROWN, SOLID, "H"),
    "few deviations": Look(PINK, DASHED, "*"),
    "nested sets": Look(PINK, SOLID, "P"),
    "policy-conditioned": Look(INK, DASHED, "d"),
    "twice-regularised": Look(NOMINAL, SOLID, "v"),
    "VaR": Look(INK, SOLID, "h"),
}
"""Planners of the comparison of systems; they share no figure with the learning agents of the same looks."""

DEEP = {
    "dqn": METHODS["Q-learning"],
    "robust-dqn": METHODS["robust"],
    "soft-robust-dqn": METHODS["OLRM"],
    "dqn-ube": METHODS["calibrated UBE"],
    "dqn-urbe": METHODS["calibrated URBE"],
    "dqn-epsilon": Look(NOMINAL, DASHED, "<"),
    "robust-dqn-epsilon": Look(ROBUST, DASHED, "o"),
    "calibrated-dqn-urbe": Look(VIOLET, DASHED, "^"),
    "dqn-urbe-forgetting": Look(VIOLET, DOTTED, "^"),
    "optimum": Look(INK, DOTTED, "D"),
    "exact robust": Look(INK, DASHED, "8"),
}
"""Deep agents look like the closest tabular ones, with which they never share a figure. Variants and controls have the
colour of the agent they vary, and another dash; exact plans are black."""

ADAPTIVE = {
    "belief": Look(VIOLET, SOLID, "^"),
    "planned belief": Look(VIOLET, DASHED, "d"),
    "cautious belief": Look(VIOLET, DOTTED, "v"),
    "Thompson": Look(PINK, SOLID, "P"),
    "pessimistic prior": Look(PINK, DASHED, "X"),
    "soft-robust": Look(GREEN, SOLID, "D"),
    "URBE over models": Look(GREEN, DASHED, "v"),
    "domain randomisation": Look(BROWN, SOLID, "h"),
    "domain randomisation with history": Look(BROWN, DASHED, "p"),
}
"""Agents under changing dynamics; the first five keep a belief."""


KNOWN = METHODS | SYSTEMS | DEEP | ADAPTIVE | {"DQN": DEEP["dqn"]}


def method_of(name: str) -> str:
    """The method in the name of a variant; any other name as it is.

    >>> method_of("URBE, noisy"), method_of("mine, noisy")
    ('URBE', 'mine, noisy')
    """
    method = name.partition(", ")[0]
    return method if method in KNOWN else name


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The look of each name: that of the tables above; unknown names get the remaining looks, in order.

    No two looks share colour and dash, and no unknown name shares colour and marker with a known one.

    >>> looks(["robust", "mine"])["robust"].colour == ROBUST
    True
    """
    given = [KNOWN[name] for name in names if name in KNOWN]
    taken = {look[:2] for look in given}
    drawn = {(look.colour, look.marker) for look in given}
    markers = "osDPXhp"
    free = (
        Look(colour, dash, next(marker for marker in markers[i:] + markers if (colour, marker) not in drawn))
        for dash in (SOLID, DASHED, DOTTED)
        for i, colour in enumerate(SERIES)
        if (colour, dash) not in taken
    )
    found = {name: KNOWN[name] if name in KNOWN else next(free, None) for name in dict.fromkeys(names)}
    missing = [name for name, look in found.items() if look is None]
    if missing:
        raise ValueError(
            f"{len(found)} names in one figure, of which {missing[0]!r} is left without colour and dash; draw fewer."
        )
    return {name: look for name, look in found.items() if look is not None}


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
"""Settings for `matplotlib.rc_context`. In SVG, text remains text: it can be scaled, printed and searched."""
