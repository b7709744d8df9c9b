"""Figures of the CartPole chapter, each with its verdicts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from urbe.paper.cartpole import AFTER, EPISODES, FRESH_SEEDS, LENGTHS, NOMINAL, PAPER, PICTURED, TUNING_SEEDS
from urbe.paper.cartpole.claims import MARGIN, REACHED, verdicts
from urbe.paper.cartpole.results import (
    Curves,
    agents_of,
    around_change,
    bands,
    by_seed,
    changed_agents,
    changes_of,
    over_lengths,
    readings,
    seeds_of,
    visits_of,
    ways,
)
from urbe.paper.cartpole.states import DRAWN, LEAN, SHARE, TRACK
from urbe.paper.cartpole.tables import change_table, changed_tests_table, lengths_table, returns_table, spans_table
from urbe.paper.results import Results
from urbe.report.content import Exhibit, Section
from urbe.report.curves import draw_bands, mark_changes
from urbe.report.figures import panels, styled
from urbe.report.maps import draw_cloud
from urbe.report.numbers import percent
from urbe.report.style import ACTIONS, INK

BROKEN = "The axis of returns need not begin at 0; the highest return is 200."

HIGHEST, STEP = 208.0, 25.0
"""The upper end of the axis of returns, and the grid on which its lower end lies."""

LEAST_POINTS = 2
"""Least number of points of a line."""

NAMES = ("the paper's agents", "controls and variants")


def sections(found: Results) -> list[Section]:
    """What was run and how it is judged, a section for each figure of the paper, then the appendix."""
    with styled():
        both = readings(found)
        return [
            _opening(found),
            *(_lengths(inputs, here) for inputs, here in both),
            states_section(found, "greedy"),
            *(_changes(inputs, here) for inputs, here in both if changes_of(here)),
            *(_lengths_appendix(inputs, here) for inputs, here in both),
            *([states_section(found, "noisy")] if any("noisy" in ways(here) for _, here in both) else []),
            *(_changes_appendix(inputs, here) for inputs, here in both if changes_of(here)),
        ]


def _opening(found: Results) -> Section:
    text = (
        "A cart is pushed left or right to keep its pole upright for 200 steps; every step survived pays 1. Agents "
        f"train with a pole of half length {NOMINAL:g} and the paper's networks and hyper-parameters; robust agents "
        "also have its set of 15 sampled lengths. A standard deviation of 0.25, a replay of 10,000 transitions, "
        "epsilon falling to 0.00001 over 20,000 steps, target copies every 10 episodes and unscaled observations (raw "
        "inputs) are assumptions; scaled inputs are divided by roughly their largest values. The controls dqn-epsilon "
        "and robust-dqn-epsilon never stop exploring: their epsilon falls to 0.1. Two variants of DQN-URBE forget old "
        "features (0.999 per step); one of them has a calibrated uncertainty.",
        "Tests have 200 episodes each. They are greedy or noisy: with the noise of the uncertainty head, or for the "
        "controls with a tenth of random actions; agents without noise act greedily in both. Longer poles are all "
        "tested poles above the nominal one, and the loss is the return with the nominal pole minus the mean over "
        "them. After a change of the pole, training continues from the same trained agent. Early and late are the "
        "first and the last quarter of the time since then, and before is a period of the same length before the "
        "change; the gain is the mean return since the change minus that before. "
        f"An agent dips if early is more than {MARGIN:g} lower than before; the premise of claims about recovery is "
        f"that one of their agents dips. An agent does not recover if it stays more than {MARGIN:g} below; returns of "
        f"at least {REACHED:g} count as the highest. All agents of a seed share the uncertainty set, the initial "
        "weights and the test episodes, so that differences are paired by seed.",
    )
    facts = (
        ("Replicates", f"{_counted(found)}, of the fresh seeds {FRESH_SEEDS[0]} to {FRESH_SEEDS[-1]}"),
        (
            "Tuning",
            f"numbers of steps were chosen on the seeds {', '.join(map(str, TUNING_SEEDS))}; three of the fresh seeds "
            f"({FRESH_SEEDS[0]} to {FRESH_SEEDS[2]}, those of the quick scale, trained for less) had been seen before "
            "the rules of the verdicts were final",
        ),
        ("Training", _trained(found)),
    )
    return Section("Verdicts", text, verdicts=tuple(verdicts(found)), facts=facts)


def _counted(found: Results) -> str:
    counts = {
        inputs: sorted({len(seeds_of(here, [agent])) for agent in agents_of(here)}) for inputs, here in readings(found)
    }
    return "; ".join(
        f"{inputs} inputs: {' or '.join(map(str, n))} seeds for each agent" for inputs, n in counts.items()
    )


def _trained(found: Results) -> str:
    lengths = []
    for inputs, here in readings(found):
        ranges = []
        for metric in ("steps", "ended"):
            of = [n for agent in agents_of(here) for n in by_seed(here, agent, metric).values()]
            ranges.append(f"{min(of):,.0f}" + (f" to {max(of):,.0f}" if max(of) > min(of) else ""))
        lengths.append(f"{inputs} inputs: {ranges[0]} steps, {ranges[1]} episodes")
    return "; ".join(lengths) + f"; the paper has {EPISODES:,} episodes, and {AFTER:,} after a change"


def _split(here: Results) -> list[list[str]]:
    """The paper's agents, then DQN-URBE among all others: few enough lines for each panel."""
    present = agents_of(here)
    others = [agent for agent in present if agent not in PAPER]
    own = ["dqn-urbe"] if "dqn-urbe" in present else []
    return [[agent for agent in present if agent in PAPER], *([own + others] if others else [])]


def _lengths(inputs: str, here: Results) -> Section:
    exhibit = Exhibit(
        f"lengths-{inputs}",
        _over_lengths(here, [(NAMES[0], "greedy", _split(here)[0])], columns=1),
        f"Mean return in greedy tests over half lengths of the pole from {min(LENGTHS):g} to {max(LENGTHS):g}, a line "
        f"for each of the paper's agents, {inputs} inputs. The table has the numbers.",
        f"Means over seeds with 95 % intervals, point by point. The vertical line is the length in training. {BROKEN}",
        (returns_table(here, "greedy"),),
    )
    text = (f"The paper's Fig. 5, with {inputs} inputs.",)
    return Section(
        f"Test returns over pole lengths, {inputs} inputs", text, (exhibit,), (lengths_table(here, "greedy"),)
    )


def _lengths_appendix(inputs: str, here: Results) -> Section:
    """Controls and variants, and noisy tests of all agents."""
    shown = [
        (name, acting, agents)
        for acting in ways(here)
        for name, agents in zip(NAMES, _split(here), strict=False)
        if (name, acting) != (NAMES[0], "greedy")
    ]
    title = f"Controls and noisy tests over pole lengths, {inputs} inputs"
    if not shown:
        return Section(title, ("There are none.",), appendix=True)
    played = [acting for acting in ways(here) if acting != "greedy"]
    exhibit = Exhibit(
        f"lengths-{inputs}-controls",
        _over_lengths(here, shown),
        f"Mean return in tests over half lengths of the pole, of controls and variants, and of noisy tests, {inputs} "
        "inputs.",
        f"Means over seeds with 95 % intervals, point by point. {BROKEN}",
        tuple(returns_table(here, acting) for acting in played),
    )
    return Section(title, (), (exhibit,), tuple(lengths_table(here, acting) for acting in played), appendix=True)


def _over_lengths(here: Results, shown: Sequence[tuple[str, str, Sequence[str]]], columns: int = 2) -> Figure:
    figure, axes = panels(-(-len(shown) // columns), columns, height=2.7, right=1.75, top=0.6)
    for item, panel in zip_longest(shown, (panel for row in axes for panel in row)):
        if item is None:
            panel.set_visible(False)
            continue
        name, acting, agents = item
        panel.set_title(f"{name}, {acting}", pad=18.0)
        panel.set(xlabel="half length of the pole", ylabel="return in tests")
        _draw(panel, over_lengths(here, acting, agents))
        mark_changes(panel, [NOMINAL], ["trained"])
    return figure


def _changes(inputs: str, here: Results) -> Section:
    changes = changes_of(here)
    text = (
        f"The paper's Fig. 6 c, with {inputs} inputs: training continues while the pole changes from {NOMINAL:g} to "
        f"{' or, separately, to '.join(f'{change:g}' for change in changes)}.",
    )
    return Section(
        f"A change of the pole in training, {inputs} inputs",
        text,
        (_over_time(inputs, here, "curve", NAMES[0]),),
        tuple(make(here, change) for change in changes for make in (change_table, changed_tests_table)),
    )


def _changes_appendix(inputs: str, here: Results) -> Section:
    both = [NAMES[k] for k in range(len(_split(here)))]
    return Section(
        f"Controls and returns by episode after a change, {inputs} inputs",
        (),
        (
            *(_over_time(inputs, here, "curve", name) for name in both[1:]),
            *(_over_time(inputs, here, "episodes", name) for name in both),
        ),
        appendix=True,
    )


def _over_time(inputs: str, here: Results, metric: str, group: str) -> Exhibit:
    """A panel for each change, with equal times before and after it."""
    changes, steps = changes_of(here), metric == "curve"
    everyone = _split(here)[NAMES.index(group)]
    figure, axes = panels(-(-len(changes) // 2), 2, height=2.7, right=1.75, top=0.6)
    for change, panel in zip_longest(changes, (panel for row in axes for panel in row)):
        if change is None:
            panel.set_visible(False)
            continue
        agents = [agent for agent in everyone if agent in changed_agents(here, change)]
        panel.set_title(f"{NOMINAL:g} to {change:g}", pad=18.0)
        panel.set(
            xlabel="thousand steps since the change" if steps else "episodes since the change",
            ylabel="return in training",
        )
        curves = _around(around_change(here, metric, change, agents))
        _draw(panel, curves._replace(x=curves.x / 1000.0) if steps else curves)
        mark_changes(panel, [0.0], ["change"])
    over, of = ("steps", "episodes that ended in 1000 steps") if steps else ("episodes", "groups of episodes")
    suffix = "" if group == NAMES[0] else "-controls"
    return Exhibit(
        f"change-{inputs}-{over}{suffix}",
        figure,
        f"Mean return of training episodes over {over} before and after the pole changes, a line for each agent, "
        f"{inputs} inputs, {group}; a panel for each change.",
        f"{group[0].upper()}{group[1:]}: means over seeds with 95 % intervals, point by point, of {of}. The vertical "
        f"line marks the change. {BROKEN}",
    )


def _around(curves: Curves) -> Curves:
    """Restricts curves to equal times before and after the change: earlier, agents still learn to balance."""
    if not len(curves.x):
        return curves
    within = curves.x >= -max(float(curves.x[-1]), 0.0)
    return Curves(curves.x[within], {agent: lines[:, within] for agent, lines in curves.of.items()})


def _draw(panel: Axes, curves: Curves) -> None:
    """Lines and bands; the axis begins below the lowest band."""
    if not curves.of or len(curves.x) < LEAST_POINTS:
        panel.set_ylim(0.0, HIGHEST)
        return
    drawn = bands(curves)
    low = min(float(np.nanmin(band.low)) for band in drawn.values())
    panel.set_ylim(max(STEP * np.floor(low / STEP), 0.0), HIGHEST)
    draw_bands(panel, curves.x, drawn)


PUSHES = {"pushes left": ACTIONS[0], "pushes right": ACTIONS[1]}


def states_section(found: Results, acting: str) -> Section:
    """A figure and a table for each kind of inputs, with greedy or with noisy tests; the latter in the appendix."""
    noisy = acting == "noisy"
    text = (
        f"The paper's Fig. 6 a and b: positions and angles in 200 test episodes with the nominal pole, {NOMINAL:g}. "
        f"The span is the area of the fewest cells (0.05 m by a quarter of a degree) that hold {percent(SHARE)} of the "
        "states, in metres times degrees.",
    )
    return Section(
        "States visited in noisy tests" if noisy else "States visited in tests",
        () if noisy else text,
        tuple(_exhibit(inputs, here, acting) for inputs, here in readings(found) if _shown(here, acting)),
        tuple(spans_table(here, acting) for _, here in readings(found) if acting in ways(here)),
        appendix=noisy,
    )


def _shown(here: Results, acting: str) -> list[tuple[str, str]]:
    """Agent and way of acting of each column; noisy only for agents with noise."""
    return [(agent, acting) for agent in PICTURED if acting in ways(here) and visits_of(here, agent, acting)]


def _exhibit(inputs: str, here: Results, acting: str) -> Exhibit:
    shown = _shown(here, acting)
    figure, axes = panels(2, max(len(shown), 2), height=2.5, left=0.75, right=0.25, top=0.7)
    for row in axes:
        for panel in row[len(shown) :]:
            panel.set_visible(False)
    for k, (agent, acting) in enumerate(shown):
        visits = visits_of(here, agent, acting)
        seed = median_seed(by_seed(here, agent, "span", acting))
        for row, what, of in (
            (axes[0], f"seed {seed}", visits.get(seed, np.zeros((2, DRAWN, DRAWN)))),
            (axes[1], f"all seeds ({len(visits)})", np.sum(list(visits.values()), axis=0)),
        ):
            panel = row[k]
            panel.set_title(f"{agent}, {acting}: {what}", fontsize=10.0)
            panel.set(xlabel="position x, m", ylabel="angle, degrees")
            draw_cloud(panel, of, (TRACK, LEAN), tuple(PUSHES.values()))
    _name_actions(axes[0][0])
    return Exhibit(
        f"states-{inputs}{'-noisy' if acting == 'noisy' else ''}",
        figure,
        f"Cart positions and pole angles visited in tests, {inputs} inputs, coloured by action: "
        f"{', '.join(f'{agent} acting {acting}' for agent, acting in shown)}; above one seed each, below all seeds.",
        "Cells have the colour of their most frequent action, stronger with more visits (on a logarithmic scale). "
        "Above, the seed with the median span; below, all seeds together. The axes end where episodes terminate.",
    )


def median_seed(spans: dict[int, float]) -> int:
    """The seed with the median span; of two middle ones, the lower."""
    ordered = sorted(spans, key=lambda seed: (spans[seed], seed))
    return ordered[(len(ordered) - 1) // 2]


def _name_actions(panel: Axes) -> None:
    """Names the colours above the title; the text is in the colour of the page's text."""
    for left, (name, colour) in zip((0.0, 0.5), PUSHES.items(), strict=True):
        panel.plot(
            [left + 0.03], [1.2], marker="s", markersize=6.0, color=colour, transform=panel.transAxes, clip_on=False
        )
        panel.text(left + 0.08, 1.2, name, transform=panel.transAxes, va="center", fontsize=9.0, color=INK)
