"""States visited in tests, coloured by action [Derman2019] Fig. 6 a and b."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes

from urbe.experiments.cartpole import Found, Visits
from urbe.experiments.cartpole_cells import NOMINAL, PICTURED
from urbe.experiments.cartpole_states import DRAWN, LEAN, SHARE, TRACK
from urbe.experiments.cartpole_tables import spans_table
from urbe.experiments.cartpole_verdicts import over_states, ways
from urbe.report.clouds import draw_cloud
from urbe.report.content import Exhibit, Section
from urbe.report.panels import panels
from urbe.report.style import ACTIONS, INK
from urbe.types import FloatArray

PUSHES = {"pushes left": ACTIONS[0], "pushes right": ACTIONS[1]}


def states_section(found: Found) -> Section:
    """A figure and a table for each reading."""
    text = (
        f"The paper's Fig. 6 a and b: positions and angles in 200 test episodes with the nominal pole, {NOMINAL:g}. "
        f"The span is the area of the fewest cells (0.05 m by a quarter of a degree) that hold {SHARE:.0%} of the "
        "states, in metres times degrees.",
    )
    exhibits = [_exhibit(found, inputs) for inputs in found.inputs if _shown(found, inputs)]
    told = [over_states(found, inputs, acting) for inputs in found.inputs for acting in ways(found, inputs)]
    return Section(
        "States visited in tests",
        text,
        tuple(exhibits),
        tuple(spans_table(found, inputs, acting) for inputs in found.inputs for acting in ways(found, inputs)),
        tuple(verdict for each in told for verdict in each),
    )


def _shown(found: Found, inputs: str) -> list[tuple[str, str]]:
    """Agent and way of acting of each column; noise only where it makes a difference."""
    pairs = [(agent, acting) for agent in PICTURED for acting in ways(found, inputs)]
    return [
        (agent, acting)
        for agent, acting in pairs
        if found.visits(inputs, agent, acting)
        and (acting == "greedy" or found.visits(inputs, agent, acting) is not found.visits(inputs, agent, "greedy"))
    ]


def _exhibit(found: Found, inputs: str) -> Exhibit:
    shown = _shown(found, inputs)
    figure, axes = panels(2, len(shown), height=2.5, left=0.75, right=0.25, top=0.7)
    for k, (agent, acting) in enumerate(shown):
        visits = found.visits(inputs, agent, acting)
        seed = median_seed(found.by_seed(inputs, agent, "span", acting))
        for row, told, of in (
            (axes[0], f"seed {seed}", visits.get(seed, [])),
            (axes[1], f"all seeds ({len(visits)})", [one for each in visits.values() for one in each]),
        ):
            panel = row[k]
            panel.set_title(f"{agent}, {acting}: {told}", fontsize=10.0)
            panel.set_xlabel("position x, m")
            panel.set_ylabel("angle, degrees")
            draw_cloud(panel, grid(of), (TRACK, LEAN), tuple(PUSHES.values()))
    _name_actions(axes[0][0])
    return Exhibit(
        f"states-{inputs}",
        figure,
        f"Cart positions and pole angles visited in tests, {inputs} inputs, coloured by action: "
        f"{', '.join(f'{agent} acting {acting}' for agent, acting in shown)}; above one seed each, below all seeds.",
        "Cells in the colour of the action taken there most, the stronger the more visits (by their logarithm). Above, "
        "the seed with the median span; below, all seeds together. Axes end where episodes do.",
    )


def median_seed(spans: dict[int, float]) -> int:
    """The seed whose span is in the middle; of two, that of the lower."""
    ordered = sorted(spans, key=lambda seed: (spans[seed], seed))
    return ordered[(len(ordered) - 1) // 2]


def grid(visits: Iterable[Visits]) -> FloatArray:
    """`(2, DRAWN, DRAWN)` how often each action was taken in each cell."""
    counts = np.zeros((2, DRAWN, DRAWN))
    for action, x, theta, times in visits:
        i, j = (int((value / end + 1.0) * 0.5 * DRAWN) for value, end in ((x, TRACK), (theta, LEAN)))
        counts[action, i, j] += times
    return counts


def _name_actions(panel: Axes) -> None:
    """Names of the colours, above the title; the writing is in the page's own colour."""
    for left, (name, colour) in zip((0.0, 0.5), PUSHES.items(), strict=True):
        panel.plot(
            [left + 0.03], [1.2], marker="s", markersize=6.0, color=colour, transform=panel.transAxes, clip_on=False
        )
        panel.text(left + 0.08, 1.2, name, transform=panel.transAxes, va="center", fontsize=9.0, color=INK)
