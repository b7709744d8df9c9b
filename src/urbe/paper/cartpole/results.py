"""The results of the CartPole comparison by seed, and curves over common abscissae."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from urbe.paper.cartpole.cells import ALL
from urbe.paper.cartpole.cells import CELLS as CELLS
from urbe.paper.cartpole.cells import Row as Row
from urbe.statistics.estimates import Band, mean_band
from urbe.types import FloatArray


class Key(NamedTuple):
    """What a number is about, apart from the seed; see `Row`."""

    inputs: str
    agent: str
    change: float
    acting: str
    metric: str
    at: float


class Visits(NamedTuple):
    """How often an action was taken around a place, in one seed's tests."""

    action: int
    x: float
    theta: float
    times: float


class Found:
    """All numbers, by what they are about and by seed.

    Args:
      rows: of any cells.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._values: dict[Key, dict[int, float]] = defaultdict(dict)
        self._visits: dict[tuple[str, str, str], dict[int, list[Visits]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            if row.metric.startswith("visits-"):
                seen = Visits(int(row.metric.removeprefix("visits-")), row.at, row.also, row.value)
                self._visits[row.inputs, row.agent, row.acting][row.seed].append(seen)
            else:
                key = Key(row.inputs, row.agent, row.change, row.acting, row.metric, row.at)
                self._values[key][row.seed] = row.value

    @property
    def inputs(self) -> list[str]:
        """The readings there are, raw inputs first."""
        return sorted({key.inputs for key in self._values})

    def agents(self, inputs: str) -> list[str]:
        """The agents there are, in the order of `cartpole_cells.ALL`."""
        present = {key.agent for key in self._values if key.inputs == inputs}
        return [agent for agent in ALL if agent in present]

    def changes(self, inputs: str) -> list[float]:
        """Half lengths to which the pole changed."""
        return sorted({key.change for key in self._values if key.inputs == inputs and key.change})

    def is_noisy(self, inputs: str) -> bool:
        """Whether any agent was tested with noise."""
        return any(key.inputs == inputs and key.acting == "noisy" for key in self._values)

    def at(self, inputs: str, metric: str, change: float = 0.0, agent: str | None = None) -> list[float]:
        """Where there are numbers of a metric, in increasing order."""
        wanted = (inputs, metric, change)
        return sorted(
            {
                key.at
                for key in self._values
                if (key.inputs, key.metric, key.change) == wanted and agent in (None, key.agent)
            }
        )

    def by_seed(
        self, inputs: str, agent: str, metric: str, acting: str = "training", *, change: float = 0.0, at: float = 0.0
    ) -> dict[int, float]:
        """The number of each seed; an agent that has no noise acts greedily where noise is asked for."""
        found = self._values.get(Key(inputs, agent, change, acting, metric, at))
        if found is None and acting == "noisy":
            found = self._values.get(Key(inputs, agent, change, "greedy", metric, at))
        return found or {}

    def seeds(self, inputs: str, agents: Iterable[str]) -> list[int]:
        """The seeds with which all these agents were run."""
        common = [set(self.by_seed(inputs, agent, "steps")) for agent in agents]
        return sorted(set.intersection(*common)) if common else []

    def scores(
        self,
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
        found = self.by_seed(inputs, agent, metric, acting, change=change, at=at)
        return np.array([found.get(seed, np.nan) for seed in seeds])

    def visits(self, inputs: str, agent: str, acting: str) -> dict[int, list[Visits]]:
        """The states visited in tests, by seed; with noise, for an agent that has none, those without."""
        found = self._visits.get((inputs, agent, acting))
        if found is None and acting == "noisy":
            found = self._visits.get((inputs, agent, "greedy"))
        return found or {}


def analyse(rows: Sequence[Row]) -> Found:
    """The numbers by what they are about."""
    return Found(rows)


class Curves(NamedTuple):
    """`(m,)` abscissae, and for each agent a `(seeds, m)` array."""

    x: FloatArray
    of: dict[str, FloatArray]


def over_lengths(found: Found, inputs: str, acting: str, agents: Sequence[str]) -> Curves:
    """Test returns over half lengths."""
    lengths = found.at(inputs, "return")
    told = {
        agent: np.stack(
            [
                found.scores(inputs, agent, "return", acting, seeds=found.seeds(inputs, [agent]), at=length)
                for length in lengths
            ],
            axis=1,
        )
        for agent in agents
    }
    return Curves(np.array(lengths), told)


def around_change(found: Found, inputs: str, metric: str, change: float, agents: Sequence[str]) -> Curves:
    """Training returns around a change of the pole, over steps ("curve") or episodes ("episodes") since then.

    Points that some agent or seed lacks are left out.
    """
    of_agents = {agent: _around(found, inputs, metric, change, agent) for agent in agents}
    points = [set(line) for lines in of_agents.values() for line in lines]
    x = sorted(set.intersection(*points)) if points else []
    return Curves(
        np.array(x), {agent: np.array([[line[at] for at in x] for line in lines]) for agent, lines in of_agents.items()}
    )


def _around(found: Found, inputs: str, metric: str, change: float, agent: str) -> list[dict[float, float]]:
    """For each seed, returns by time since the change."""
    trained = found.by_seed(inputs, agent, "steps")
    lines: dict[int, dict[float, float]] = {seed: {} for seed in found.by_seed(inputs, agent, "late", change=change)}
    for at in found.at(inputs, metric, change, agent):
        for seed, value in found.by_seed(inputs, agent, metric, change=change, at=at).items():
            lines[seed][at] = value
    if metric == "curve":
        for at in found.at(inputs, metric, 0.0, agent):
            for seed, value in found.by_seed(inputs, agent, metric, at=at).items():
                if seed in lines:
                    lines[seed][at - trained[seed]] = value
    return list(lines.values())


def bands(curves: Curves) -> dict[str, Band]:
    """Means with their 95 % intervals over seeds; without width for a single seed."""
    return {
        agent: mean_band(values) if len(values) > 1 else Band(values[0], values[0], values[0])
        for agent, values in curves.of.items()
    }
