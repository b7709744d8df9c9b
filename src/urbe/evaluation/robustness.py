"""Evaluate a policy under dynamics that differ from those of its training.

    return(e, theta) = sum_t r_t   of test episode e under parameters theta

for many parameters and many episodes. The policy does not learn, and actions are random only through the noise of an
uncertainty head, which is reported separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from urbe import checks
from urbe.evaluation.adaptation import MemoryPolicy
from urbe.evaluation.episodes import Episodes, draws
from urbe.evaluation.grids import Grid, Points, points_of
from urbe.evaluation.gym_world import EnvSource, GymWorld
from urbe.evaluation.policies import (
    Acting,
    Deployable,
    Predicts,
    Traceable,
    Trained,
    TrainedWithMemory,
    policy_of,
    ways_of,
)
from urbe.evaluation.rollouts import BAD_REWARD, FINE, MOST, RolloutOutcome, blocks
from urbe.evaluation.stages import CompiledStage, DeployedStage, MemoryStage, Stage, SteppedStage
from urbe.evaluation.table import Evaluation
from urbe.evaluation.worlds import SimulatorWorld
from urbe.progress import progress as shown_progress
from urbe.simulators import Simulator


def evaluate(
    policy: Any,
    grid: Grid,
    *,
    env: Simulator | EnvSource | None = None,
    episodes: int = 200,
    seed: int = 0,
    acting: Acting | Sequence[Acting] | None = None,
    time_limit: int | None = None,
    confidence: float = 0.95,
    cvar: float = 0.1,
    progress: bool = False,
) -> Evaluation:
    """Plays test episodes under every set of parameters and reports their returns.

    Episode e begins in the same way under all parameters and for all policies evaluated with the same seed. Results for
    some parameters do not depend, to the last bit, on the rest of the grid.

    A compiled policy on a simulator runs as one program; any other chooses its actions step by step, for many episodes
    at once if it accepts `(B, D)` observations.

    Args:
      policy: an agent of `urbe.deep` or its policy, whose memory, if any, is empty at the start of every episode; or
        anything with `predict(obs)` that returns an action or Stable-Baselines3's `(action, None)`, which is called
        with `deterministic=True` if it has that argument.
      grid: an `UncertaintySet`; or values by name, in all combinations; or a list of parameters.
        Parameters that are not named are nominal.
      env: a simulator; by default the one the agent was trained on. Or a Gymnasium environment with
        `set_params(**named)`, such as `SimulatorEnv`, or a function that makes such environments; or a function from
        parameters (a dict) to a Gymnasium environment, for everything else.
      episodes: number of episodes per set of parameters.
      seed: seed of the episodes, a non-negative integer.
      acting: "greedy", "noisy" (perturbed by the uncertainty head, as in training) or both; by default both if the
        policy has such a head.
      time_limit: steps after which an episode is truncated; by default that of the simulator or environment.
      confidence: confidence level of the intervals of means, in (0, 1).
      cvar: share of the lowest returns whose mean is reported, above 0 and at most 1.
      progress: show progress: a bar on a terminal, otherwise an occasional line on standard error.

    Raises:
      ValueError: names, shapes or numbers are invalid, or a reward or observation is not finite.

    >>> from types import SimpleNamespace
    >>> from urbe.simulators import CartPole
    >>> upright = SimpleNamespace(predict=lambda obs: (obs[..., 2] + 0.5 * obs[..., 3] > 0).astype(int))
    >>> found = evaluate(upright, {"half_length": (0.1, 0.5, 1.0)}, env=CartPole(time_limit=50), episodes=10)
    >>> found.greedy.returns.mean(axis=1)
    array([50., 50., 50.])
    """
    chosen = policy_of(policy)
    ways = ways_of(chosen, acting)
    checks.whole_number("episodes", episodes, 1)
    checks.probability("confidence", confidence)
    checks.number("cvar", checks.positive("cvar", cvar), 0.0, 1.0)
    if time_limit is not None:
        checks.whole_number("time_limit", time_limit, 1)
    where = policy.simulator if env is None and isinstance(policy, (TrainedWithMemory, Trained)) else env
    if where is None:
        raise ValueError(
            "env is missing: the policy has no training environment; expected a simulator, a Gymnasium "
            "environment with set_params, or a function that makes environments."
        )
    with _staged(policy, chosen, where, grid, time_limit, episodes, seed) as (stage, points):
        played = _play(stage, points, ways, episodes, seed, progress)
    return Evaluation(points.points, points.varied, played.get("greedy"), played.get("noisy"), seed, confidence, cvar)


@contextmanager
def _staged(
    given: Any,
    policy: Traceable | Predicts | MemoryPolicy[Any],
    where: Simulator | EnvSource,
    grid: Grid,
    time_limit: int | None,
    episodes: int,
    seed: int,
) -> Iterator[tuple[Stage, Points]]:
    """Prepares the stage and the parameters; closes environments that it made afterwards."""
    if isinstance(where, Simulator):
        points = points_of(grid, where)
        if isinstance(policy, Traceable):
            yield CompiledStage(policy, where, time_limit), points
            return
        if isinstance(policy, MemoryPolicy):
            yield MemoryStage(policy, where, time_limit), points
            return
        world = SimulatorWorld(where)
        world.enter(points.points[0])
        first = next(blocks(episodes, MOST))
        yield SteppedStage(policy, world, time_limit, draws(seed, first[1])), points
        return
    environments = GymWorld(where)
    try:
        points = points_of(grid, None, environments.before)
        environments.enter(points.points[0])
        if isinstance(policy, MemoryPolicy):
            if not isinstance(given, Deployable):
                raise ValueError(
                    f"env is {environments.env}, expected a simulator of urbe: the policy acts on a memory, and only "
                    "agents with deploy(env) can be played in Gymnasium environments."
                )
            yield DeployedStage(given, environments, time_limit), points
            return
        yield SteppedStage(policy, environments, time_limit, draws(seed, episodes)), points
    finally:
        environments.close()


def _play(
    stage: Stage, points: Points, ways: tuple[Acting, ...], episodes: int, seed: int, progress: bool
) -> dict[Acting, Episodes]:
    cut = list(blocks(episodes, stage.most))
    drawn = draws(seed, cut[-1][1])
    shape = (len(points.points), episodes)
    played: dict[Acting, Episodes] = {
        way: Episodes(np.zeros(shape), np.zeros(shape, np.int32), np.zeros(shape, np.bool_)) for way in ways
    }
    done, total = 0, len(points.points) * len(ways) * episodes
    with shown_progress("evaluating", total, unit="episodes", shown=progress) as show:
        for k, point in enumerate(points.points):
            stage.enter(point)
            for way in ways:
                for begin, end in cut:
                    count = min(end, episodes) - begin
                    outcome = stage.play(way, drawn.part(begin, end), count)
                    _must_be_finite(outcome, points, k, begin)
                    for kept, found in zip(played[way], outcome[:3], strict=True):
                        kept[k, begin : begin + count] = found
                    done += count
                    show(done)
    return played


def _must_be_finite(outcome: RolloutOutcome, points: Points, k: int, begin: int) -> None:
    bad = np.flatnonzero(outcome.fault != FINE)
    if len(bad):
        at, text = bad[0], ", ".join(f"{name} {value:g}" for name, value in points.points[k].items())
        what = "A reward" if outcome.fault[at] == BAD_REWARD else "An observation"
        raise ValueError(
            f"{what} is not finite in episode {begin + at}, step {outcome.length[at]}, under the parameters "
            f"{text or 'as they are'}; expected finite numbers. Use parameters for which the dynamics stay finite."
        )
