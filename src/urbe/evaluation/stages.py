"""Stages play a policy: compiled with a simulator, or step by step in a world."""

from __future__ import annotations

from typing import Protocol

from urbe.evaluation.episodes import EpisodeDraws
from urbe.evaluation.grids import Point
from urbe.evaluation.host import Player, play, player
from urbe.evaluation.policies import Acting, Predicts, Traceable
from urbe.evaluation.rollouts import MOST, RolloutOutcome, roll_out
from urbe.evaluation.worlds import ParallelWorld, same_sizes
from urbe.simulators import Simulator
from urbe.simulators.base import observation_size
from urbe.simulators.limits import with_params

GYM_LANES = 8
"""Gymnasium environments in parallel, for policies that accept many observations at once."""


class Stage(Protocol):
    """A policy and its environment."""

    @property
    def most(self) -> int:
        """The largest number of episodes played in parallel."""

    def enter(self, point: Point) -> None:
        """Sets the parameters."""

    def play(self, way: Acting, drawn: EpisodeDraws, count: int) -> RolloutOutcome:
        """Plays the first `count` of the episodes drawn."""


class CompiledStage:
    """A traceable policy and a simulator.

    Args:
      policy: the policy.
      simulator: its environment.
      time_limit: steps after which an episode is truncated; None for the simulator's.
    """

    def __init__(self, policy: Traceable, simulator: Simulator, time_limit: int | None) -> None:
        same_sizes(
            type(simulator).__name__,
            observation_size(simulator),
            simulator.n_actions,
            policy.obs_size,
            policy.n_actions,
        )
        self._policy, self._simulator = policy, simulator
        self._limit = simulator.time_limit if time_limit is None else time_limit
        self._params = simulator.nominal()

    @property
    def most(self) -> int:
        return MOST

    def enter(self, point: Point) -> None:
        self._params = with_params(self._simulator, self._simulator.nominal(), point)

    def play(self, way: Acting, drawn: EpisodeDraws, count: int) -> RolloutOutcome:
        """Plays the episodes; those that have ended are computed further, as the shapes are fixed."""
        noisy = way == "noisy"
        return roll_out(self._policy, self._simulator, self._params, drawn, self._limit, noisy=noisy).first(count)


class SteppedStage:
    """Any policy in any world.

    Args:
      policy: the policy.
      world: its environment, with parameters.
      time_limit: steps after which an episode is truncated; None for the world's.
      drawn: random numbers of a block of episodes, to get its first observations.
    """

    def __init__(
        self, policy: Traceable | Predicts, world: ParallelWorld, time_limit: int | None, drawn: EpisodeDraws
    ) -> None:
        self._world = world
        self._limit = world.time_limit if time_limit is None else time_limit
        first = world.reset(drawn)[0]
        self._greedy = player(policy, world, first, noisy=False)
        self._noisy: Player = (
            player(policy, world, first, noisy=True) if isinstance(policy, Traceable) else self._greedy
        )
        if self._greedy.rows:
            world.widen(min(GYM_LANES, len(drawn.seeds)))

    @property
    def most(self) -> int:
        return self._world.lanes

    def enter(self, point: Point) -> None:
        self._world.enter(point)

    def play(self, way: Acting, drawn: EpisodeDraws, count: int) -> RolloutOutcome:
        asked = self._noisy if way == "noisy" else self._greedy
        return play(self._world, asked.choose(drawn), drawn, count, self._limit, None).first(count)
