"""CartPole: tests over pole lengths, states visited, and a pole that changes in training [Derman2019] Figs. 5 and 6.

Agents are trained with a pole of half length 0.75. One trained agent serves all figures; see `cartpole_cells` for what
is run and `cartpole_run` for what is kept of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from urbe.experiments.cartpole_cells import ALL, CartPoleCell
from urbe.experiments.cartpole_cells import CELLS as CELLS
from urbe.experiments.cartpole_cells import Row as Row
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.report.content import Section

NAME = "cartpole"
TITLE = "CartPole with poles of other lengths"


def run(cell: CartPoleCell, folder: Path) -> list[Row]:
    """Trains, tests, changes the pole and trains further; goes on where an interrupted run stopped."""
    from urbe.experiments.cartpole_run import run_cell  # needs the extra urbe[deep], the page does not

    return run_cell(cell, folder)


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


def plot(found: Found) -> list[Section]:
    """The figures of the paper with their verdicts and tables."""
    from urbe.experiments import cartpole_plots

    return cartpole_plots.sections(found)
