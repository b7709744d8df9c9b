"""Runs one cell of the RiverSwim comparison: tunes an agent, then reports its regret on fresh seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from urbe.agents.base import Task
from urbe.envs.finite import FiniteEnv
from urbe.evaluation.regret import optimality_gaps
from urbe.mdp.build import from_dense
from urbe.mdp.library.classic import riverswim
from urbe.mdp.model import MDP
from urbe.paper.riverswim_regret import CONTENDERS, HORIZON, RegretCell, Row
from urbe.paper.tuning import TuningWorld, compete, contender_of
from urbe.posteriors.beliefs import Stationary
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.rewards import NormalGamma

POINTS = 60
"""Points of a curve."""


def run(cell: RegretCell, _: Path) -> list[Row]:
    """Chooses a setting on the tuning seeds, then reports the regret of fresh ones."""
    model, contender = riverswim(6, discount=1.0), contender_of(cell.agent, CONTENDERS)
    task = Task(ignorance(model.with_discount(contender.discount), contender.knows_rewards), HORIZON)
    gaps = optimality_gaps(model, HORIZON)
    world = TuningWorld(FiniteEnv.of(model), task, Stationary(), cell.episodes, cell.seed, gaps)
    outcome = compete(contender, world, lambda r: -r.regret.sum(axis=1), cell.tuning_seeds, cell.reported_seeds)
    regret = np.cumsum(outcome.record.regret, axis=1)
    setting = contender.text_of(outcome.setting)
    at = np.unique(np.linspace(1, cell.episodes, min(POINTS, cell.episodes)).astype(int)).tolist()
    return [
        Row(cell.agent, setting, seed, episode, float(curve[episode - 1]))
        for seed, curve in zip(outcome.seeds.tolist(), regret, strict=True)
        for episode in at
    ]


def ignorance(model: MDP, knows_rewards: bool) -> Posterior:
    """The prior of an agent that knows only states and actions; rewards are uncertain unless it knows them."""
    transition, reward = model.to_dense()
    anything = from_dense(transition, reward, discount=model.discount, keep_zeros=True)
    return Posterior.before(anything, 1.0 / model.n_states, None if knows_rewards else NormalGamma())
