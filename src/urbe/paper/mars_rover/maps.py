"""Heat maps of visits: the paper's four panels first, then all other agents at both probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from urbe.paper.mars_rover import CHANGED, NOMINAL, WORLDS, set_title
from urbe.paper.mars_rover.results import HEADS, find, visits
from urbe.paper.results import Results
from urbe.report.content import Exhibit
from urbe.report.figures import WIDTH, Figure
from urbe.report.maps import Zone, draw_heatmap, draw_key
from urbe.report.numbers import percent
from urbe.types import FloatArray

SIZE = 10

ZONES = {"start": Zone(0, 0, 3, 3), "goal": Zone(SIZE - 1, SIZE - 1)}

PAPER = (("robust-dqn", NOMINAL), ("dqn-urbe", NOMINAL), ("dqn-ube", CHANGED), ("dqn-urbe", CHANGED))

OTHERS = (("dqn", NOMINAL), ("dqn-ube", NOMINAL), ("dqn", CHANGED), ("robust-dqn", CHANGED))

_SIDE, _ABOVE, _BELOW, _KEY = 2.0, 0.75, 0.3, 0.3  # inches


def map_exhibits(found: Results, world: str, members: str, acting: str) -> list[Exhibit]:
    """Draws a figure for a test policy, if it depends on the set; the noisy one shows agents with noise."""
    wanted = [panel for panel in (*PAPER, *OTHERS) if acting == "greedy" or panel[0] in HEADS]
    chosen = [(find(found, world, members, agent, acting), p) for agent, p in wanted]
    shown = [(result, p) for result, p in chosen if result.where(metric="visits")]
    if not any(result.one("members") == members for result, _ in shown):
        return []
    lettered = acting == "greedy" and len(shown) == len(wanted)
    title = f"{WORLDS[world].title}, {set_title(WORLDS[world], members)}, {acting} test policy"
    ends = "; ".join(f"{result.one('agent')} at {p:g} {_ending(result, p)}" for result, p in shown)
    return [
        Exhibit(
            f"visits-{world}-{members}-{acting}",
            _draw(shown, lettered),
            f"Grids of ten by ten cells, coloured by how often each is visited; {title}. How episodes end: {ends}.",
            f"{set_title(WORLDS[world], members).capitalize()}, {acting}: share of an episode's visits in each "
            "cell: exact expectation, mean over seeds. "
            + ("The first four are the paper's Fig. 4 a to d. " if lettered else "")
            + "Above each grid, how episodes end.",
        )
    ]


def shares(result: Results, p: float) -> FloatArray:
    """`(10, 10)` share of visits of each cell; the wreck does not count as a cell."""
    cells = visits(result, p)[: SIZE * SIZE].reshape(SIZE, SIZE)
    scaled: FloatArray = cells / cells.sum()
    return scaled


def _ending(result: Results, p: float) -> str:
    goal, wreck = visits(result, p)[-2:]
    return f"goal {percent(goal)}, wrecked {percent(wreck)}, out of time {percent(max(1.0 - goal - wreck, 0.0))}"


def _draw(shown: Sequence[tuple[Results, float]], lettered: bool) -> Figure:
    rows = -(-len(shown) // 4)
    height = rows * (_ABOVE + _SIDE + _BELOW) + _KEY
    figure = Figure(figsize=(WIDTH, height))
    across = WIDTH / 4
    for k, (result, p) in enumerate(shown):
        row, column = divmod(k, 4)
        bottom = height - (row + 1) * (_ABOVE + _SIDE + _BELOW) + _BELOW
        place = (column * across + 0.5 * (across - _SIDE), bottom, _SIDE, _SIDE)
        axes = figure.add_axes(tuple(np.array(place) / (WIDTH, height, WIDTH, height)))
        letter = f"({'abcd'[k]}) " if lettered and k < 4 else ""
        axes.set_title(f"{letter}{result.one('agent')}, p = {p:g}", pad=30.0)
        axes.annotate(
            _ending(result, p).replace(", out", ",\nout"),
            xy=(1.0, 1.0), xycoords="axes fraction", xytext=(0.0, 3.0), textcoords="offset points",
            ha="right", va="bottom", fontsize=8.0, annotation_clip=False,
        )  # fmt: skip
        draw_heatmap(axes, shares(result, p), ZONES)
    key = figure.add_axes((0.03, 0.02 / height, 0.94, 0.25 / height))
    draw_key(key, "share of visits:")
    return figure
