"""Agents on equal footing: settings chosen on tuning seeds, reported on fresh ones, in the same worlds.

Replicate k of every agent meets the same random world, whatever its setting: differences can be taken seed by seed.
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
      parameters: their names.
      settings: values of the parameters, setting by setting; at least one, empty where there is nothing to choose.
      make: from values, `(B,)` each, a belief and the world to an agent.
      learns: whether it holds a belief about the dynamics.
      knows_rewards: whether it must know the rewards beforehand.
      discount: what the agent's values discount by; below 1 for those that do not know when an episode is cut off.
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
    """An agent with one parameter to choose, whose values `make` gets."""
    return Contender((name,), tuple((value,) for value in values), lambda x, belief, _: make(x[name], belief))


def untuned(make: Callable[[PosteriorConfig], AgentConfig]) -> Contender:
    """An agent without anything to choose."""
    return Contender((), ((),), lambda _, belief, __: make(belief))


def tuned_urbe(radii: Iterable[float], scales: Iterable[float], form: Form = Form.COUNT, ball: Any = None) -> Contender:
    """URBE with every combination of some radii and scales; with L1 balls, or others."""
    return Contender(
        ("radius", "scale"),
        tuple(product(radii, scales)),
        lambda x, belief, _: URBE(x["radius"], x["scale"], form, belief, set=ball),
    )


def contender_of(agent: str, known: Mapping[str, Contender]) -> Contender:
    """The agent of a name: of those known, or one's own.

    Raises:
      ValueError: it cannot be loaded, or is no contender.
    """
    found = known[agent] if agent in known else load_own(agent)
    if not isinstance(found, Contender):
        raise ValueError(f"{agent} is {type(found).__name__}, expected a urbe.paper.tuning.Contender.")
    return found


class TuningWorld(NamedTuple):
    """Where agents are compared.

    Attributes:
      env, task: the environment and what agents know of it.
      belief: how the posterior follows the data, the same for all.
      episodes: how many.
      seed: of everything random.
      gaps: `(H, S, A)` what each action forgoes, where regret is wanted.
    """

    env: FiniteEnv
    task: Task
    belief: PosteriorConfig
    episodes: int
    seed: int
    gaps: FloatArray | None = None


class TuningOutcome(NamedTuple):
    """What came of it.

    Attributes:
      tuning: mean score of each setting over the tuning seeds it was run on; empty where there was nothing to choose.
      setting: the one with the highest among those run on all.
      seeds: `(B,)` numbers of the fresh seeds.
      record: of the chosen setting on them.
    """

    tuning: tuple[float, ...]
    setting: Setting
    seeds: IntArray
    record: RunRecord


def compete(
    contender: Contender, world: TuningWorld, score: Score, tuning_seeds: int, reported_seeds: int
) -> TuningOutcome:
    """Chooses the setting of the best mean `score` on seeds 0, 1, ..., and runs it on those that follow."""
    settings = contender.settings
    tuning, best = _tune(contender, world, score, tuning_seeds) if len(settings) > 1 else ((), 0)
    fresh = tuning_seeds + np.arange(reported_seeds)
    return TuningOutcome(
        tuning, settings[best], fresh, _run(contender, world, [settings[best]] * reported_seeds, fresh)
    )


def _tune(contender: Contender, world: TuningWorld, score: Score, seeds: int) -> tuple[tuple[float, ...], int]:
    """Mean score of each setting, and the best one.

    A quarter of the seeds goes to all settings, the rest to the best quarter of them: few seeds are enough to tell bad
    settings, many are needed to choose among good ones.
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
