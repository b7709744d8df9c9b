"""Runs one cell of the seven-state comparison: tunes an agent, then reports it on fresh seeds."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from urbe.agents.base import Task
from urbe.agents.run import RunRecord
from urbe.envs.finite import FiniteEnv, Phase
from urbe.mdp.library.seven_states import Reading, seven_states
from urbe.paper.seven_states import BELIEFS, CONTENDERS, HORIZON, ODDS, SCHEDULES, Row, SevenCell
from urbe.paper.tuning import TuningWorld, compete, contender_of
from urbe.posteriors.dirichlet import Posterior
from urbe.types import FloatArray

POINTS = 80
"""Points of a curve."""

PRIOR = 1.0


def environment(reading: Reading, schedule: str) -> FiniteEnv:
    """The environment of a cell."""
    return FiniteEnv(tuple(Phase(seven_states(p, reading), n) for p, n in zip(ODDS, SCHEDULES[schedule], strict=True)))


def run(cell: SevenCell, _: Path) -> list[Row]:
    """Chooses a setting on the tuning seeds, then reports it on fresh ones."""
    contender, env = contender_of(cell.agent, CONTENDERS), environment(cell.reading, cell.schedule)
    task = Task(Posterior.before(env.feasible, PRIOR), HORIZON[cell.reading])
    belief = BELIEFS.get(cell.belief, BELIEFS["stationary"])
    world = TuningWorld(env, task, belief, sum(SCHEDULES[cell.schedule]), cell.seed)
    outcome = compete(
        contender, world, lambda record: record.reward.mean(axis=1), cell.tuning_seeds, cell.reported_seeds
    )
    rows = [
        _row(cell, contender.text_of(setting), "tuning", -1, k, total)
        for k, (setting, total) in enumerate(zip(contender.settings, outcome.tuning, strict=False))
    ]
    setting = contender.text_of(outcome.setting)
    for seed, means in zip(outcome.seeds.tolist(), phase_means(outcome.record, env).tolist(), strict=True):
        rows += [_row(cell, setting, "phase", seed, k, mean) for k, mean in enumerate(means)]
    cumulated = np.cumsum(outcome.record.reward, axis=1)
    for at in np.unique(np.linspace(1, cumulated.shape[1], POINTS).astype(int)).tolist():
        here = cumulated[:, at - 1]
        low, high = np.quantile(here, (0.1, 0.9)).tolist()
        for metric, value in (("mean", float(here.mean())), ("low", low), ("high", high)):
            rows.append(_row(cell, setting, metric, -1, at, value))
    return rows


def phase_means(record: RunRecord, env: FiniteEnv) -> FloatArray:
    """`(B, phases)` mean reward per episode."""
    edges = np.cumsum([0, *(phase.episodes for phase in env.phases)])
    return np.stack([record.reward[:, a:b].mean(axis=1) for a, b in pairwise(edges)], axis=1)


def _row(cell: SevenCell, setting: str, metric: str, seed: int, at: int, value: float) -> Row:
    return Row(cell.reading, cell.schedule, cell.belief, cell.agent, setting, metric, seed, at, value)
