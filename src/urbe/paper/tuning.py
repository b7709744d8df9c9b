"""Compare agents fairly: settings are chosen on tuning seeds and reported on fresh ones, in the same environments.

Replicate k of every agent has the same random environment, for any setting, so that differences are paired by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from urbe.agents import URBE, Form
from urbe.agents.base import AgentConfig, Task
from urbe.agents.run import RunRecord, run
from urbe.envs.finite import FiniteEnv
from urbe.paper.choice import load_own
from urbe.posteriors.beliefs import PosteriorConfig
from urbe.types import FloatArray, IntArray

Setting = tuple[float, ...]

Maker = Callable[[dict[str, FloatArray], PosteriorConfig, FiniteEnv], AgentConfig]

Score = Callable[[RunRecord], FloatArray]


@dataclass(frozen=True)
class Contender:
    """An agent and the settings to choose from.

    Attributes:
      parameters: names of the parameters.
      settings: values of the parameters for each setting; at least one, empty if there is nothing to choose.
      make: makes an agent from values, `(B,)` each, a belief and the environment.
      learns: whether the agent has a belief about the dynamics.
      knows_rewards: whether the agent must know the rewards.
      discount: discount of the agent's values; below 1 for agents that do not know when an episode is truncated.
    """

    parameters: tuple[str, ...]
    settings: tuple[Setting, ...]
    make: Maker
    learns: bool = True
    knows_rewards: bool = False
    discount: float = 1.0

    def text_of(self, setting: Setting) -> str:
        """`radius 0.2, scale 0.5`."""
        return ", ".join(f"{name} {value:g}" for name, value in zip(self.parameters, setting, strict=True))


def tuned(name: str, values: Iterable[float], make: Callable[[FloatArray, PosteriorConfig], AgentConfig]) -> Contender:
    """Makes a contender with one parameter, whose values `make` receives."""
    return Contender((name,), tuple((value,) for value in values), lambda x, belief, _: make(x[name], belief))


def untuned(make: Callable[[PosteriorConfig], AgentConfig]) -> Contender:
    """Makes a contender without parameters to choose."""
    return Contender((), ((),), lambda _, belief, __: make(belief))


def tuned_urbe(radii: Iterable[float], scales: Iterable[float], form: Form = Form.COUNT, ball: Any = None) -> Contender:
    """Makes URBE with every combination of some radii and scales, with L1 balls or others."""
    return Contender(
        ("radius", "scale"),
        tuple(product(radii, scales)),
        lambda x, belief, _: URBE(x["radius"], x["scale"], form, belief, set=ball),
    )


def contender_of(agent: str, known: Mapping[str, Contender]) -> Contender:
    """Returns the contender of a name, known or your own.

    Raises:
      ValueError: it cannot be loaded, or is not a contender.
    """
    found = known[agent] if agent in known else load_own(agent)
    if not isinstance(found, Contender):
        raise ValueError(f"{agent} is {type(found).__name__}, expected a urbe.paper.tuning.Contender.")
    return found


class TuningWorld(NamedTuple):
    """The common conditions of a comparison.

    Attributes:
      env, task: the environment and the agents' prior knowledge.
      belief: how the posterior follows the data, the same for all agents.
      episodes: number of episodes.
      seed: seed of all random numbers.
      gaps: `(H, S, A)` the loss of each action, if regret is needed.
    """

    env: FiniteEnv
    task: Task
    belief: PosteriorConfig
    episodes: int
    seed: int
    gaps: FloatArray | None = None


class TuningOutcome(NamedTuple):
    """The result of a comparison.

    Attributes:
      tuning: mean score of each setting over its tuning seeds; empty if there was nothing to choose.
      setting: the setting with the highest score among those run on all tuning seeds.
      seeds: `(B,)` numbers of the fresh seeds.
      record: record of the chosen setting on the fresh seeds.
    """

    tuning: tuple[float, ...]
    setting: Setting
    seeds: IntArray
    record: RunRecord


def compete(
    contender: Contender, world: TuningWorld, score: Score, tuning_seeds: int, reported_seeds: int
) -> TuningOutcome:
    """Chooses the setting with the best mean `score` on seeds 0, 1, ..., and runs it on the following seeds."""
    settings = contender.settings
    tuning, best = _tune(contender, world, score, tuning_seeds) if len(settings) > 1 else ((), 0)
    fresh = tuning_seeds + np.arange(reported_seeds)
    return TuningOutcome(
        tuning, settings[best], fresh, _run(contender, world, [settings[best]] * reported_seeds, fresh)
    )


def _tune(contender: Contender, world: TuningWorld, score: Score, seeds: int) -> tuple[tuple[float, ...], int]:
    """Returns the mean score of each setting, and the best setting.

    A quarter of the seeds is used for all settings, the rest for the best quarter of settings: few seeds are enough to
    detect bad settings, many are needed to choose among good ones.
    """
    settings = contender.settings
    scores, means = np.full((len(settings), seeds), np.nan), np.zeros(0)
    left, first = np.arange(len(settings)), max(seeds // 4, 1)
    for part in (np.arange(first), np.arange(first, seeds)):
        record = _run(contender, world, [settings[k] for k in left for _ in part], np.tile(part, len(left)))
        scores[np.ix_(left, part)] = score(record).reshape(len(left), len(part))
        means = np.nanmean(scores, axis=1)
        left = left[np.argsort(-means[left], kind="stable")][: max(len(settings) // 4, 2)]
    return tuple(means.tolist()), int(left[0])


def _run(contender: Contender, world: TuningWorld, settings: Sequence[Setting], seeds: IntArray) -> RunRecord:
    columns = np.array(settings, dtype=np.float64).reshape(len(settings), len(contender.parameters)).T
    values = dict(zip(contender.parameters, columns, strict=True))
    agent = contender.make(values, world.belief, world.env)
    return run(
        agent, world.env, world.task, episodes=world.episodes, seed=world.seed, replicates=seeds, gaps=world.gaps
    )
