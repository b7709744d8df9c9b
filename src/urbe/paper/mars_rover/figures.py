"""Figures, tables and text of the Mars Rover comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

import numpy as np
from matplotlib.axes import Axes

from urbe.paper.choice import is_own
from urbe.paper.mars_rover import (
    CHANGED,
    CONTROLS,
    EPSILON,
    EXACT_ROBUST,
    GRID,
    MAIN,
    NO_SET,
    NOMINAL,
    OPTIMUM,
    QUICK_SEEDS,
    SMALL,
    TEST_EPISODES,
    TUNING_SEEDS,
    WIDE,
    WORLDS,
    set_title,
)
from urbe.paper.mars_rover.claims import RULES, verdicts
from urbe.paper.mars_rover.maps import map_exhibits
from urbe.paper.mars_rover.results import find, goals, optimum, over_grid, returns, training, waiting
from urbe.paper.results import Results
from urbe.report.content import Exhibit, Facts, Section, Table
from urbe.report.curves import draw_bands, mark_changes
from urbe.report.dots import ROW, draw_dots
from urbe.report.figures import Figure, panels, styled
from urbe.report.numbers import interval_column
from urbe.rng import stream
from urbe.statistics.bootstrap import RESAMPLES, resample_shares
from urbe.statistics.estimates import Band, ConfidenceInterval
from urbe.statistics.verdicts import PROBABILITY, Mean
from urbe.types import FloatArray

NOISY = (
    ("dqn-ube", "noisy"),
    ("dqn-urbe", "noisy"),
    ("calibrated-dqn-urbe", "noisy"),
    ("dqn-epsilon", "epsilon"),
    ("robust-dqn-epsilon", "epsilon"),
)


LAST = 0.3
"""The axis ends here: beyond, every agent that travels is wrecked."""

TICKS = (NOMINAL, 0.05, 0.1, 0.2, 0.3)


def sections(found: Results) -> list[Section]:
    """The verdicts, a section for each world with the paper's agents, then an appendix of noisy tests and controls."""
    with styled():
        worlds = found.unique("world")
        return [
            _verdicts(found),
            *(_world(found, world) for world in worlds),
            *(section for world in worlds for section in _appendix(found, world)),
        ]


def _verdicts(found: Results) -> Section:
    harsh = WORLDS["harsh"]
    text = (
        "A rover starts in the upper left of a grid of ten by ten cells and must reach the lower right corner within "
        "200 steps. A move towards the goal may wreck it, with a probability that was 0.005 in training. The "
        "paper states neither the rewards nor which moves are risky. Here (1, f, c) are the rewards of reaching the "
        "goal, of failing, and of any other step. With f = -1 and c = -0.0048, or f = -0.235 and c = -0.001, "
        "travelling and waiting earn the same near 0.2, where the paper's curves cross.",
        "From distance d every path to the goal makes at least d risky moves, so no policy succeeds with a probability "
        "above (1 - p)^d, that of every shortest path. No agent can reach the goal by a safer route, except under the "
        "assumption that moves in line with the goal are safe (safe lines). Agents differ in whether they travel.",
        "Robust agents plan for the worst of the nominal failure probability and 15 others, which are drawn for each "
        "seed and shared by its agents. The paper draws them from (0, 1); the best robust policy then waits for 200 "
        "steps, whatever the exploration. The small sets are those for which exact robust planning still "
        f"travels: up to {harsh.small_end:g} with f = {harsh.rewards[1]:g}, up to "
        f"{WORLDS['mild'].small_end:g} with f = {WORLDS['mild'].rewards[1]:g}.",
        "Test policies are greedy; noisy, with the uncertainty head as in training; or, for agents without a head, "
        f"greedy except for random actions with probability {EPSILON:g}. The controls dqn-epsilon and "
        f"robust-dqn-epsilon also keep {EPSILON:g} of random actions in training, instead of the paper's 0.001. "
        "calibrated-dqn-urbe has an uncertainty head with a scale (one posterior standard deviation of noise) that "
        "forgets old data. All expectations are computed from the agents' weights, without playing.",
        RULES,
    )
    return Section("Verdicts", text, verdicts=tuple(verdicts(found)), facts=_facts(found))


def _facts(found: Results) -> Facts:
    seeds = sorted(found.where(metric="steps").unique("seed"))
    steps = sorted(map(int, set(found.where(metric="steps").column("value"))))
    episodes = found.where(metric="episodes").column("value")
    numbers = ", ".join(map(str, seeds))
    return (
        ("Replicates", f"{len(seeds)} seeds for each agent and assumption: {numbers}"),
        ("Tuning", _tuning(seeds)),
        (
            "Training",
            f"{' or '.join(map(str, steps))} steps, in which agents finished {min(episodes):.0f} to "
            f"{max(episodes):.0f} episodes; the paper has 3000 episodes, at most 600000 steps",
        ),
        ("Bands", f"95 % percentile bootstrap over seeds of the mean ({RESAMPLES} resamples), point by point"),
        ("Test episodes", _played(found)),
    )


def _tuning(seeds: Sequence[int]) -> str:
    """The seeds whose results were known when choices were made, and whether the page shows them."""
    first = ", ".join(str(seed) for seed in TUNING_SEEDS if seed not in QUICK_SEEDS)
    shown = "the latter are shown here" if set(seeds) & set(TUNING_SEEDS) else "none of them is shown"
    return (
        f"Seeds {first} were used to choose the number of steps; results of {', '.join(map(str, QUICK_SEEDS))} (the "
        f"quick scale) were known when the rules of the verdicts were fixed; {shown}"
    )


def _played(found: Results) -> str:
    """The distance of played episodes from the computed expectations."""
    keys = ("world", "members", "agent", "seed", "at")
    played = found.where(metric="sampled")
    if not played:
        return "none played; expectations are exact"
    computed = found.where(metric="return", acting="noisy", agent=played.unique("agent"))
    off = np.sqrt(np.nanmean((played.pivot(*keys) - computed.pivot(*keys)) ** 2))
    error = np.sqrt(np.mean(np.square(found.where(metric="sampled error").column("value"))))
    return (
        f"Expectations are computed. Means of {TEST_EPISODES} played ones, noisy test policies, are {off:.3f} away "
        f"from them (root mean square); their standard error is {error:.3f}"
    )


def _world(found: Results, world: str) -> Section:
    here = found.where(world=world)
    sets = _sets(here)
    heading = WORLDS[world].title
    best = optimum(found, world)
    text = (
        f"Waiting returns {waiting(world):.3f}. At {NOMINAL:g} no policy returns more than "
        f"{returns(best, NOMINAL)[0]:.4f} or reaches the goal more often than {goals(best, NOMINAL)[0]:.4f}; at "
        f"{CHANGED:g}, more than "
        f"{returns(best, CHANGED)[0]:.4f} and {goals(best, CHANGED)[0]:.4f}.",
    )
    curves = Exhibit(
        f"returns-{world}",
        _returns(here, world, sets, _greedy),
        f"Test return over the failure probability of every agent, acting greedily; {heading}. " + _words(here, sets),
        "The paper's Fig. 3: expected return of a greedy test episode, mean over seeds with its band. Training was at "
        f"{NOMINAL:g}. The axis is stretched near 0, where returns differ; beyond {LAST:g} they are in the table. "
        "Optimum: the best return of any policy at that probability. Exact robust: the policy of exact robust planning "
        "over the agents' sets.",
    )
    nominal = Exhibit(
        f"nominal-{world}",
        _nominal(here, world, sets, best, _dots),
        f"Test return at {NOMINAL:g} of the paper's agents, acting greedily; {heading}. Numbers: the table below.",
        f"Expected return of a greedy test episode at {NOMINAL:g}, mean over seeds and its interval. Dashed lines mark "
        "the return of waiting for the whole episode, and the optimum.",
    )
    maps = [exhibit for members in sets for exhibit in map_exhibits(here, world, members, "greedy")]
    return Section(_title(heading), text, (curves, nominal, *maps))


def _appendix(found: Results, world: str) -> list[Section]:
    """Noisy test policies and controls, and a table of everything."""
    here = found.where(world=world)
    sets = _sets(here)
    heading, best = WORLDS[world].title, optimum(found, world)
    exhibits: list[Exhibit] = []
    if any(_noisy(here, world, members) for members in sets):
        exhibits = [
            Exhibit(
                f"returns-{world}-noisy",
                _returns(here, world, sets, _noisy),
                f"Test return over the failure probability: agents that explore in tests, and controls; {heading}.",
                "The same for test policies that explore: by the noise of the uncertainty head or, for the controls, "
                f"with {EPSILON:g} of random actions.",
            ),
            Exhibit(
                f"nominal-{world}-noisy",
                _nominal(here, world, sets, best, _noisy_dots),
                f"Test return at {NOMINAL:g} of agents that explore in tests, and of controls; {heading}.",
                f"Expected return at {NOMINAL:g} of test policies that explore, and of the greedy controls.",
            ),
        ]
    exhibits += [exhibit for members in sets for exhibit in map_exhibits(here, world, members, "noisy")]
    return [
        Section(
            f"{_title(heading)}: noisy tests and controls", (), tuple(exhibits), (_table(here, world),), appendix=True
        )
    ]


def _sets(here: Results) -> list[str]:
    """The sets in the results; if there are none, one panel for the agents that need no set."""
    return [members for members in (WIDE, SMALL) if members in here.unique("members")] or [NO_SET]


def _title(heading: str) -> str:
    return f"{heading[0].upper()}{heading[1:]}"


def _words(here: Results, sets: Sequence[str]) -> str:
    """The returns at the nominal and at the changed probability, in words."""
    parts = []
    chosen = here.where(agent=tuple(MAIN), acting="greedy", members=(*sets, NO_SET))
    for (world, members, agent), result in chosen.groups("world", "members", "agent"):
        of = "" if members == NO_SET else f" ({set_title(WORLDS[world], members)})"
        nominal, changed = returns(result, NOMINAL).mean(), returns(result, CHANGED).mean()
        parts.append(f"{agent}{of} {nominal:.2f} at {NOMINAL:g} and {changed:.2f} at {CHANGED:g}")
    return "Greedily: " + "; ".join(parts) + "."


Chosen = Callable[[Results, str, str], dict[str, Results]]
"""A function from results, a world and a set to the lines of one panel, by name."""


def _own(here: Results) -> list[str]:
    return [agent for agent in here.unique("agent") if is_own(agent)]


def _greedy(here: Results, world: str, members: str) -> dict[str, Results]:
    """The paper's agents, those of the user, and the exact plans."""
    names = (*MAIN, *_own(here), OPTIMUM, EXACT_ROBUST)
    return {name: result for name in names if (result := find(here, world, members, name, "greedy"))}


def _noisy(here: Results, world: str, members: str) -> dict[str, Results]:
    """Test policies that explore, and the optimum; empty if there are none."""
    ways = (*NOISY, *((agent, acting) for agent in _own(here) for acting in ("noisy", "epsilon")))
    shown = {name: result for name, acting in ways if (result := find(here, world, members, name, acting))}
    best = find(here, world, members, OPTIMUM, "greedy")
    return {**shown, OPTIMUM: best} if shown and best else shown


def _dots(here: Results, world: str, members: str) -> dict[str, Results]:
    """The paper's agents and those of the user, acting greedily."""
    shown = _greedy(here, world, members)
    return {name: result for name, result in shown.items() if name not in (OPTIMUM, EXACT_ROBUST)}


def _noisy_dots(here: Results, world: str, members: str) -> dict[str, Results]:
    """Test policies that explore, then the controls acting greedily."""
    shown = {f"{name}, {result.one('acting')}": result for name, result in _noisy(here, world, members).items()}
    shown.pop(f"{OPTIMUM}, greedy", None)
    controls = ((name, find(here, world, members, name, "greedy")) for name in CONTROLS)
    return shown | {f"{name}, greedy": result for name, result in controls if result}


def _returns(here: Results, world: str, sets: Sequence[str], chosen: Chosen) -> Figure:
    """A panel for each set."""
    figure, axes = panels(1, 2, height=3.1, left=0.8, right=1.75, top=0.75)
    for members, panel in zip_longest(sets, axes[0]):
        if members is None:
            panel.set_visible(False)
            continue
        panel.set_title(set_title(WORLDS[world], members), pad=22.0)
        panel.set(ylabel="test return")
        draw_failures(panel, np.array(GRID), {name: band(each) for name, each in chosen(here, world, members).items()})
        mark_changes(panel, (NOMINAL, CHANGED), ("trained", f"{CHANGED:g}"))
    return figure


def draw_failures(panel: Axes, grid: FloatArray, bands: Mapping[str, Band], ticks: Sequence[float] = TICKS) -> None:
    """Lines over the failure probability, on an axis that is stretched near 0, where returns differ."""
    panel.set_xscale("function", functions=(_stretch, _unstretch))
    within = grid <= LAST
    draw_bands(panel, grid[within], {name: Band(*(each[within] for each in lines)) for name, lines in bands.items()})
    panel.set_xlabel("failure probability")
    panel.set_xticks(ticks, [f"{p:g}" for p in ticks])


def _stretch(p: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(p, 0.0))


def _unstretch(root: FloatArray) -> FloatArray:
    return np.square(root)


def _nominal(here: Results, world: str, sets: Sequence[str], best: Results, chosen: Chosen) -> Figure:
    """A panel for each set: where curves coincide, dots can be distinguished."""
    found = {members: chosen(here, world, members) for members in sets}
    rows = max(map(len, found.values()))
    figure, axes = panels(1, 2, height=ROW * (rows + 1), left=2.25, right=0.6, top=0.7)
    ends = (waiting(world), float(returns(best, NOMINAL)[0]))
    dots = {members: {name: at_nominal(each) for name, each in shown.items()} for members, shown in found.items()}
    everything = [end for shown in dots.values() for dot in shown.values() for end in dot] + list(ends)
    margin = 0.05 * (max(everything) - min(everything))
    for members, panel in zip_longest(sets, axes[0]):
        if members is None:
            panel.set_visible(False)
            continue
        shown = dots[members]
        panel.set_title(set_title(WORLDS[world], members), pad=22.0)
        panel.set_xlabel(f"test return at {NOMINAL:g}")
        panel.set_xlim(min(everything) - margin, max(everything) + margin)
        draw_dots(panel, list(shown), {"": list(shown.values())})
        mark_changes(panel, ends, ("waiting", "optimum"))
    return figure


def at_nominal(result: Results) -> ConfidenceInterval:
    """The band at the nominal probability."""
    return ConfidenceInterval(*(float(line[GRID.index(NOMINAL)]) for line in band(result)))


def band(result: Results) -> Band:
    """Mean return over seeds at each point of the grid, and its bootstrap interval, 95 %, point by point."""
    names = ("world", "members", "agent", "acting")
    rng = stream(0, "mars rover band", *(result.one(name) for name in names))
    values = over_grid(result, "return")
    shares = resample_shares(len(values), rng, RESAMPLES, len(GRID))
    low, high = np.quantile(np.concatenate([each @ values for each in shares]), (0.025, 0.975), axis=0)
    return Band(values.mean(axis=0), low, high)


def _table(here: Results, world: str) -> Table:
    tested = here.where(acting=("greedy", "noisy", "epsilon"), metric=("return", "goal", "flipped"))
    learned = [
        (names, result)
        for names, result in tested.groups("agent", "members", "acting")
        if names[0] not in (OPTIMUM, EXACT_ROBUST)
    ]
    columns = [
        interval_column([_interval(samples(result), *within) for _, result in learned], most=3)
        for samples, within in (
            (lambda result: returns(result, NOMINAL), ()),
            (lambda result: returns(result, CHANGED), ()),
            (lambda result: goals(result, NOMINAL), (PROBABILITY,)),
            (lambda result: goals(result, CHANGED), (PROBABILITY,)),
            (lambda result: result.where(metric="flipped").pivot("seed"), (PROBABILITY,)),
            (lambda result: training(here, result, "episodes"), ()),
        )
    ]
    head = ("agent", "set", "test policy", f"return at {NOMINAL:g}", f"at {CHANGED:g}", f"goal at {NOMINAL:g}",
            f"at {CHANGED:g}", "not greedy", "training episodes")  # fmt: skip
    rows = tuple(
        (agent, set_title(WORLDS[world], members), acting, *(column[i] for column in columns))
        for i, ((agent, members, acting), _) in enumerate(learned)
    )
    title = (
        "Expected return, probability of the goal, share of actions that are not greedy, with 95 % intervals over seeds"
    )
    return Table(title, head, rows)


def _interval(samples: FloatArray, within: tuple[float, float] = (-np.inf, np.inf)) -> ConfidenceInterval | None:
    return Mean(samples, within).interval(0.95)
