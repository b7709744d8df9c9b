"""Seven states under changing dynamics: what learners earn when the odds of a gamble jump [Derman2019] Fig. 2b.

Each learner's parameters are chosen on tuning seeds, by what they earn in all, and reported on fresh ones. All learners
of a cell share the same belief about the dynamics, the same prior (one on every feasible successor) and, seed by seed,
the same world. A total is four times the mean reward per episode: with four phases of equal length, the sum of what an
episode earns in each. The best action of each phase earns 1.98 then, in the direct reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from urbe.agents.base import Task
from urbe.agents.run import Record
from urbe.envs.finite import FiniteEnv, Phase
from urbe.experiments.base import everywhere
from urbe.experiments.contest import World, compete
from urbe.experiments.seven_agents import BELIEFS, CONTENDERS
from urbe.mdp.library.seven_states import Reading, seven_states
from urbe.posteriors.dirichlet import Posterior
from urbe.statistics.estimates import Band
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.report.content import Section

NAME = "seven_states"
TITLE = "Seven states under changing dynamics"
ODDS = (0.001, 0.8, 0.1, 0.9)
SCHEDULES = {"paper": (300, 300, 300, 300), "long adverse": (450, 150, 450, 150)}
HORIZON: dict[Reading, int] = {"direct": 2, "chain": 4}
TUNING_SEEDS, REPORTED_SEEDS = 20, 60
POINTS = 80
"""Points of a curve."""

PRIOR = 1.0
SEED = 770001


@dataclass(frozen=True)
class SevenCell:
    """One agent with one belief in one world.

    Attributes:
      reading: of the dashed edges, see `seven_states`.
      schedule: key of `SCHEDULES`.
      belief: key of `BELIEFS`, or "none".
      agent: key of `CONTENDERS`.
      tuning_seeds, reported_seeds: replicates for choosing a setting, and for reporting it.
      seed: of everything random.
    """

    reading: Reading
    schedule: str
    belief: str
    agent: str
    tuning_seeds: int = TUNING_SEEDS
    reported_seeds: int = REPORTED_SEEDS
    seed: int = SEED

    @property
    def name(self) -> str:
        """See `Cell`."""
        return "-".join((self.reading, self.schedule, self.belief, self.agent)).replace(" ", "_")

    @property
    def cost(self) -> float:
        """See `urbe.experiments.base`: seconds, about."""
        return 0.9


class Row(NamedTuple):
    """One number.

    Attributes:
      metric: "tuning" (mean reward per episode of a setting over its tuning seeds), "phase" (the same of one fresh
        seed in the phase `at`), or "mean", "low", "high" of the cumulated reward after `at` episodes over the fresh
        seeds (mean, 10th and 90th percentile).
      setting: the parameters.
    """

    reading: str
    schedule: str
    belief: str
    agent: str
    setting: str
    metric: str
    seed: int
    at: int
    value: float


WORLDS: tuple[tuple[Reading, str], ...] = (("direct", "paper"), ("direct", "long adverse"), ("chain", "paper"))


def _cells() -> tuple[SevenCell, ...]:
    return tuple(
        SevenCell(reading, schedule, belief, agent)
        for reading, schedule in WORLDS
        for agent, contender in CONTENDERS.items()
        for belief in (BELIEFS if contender.learns else ("none",))
    )


CELLS = everywhere(_cells())


def environment(reading: Reading, schedule: str) -> FiniteEnv:
    """The environment of a cell."""
    return FiniteEnv(tuple(Phase(seven_states(p, reading), n) for p, n in zip(ODDS, SCHEDULES[schedule], strict=True)))


def run(cell: SevenCell, _: Path) -> list[Row]:
    """Chooses a setting on the tuning seeds, then reports it on fresh ones."""
    contender, env = CONTENDERS[cell.agent], environment(cell.reading, cell.schedule)
    task = Task(Posterior.before(env.feasible, PRIOR), HORIZON[cell.reading])
    belief = BELIEFS.get(cell.belief, BELIEFS["stationary"])
    world = World(env, task, belief, sum(SCHEDULES[cell.schedule]), cell.seed)
    outcome = compete(
        contender, world, lambda record: record.reward.mean(axis=1), cell.tuning_seeds, cell.reported_seeds
    )
    rows = [
        _row(cell, contender.told(setting), "tuning", -1, k, total)
        for k, (setting, total) in enumerate(zip(contender.settings, outcome.tuning, strict=False))
    ]
    told = contender.told(outcome.setting)
    for seed, means in zip(outcome.seeds.tolist(), phase_means(outcome.record, env).tolist(), strict=True):
        rows += [_row(cell, told, "phase", seed, k, mean) for k, mean in enumerate(means)]
    cumulated = np.cumsum(outcome.record.reward, axis=1)
    for at in np.unique(np.linspace(1, cumulated.shape[1], POINTS).astype(int)).tolist():
        here = cumulated[:, at - 1]
        low, high = np.quantile(here, (0.1, 0.9)).tolist()
        for metric, value in (("mean", float(here.mean())), ("low", low), ("high", high)):
            rows.append(_row(cell, told, metric, -1, at, value))
    return rows


def phase_means(record: Record, env: FiniteEnv) -> FloatArray:
    """`(B, phases)` mean reward per episode."""
    edges = np.cumsum([0, *(phase.episodes for phase in env.phases)])
    return np.stack([record.reward[:, a:b].mean(axis=1) for a, b in pairwise(edges)], axis=1)


def _row(cell: SevenCell, setting: str, metric: str, seed: int, at: int, value: float) -> Row:
    return Row(cell.reading, cell.schedule, cell.belief, cell.agent, setting, metric, seed, at, value)


class Result(NamedTuple):
    """One cell, read back.

    Attributes:
      setting: the parameters chosen on the tuning seeds.
      phases: `(seeds, phases)` mean reward per episode.
      at: `(points,)` episodes; curve: the cumulated reward there, mean and 10th to 90th percentile of the seeds.
    """

    reading: str
    schedule: str
    belief: str
    agent: str
    setting: str
    phases: FloatArray
    at: FloatArray
    curve: Band

    @property
    def total(self) -> FloatArray:
        """`(seeds,)` four times the mean reward per episode."""
        out: FloatArray = np.average(self.phases, axis=1, weights=SCHEDULES[self.schedule]) * len(ODDS)
        return out


def analyse(rows: Sequence[Row]) -> list[Result]:
    """A `Result` for each cell, in the order of the cells."""
    results = []
    for (reading, schedule, belief, agent), group in groupby(rows, key=lambda row: row[:4]):
        cell = list(group)
        seen = [row for row in cell if row.metric == "phase"]
        at = [row.at for row in cell if row.metric == "mean"]
        curve = Band(*(np.array([row.value for row in cell if row.metric == m]) for m in ("mean", "low", "high")))
        phases = np.array([row.value for row in seen]).reshape(-1, len(ODDS))
        results.append(
            Result(reading, schedule, belief, agent, seen[0].setting, phases, np.array(at, dtype=np.float64), curve)
        )
    return results


def plot(results: Sequence[Result]) -> list[Section]:
    """Verdicts, then figures and tables of each reading and schedule."""
    from urbe.experiments import seven_plots

    return seven_plots.sections(results)
