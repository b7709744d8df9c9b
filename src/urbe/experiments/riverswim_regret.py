"""Regret on RiverSwim: how soon each agent finds the far bank, and at what price.

    regret(t) = sum over the first t episodes of sum_h [V*_h(s_h) - Q*_h(s_h, a_h)]

which has the same expectation as what the best policy earns more, without the noise of the rewards. The world does not
change. Agents know neither which states may follow nor the rewards: told what is feasible, they would need no
exploration, since swimming right looks good to whoever expects the unknown to be even. Settings are chosen on tuning
seeds by their regret and reported on fresh ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from urbe.agents.base import Task
from urbe.envs.finite import FiniteEnv
from urbe.evaluation.regret import optimality_gaps
from urbe.experiments.base import everywhere
from urbe.experiments.contest import World, compete
from urbe.experiments.riverswim_agents import CONTENDERS
from urbe.mdp.build import from_dense
from urbe.mdp.library.classic import riverswim
from urbe.mdp.model import MDP
from urbe.posteriors.beliefs import Stationary
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.rewards import NormalGamma
from urbe.statistics.estimates import Band, mean_band
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.report.content import Section

NAME = "riverswim_regret"
TITLE = "RiverSwim: regret of every agent"
HORIZON, EPISODES, POINTS = 20, 600, 60


@dataclass(frozen=True)
class RegretCell:
    """One agent.

    Attributes:
      agent: key of `CONTENDERS`.
      episodes: how many.
      tuning_seeds, reported_seeds: replicates for choosing a setting, and for reporting it.
      seed: of everything random.
    """

    agent: str
    episodes: int = EPISODES
    tuning_seeds: int = 16
    reported_seeds: int = 60
    seed: int = 2013

    @property
    def name(self) -> str:
        """See `Cell`."""
        return self.agent.replace(" ", "_")

    @property
    def cost(self) -> float:
        """See `urbe.experiments.base`: seconds, about."""
        return 3.0


class Row(NamedTuple):
    """The regret of one fresh seed after `episode` episodes, with the setting that was chosen."""

    agent: str
    setting: str
    seed: int
    episode: int
    regret: float


CELLS = everywhere(RegretCell(agent) for agent in CONTENDERS)


def run(cell: RegretCell, _: Path) -> list[Row]:
    """Chooses a setting on the tuning seeds, then reports the regret of fresh ones."""
    model, contender = riverswim(6, discount=1.0), CONTENDERS[cell.agent]
    task = Task(ignorance(model.with_discount(contender.discount), contender.told_rewards), HORIZON)
    gaps = optimality_gaps(model, HORIZON)
    world = World(FiniteEnv.of(model), task, Stationary(), cell.episodes, cell.seed, gaps)
    outcome = compete(contender, world, lambda r: -r.regret.sum(axis=1), cell.tuning_seeds, cell.reported_seeds)
    regret = np.cumsum(outcome.record.regret, axis=1)
    told = contender.told(outcome.setting)
    at = np.unique(np.linspace(1, cell.episodes, min(POINTS, cell.episodes)).astype(int)).tolist()
    return [
        Row(cell.agent, told, seed, episode, float(curve[episode - 1]))
        for seed, curve in zip(outcome.seeds.tolist(), regret, strict=True)
        for episode in at
    ]


def ignorance(model: MDP, told_rewards: bool) -> Posterior:
    """The prior of an agent that knows states and actions alone; rewards are uncertain unless told."""
    transition, reward = model.to_dense()
    anything = from_dense(transition, reward, discount=model.discount, keep_zeros=True)
    return Posterior.before(anything, 1.0 / model.n_states, None if told_rewards else NormalGamma())


class Curve(NamedTuple):
    """Regret of one agent.

    Attributes:
      setting: the parameters chosen on the tuning seeds.
      episode: `(points,)`.
      regret: `(seeds, points)`.
    """

    agent: str
    setting: str
    episode: FloatArray
    regret: FloatArray

    @property
    def band(self) -> Band:
        """Mean over the seeds, with 95 % intervals."""
        return mean_band(self.regret)


def analyse(rows: Sequence[Row]) -> list[Curve]:
    """One curve for each agent."""
    curves = []
    for (agent, setting), group in groupby(rows, key=lambda row: row[:2]):
        cell = list(group)
        episode = np.array(sorted({row.episode for row in cell}), dtype=np.float64)
        regret = np.array([row.regret for row in cell]).reshape(-1, len(episode))
        curves.append(Curve(agent, setting, episode, regret))
    return curves


def plot(curves: Sequence[Curve]) -> list[Section]:
    """Curves, final regrets and settings."""
    from urbe.experiments import riverswim_plots

    return riverswim_plots.sections(curves)
