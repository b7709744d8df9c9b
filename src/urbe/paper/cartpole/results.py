"""Quantities of the CartPole comparison, from its rows: numbers by seed, and curves over common abscissae."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from urbe.paper.cartpole.cells import ALL
from urbe.paper.results import Results
from urbe.statistics.estimates import Band, mean_band
from urbe.types import FloatArray


class StateVisits(NamedTuple):
    """How often an action was taken around a place, in one seed's tests."""

    action: int
    x: float
    theta: float
    times: float


def inputs_of(results: Results) -> list[str]:
    """The readings there are, raw inputs first."""
    return sorted(results.unique("inputs"))


def agents_of(results: Results, inputs: str) -> list[str]:
    """The agents there are, in the order of `cells.ALL`; others after them."""
    present = results.where(inputs=inputs).unique("agent")
    return [*(agent for agent in ALL if agent in present), *(agent for agent in present if agent not in ALL)]


def changes_of(results: Results, inputs: str) -> list[float]:
    """Half lengths to which the pole changed."""
    return sorted(change for change in results.where(inputs=inputs).unique("change") if change)


def ways(results: Results, inputs: str) -> tuple[str, ...]:
    """Of acting in tests."""
    return ("greedy", "noisy") if results.where(inputs=inputs, acting="noisy") else ("greedy",)


def places(results: Results, inputs: str, metric: str, change: float = 0.0) -> list[float]:
    """Where there are numbers of a metric, in increasing order."""
    return sorted(results.where(inputs=inputs, metric=metric, change=change).unique("at"))


def by_seed(
    results: Results,
    inputs: str,
    agent: str,
    metric: str,
    acting: str = "training",
    *,
    change: float = 0.0,
    at: float = 0.0,
) -> dict[int, float]:
    """The number of each seed; an agent that has no noise acts greedily where noise is asked for."""
    mine = results.where(inputs=inputs, agent=agent, metric=metric, change=change, at=at)
    return (mine.where(acting=acting) or mine.where(acting="greedy" if acting == "noisy" else acting)).by("seed")


def seeds_of(results: Results, inputs: str, agents: Iterable[str]) -> list[int]:
    """The seeds with which all these agents were run."""
    common = [set(by_seed(results, inputs, agent, "steps")) for agent in agents]
    return sorted(set.intersection(*common)) if common else []


def scores(
    results: Results,
    inputs: str,
    agent: str,
    metric: str,
    acting: str = "training",
    *,
    seeds: Sequence[int],
    change: float = 0.0,
    at: float = 0.0,
) -> FloatArray:
    """`(n,)` the numbers of some seeds, NaN where there is none."""
    found = by_seed(results, inputs, agent, metric, acting, change=change, at=at)
    return np.array([found.get(seed, np.nan) for seed in seeds])


def level(
    results: Results, inputs: str, agent: str, acting: str, lengths: Sequence[float], seeds: Sequence[int]
) -> FloatArray:
    """`(n,)` mean test return of each seed over some lengths."""
    found = [scores(results, inputs, agent, "return", acting, seeds=seeds, at=length) for length in lengths]
    mean: FloatArray = np.mean(found, axis=0)
    return mean


def visits_of(results: Results, inputs: str, agent: str, acting: str) -> dict[int, list[StateVisits]]:
    """The states visited in tests, by seed; empty where they were not kept."""
    mine = results.where(inputs=inputs, agent=agent, acting=acting)
    found: dict[int, list[StateVisits]] = {}
    for action in (0, 1):
        rows = mine.where(metric=f"visits-{action}")
        for seed, *place in zip(*map(rows.column, ("seed", "at", "also", "value")), strict=True):
            found.setdefault(seed, []).append(StateVisits(action, *place))
    return found


class Curves(NamedTuple):
    """`(m,)` abscissae, and for each agent a `(seeds, m)` array."""

    x: FloatArray
    of: dict[str, FloatArray]


def over_lengths(results: Results, inputs: str, acting: str, agents: Sequence[str]) -> Curves:
    """Test returns over half lengths."""
    lengths = places(results, inputs, "return")
    lines = {}
    for agent in agents:
        seeds = seeds_of(results, inputs, [agent])
        found = [scores(results, inputs, agent, "return", acting, seeds=seeds, at=length) for length in lengths]
        lines[agent] = np.stack(found, axis=1)
    return Curves(np.array(lengths), lines)


def around_change(results: Results, inputs: str, metric: str, change: float, agents: Sequence[str]) -> Curves:
    """Training returns around a change of the pole, over steps ("curve") or episodes ("episodes") since then.

    Points that some agent or seed lacks are left out.
    """
    of_agents = {agent: _around(results, inputs, metric, change, agent) for agent in agents}
    points = [set(line) for lines in of_agents.values() for line in lines]
    x = sorted(set.intersection(*points)) if points else []
    return Curves(
        np.array(x), {agent: np.array([[line[at] for at in x] for line in lines]) for agent, lines in of_agents.items()}
    )


def _around(results: Results, inputs: str, metric: str, change: float, agent: str) -> list[dict[float, float]]:
    """For each seed, returns by time since the change."""
    trained = by_seed(results, inputs, agent, "steps")
    mine = results.where(inputs=inputs, agent=agent, metric=metric)
    lines = []
    for seed in by_seed(results, inputs, agent, "late", change=change):
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
