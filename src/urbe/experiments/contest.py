"""Agents on equal footing: settings chosen on tuning seeds, reported on fresh ones, in the same worlds.

Replicate k of every agent meets the same random world, whatever its setting: differences can be taken seed by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from urbe.agents.base import AgentKind, Task
from urbe.agents.run import Record, run
from urbe.envs.finite import FiniteEnv
from urbe.posteriors.beliefs import BeliefKind
from urbe.types import FloatArray, IntArray

Setting = tuple[float, ...]
Maker = Callable[[dict[str, FloatArray], BeliefKind, FiniteEnv], AgentKind]
Score = Callable[[Record], FloatArray]


@dataclass(frozen=True)
class Contender:
    """An agent and the settings to choose from.

    Attributes:
      parameters: their names.
      settings: values of the parameters, setting by setting; at least one, empty where there is nothing to choose.
      make: from values, `(B,)` each, a belief and the world to an agent.
      learns: whether it holds a belief about the dynamics.
      told_rewards: whether it must know the rewards beforehand.
      discount: what the agent's values discount by; below 1 for those that do not know when an episode is cut off.
    """

    parameters: tuple[str, ...]
    settings: tuple[Setting, ...]
    make: Maker
    learns: bool = True
    told_rewards: bool = False
    discount: float = 1.0

    def told(self, setting: Setting) -> str:
        """`radius 0.2, scale 0.5`."""
        return ", ".join(f"{name} {value:g}" for name, value in zip(self.parameters, setting, strict=True))


class World(NamedTuple):
    """Where a contest takes place.

    Attributes:
      env, task: the environment and what agents are told of it.
      belief: how the posterior follows the data, the same for all.
      episodes: how many.
      seed: of everything random.
      gaps: `(H, S, A)` what each action forgoes, where regret is wanted.
    """

    env: FiniteEnv
    task: Task
    belief: BeliefKind
    episodes: int
    seed: int
    gaps: FloatArray | None = None


class Outcome(NamedTuple):
    """What came of it.

    Attributes:
      tuning: mean score of each setting over the tuning seeds; empty where there was nothing to choose.
      setting: the one with the highest.
      seeds: `(B,)` numbers of the fresh seeds.
      record: of the chosen setting on them.
    """

    tuning: tuple[float, ...]
    setting: Setting
    seeds: IntArray
    record: Record


def compete(contender: Contender, world: World, score: Score, tuning_seeds: int, reported_seeds: int) -> Outcome:
    """Chooses the setting of the best mean `score` on seeds 0, 1, ..., and runs it on those that follow."""
    settings, tuning, best = contender.settings, (), 0
    if len(settings) > 1:
        each = [setting for setting in settings for _ in range(tuning_seeds)]
        record = _run(contender, world, each, np.tile(np.arange(tuning_seeds), len(settings)))
        tuning = tuple(score(record).reshape(len(settings), -1).mean(axis=1).tolist())
        best = int(np.argmax(tuning))
    seeds = tuning_seeds + np.arange(reported_seeds)
    return Outcome(tuning, settings[best], seeds, _run(contender, world, [settings[best]] * reported_seeds, seeds))


def _run(contender: Contender, world: World, settings: Sequence[Setting], seeds: IntArray) -> Record:
    columns = np.array(settings, dtype=np.float64).reshape(len(settings), len(contender.parameters)).T
    values = dict(zip(contender.parameters, columns, strict=True))
    agent = contender.make(values, world.belief, world.env)
    return run(
        agent, world.env, world.task, episodes=world.episodes, seed=world.seed, replicates=seeds, gaps=world.gaps
    )
