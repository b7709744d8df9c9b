"""Quantities of the CartPole comparison, from its rows: numbers by seed, and curves over common abscissae."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from urbe.paper.cartpole import ALL
from urbe.paper.cartpole.states import DRAWN, LEAN, TRACK, cell_of
from urbe.paper.results import Results
from urbe.statistics.estimates import Band, mean_band
from urbe.types import FloatArray


def readings(results: Results) -> list[tuple[str, Results]]:
    """Returns the kinds of inputs, raw ones first, with their results; the functions below take those of one kind."""
    return [(inputs, results.where(inputs=inputs)) for inputs in sorted(results.unique("inputs"))]


def agents_of(here: Results) -> list[str]:
    """Returns the agents in the order of `ALL`, then others."""
    present = here.unique("agent")
    return [*(agent for agent in ALL if agent in present), *(agent for agent in present if agent not in ALL)]


def changed_agents(here: Results, change: float) -> list[str]:
    """Returns the agents with a change of the pole."""
    return [agent for agent in agents_of(here) if by_seed(here, agent, "late", change=change)]


def changes_of(here: Results) -> list[float]:
    """Returns the half lengths to which the pole changed."""
    return sorted(change for change in here.unique("change") if change)


def ways(here: Results) -> tuple[str, ...]:
    """The ways of acting in tests."""
    return ("greedy", "noisy") if here.where(acting="noisy") else ("greedy",)


def places(here: Results, metric: str) -> list[float]:
    """Returns the points with numbers of a metric before any change, in increasing order."""
    return sorted(here.where(metric=metric, change=0.0).unique("at"))


def by_seed(
    here: Results,
    agent: str,
    metric: str,
    acting: str = "training",
    *,
    change: float = 0.0,
    at: float = 0.0,
) -> dict[int, float]:
    """Returns the number of each seed; an agent without noise acts greedily in noisy tests."""
    mine = here.where(agent=agent, metric=metric, change=change, at=at)
    return (mine.where(acting=acting) or mine.where(acting="greedy" if acting == "noisy" else acting)).by("seed")


def seeds_of(here: Results, agents: Iterable[str]) -> list[int]:
    """Returns the seeds common to all these agents."""
    common = [set(by_seed(here, agent, "steps")) for agent in agents]
    return sorted(set.intersection(*common)) if common else []


def scores(
    here: Results,
    agent: str,
    metric: str,
    acting: str = "training",
    *,
    seeds: Sequence[int] | None = None,
    change: float = 0.0,
    at: float = 0.0,
) -> FloatArray:
    """`(n,)` the numbers of some seeds, by default all of the agent's; NaN if missing."""
    found = by_seed(here, agent, metric, acting, change=change, at=at)
    return np.array([found.get(seed, np.nan) for seed in (seeds_of(here, [agent]) if seeds is None else seeds)])


def level(
    here: Results, agent: str, acting: str, lengths: Sequence[float], seeds: Sequence[int] | None = None
) -> FloatArray:
    """`(n,)` mean test return of each seed over some lengths."""
    found = [scores(here, agent, "return", acting, seeds=seeds, at=length) for length in lengths]
    mean: FloatArray = np.mean(found, axis=0)
    return mean


def visits_of(here: Results, agent: str, acting: str) -> dict[int, FloatArray]:
    """`(2, DRAWN, DRAWN)` number of times each action was taken in each cell in tests, by seed; empty if missing."""
    mine = here.where(agent=agent, acting=acting, metric=("visits-0", "visits-1"))
    found = {}
    for (seed,), rows in mine.groups("seed") if mine else []:
        counts = found[seed] = np.zeros((2, DRAWN, DRAWN))
        for action in (0, 1):
            x, theta, times = (
                np.array(rows.where(metric=f"visits-{action}").column(name)) for name in ("at", "also", "value")
            )
            np.add.at(counts[action], (cell_of(x, TRACK, DRAWN), cell_of(theta, LEAN, DRAWN)), times)
    return found


class Curves(NamedTuple):
    """`(m,)` abscissae, and for each agent a `(seeds, m)` array."""

    x: FloatArray
    of: dict[str, FloatArray]


def over_lengths(here: Results, acting: str, agents: Sequence[str]) -> Curves:
    """Test returns over half lengths."""
    lengths = places(here, "return")
    lines = {}
    for agent in agents:
        found = [scores(here, agent, "return", acting, at=length) for length in lengths]
        lines[agent] = np.stack(found, axis=1)
    return Curves(np.array(lengths), lines)


def around_change(here: Results, metric: str, change: float, agents: Sequence[str]) -> Curves:
    """Training returns around a change of the pole, over steps ("curve") or episodes ("episodes") since the change.

    Points missing for some agent or seed are omitted.
    """
    of_agents = {agent: _around(here, metric, change, agent) for agent in agents}
    points = [set(line) for lines in of_agents.values() for line in lines]
    x = sorted(set.intersection(*points)) if points else []
    return Curves(
        np.array(x), {agent: np.array([[line[at] for at in x] for line in lines]) for agent, lines in of_agents.items()}
    )


def _around(here: Results, metric: str, change: float, agent: str) -> list[dict[float, float]]:
    """For each seed, returns by time since the change."""
    trained = by_seed(here, agent, "steps")
    mine = here.where(agent=agent, metric=metric)
    lines = []
    for seed in by_seed(here, agent, "late", change=change):
        line = mine.where(seed=seed, change=change).by("at")
        if metric == "curve":
            line |= {at - trained[seed]: value for at, value in mine.where(seed=seed, change=0.0).by("at").items()}
        lines.append(line)
    return lines


def bands(curves: Curves) -> dict[str, Band]:
    """Means with their 95 % intervals over seeds; without width for a single seed."""
    return {
        agent: mean_band(values) if len(values) > 1 else Band(values[0], values[0], values[0])
        for agent, values in curves.of.items()
    }
