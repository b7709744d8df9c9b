"""The figure of the front page: the effect of the uncertainty set."""

from __future__ import annotations

import numpy as np

from urbe.paper.mars_rover import GRID, NO_SET, NOMINAL, OPTIMUM, SMALL, WIDE, WORLDS, set_title
from urbe.paper.mars_rover.figures import band, draw_failures
from urbe.paper.mars_rover.results import find, goals
from urbe.paper.results import Results
from urbe.report.content import Exhibit, Highlight
from urbe.report.figures import small, styled
from urbe.report.numbers import percent

WORLD = "harsh"

TICKS = (NOMINAL, 0.05, 0.1, 0.2, 0.3)
"""As many as a small figure has room for."""


def highlight(found: Results) -> Highlight | None:
    """Test returns of DQN-URBE with both sets, of DQN and of the optimum; None if one of them was not run."""
    sets = {WIDE: "paper's set", SMALL: "narrow set"}
    lines = {
        "optimum": find(found, WORLD, NO_SET, OPTIMUM, "greedy"),
        "DQN": find(found, WORLD, NO_SET, "dqn", "greedy"),
        **{f"DQN-URBE, {name}": find(found, WORLD, members, "dqn-urbe", "greedy") for members, name in sets.items()},
    }
    if not all(lines.values()):
        return None
    wide, narrow = (goals(lines[f"DQN-URBE, {name}"], NOMINAL).mean() for name in sets.values())
    message = (
        f"The uncertainty set decides: DQN-URBE reaches the goal in {percent(wide)} of episodes with the paper's "
        f"set and in {percent(narrow)} with a narrow one."
    )
    with styled():
        figure, (axes,) = small(right=1.95, left=0.6)
        shown = {name: band(each) for name, each in lines.items()}
        draw_failures(axes, np.array(GRID), shown, TICKS)
        axes.set_title("test return")
    members = set_title(WORLDS[WORLD], WIDE).removeprefix("set "), set_title(WORLDS[WORLD], SMALL).removeprefix("set ")
    caption = (
        f"Mars Rover: test return over the probability that a risky move fails, mean over seeds with 95 % intervals. "
        f"Agents were trained at {NOMINAL:g}, and the shares of episodes are measured there. The flat line is the "
        f"return of waiting. The sets contain failure probabilities from {members[0]} and from {members[1]}."
    )
    return Highlight(message, Exhibit("front", figure, caption, caption))
