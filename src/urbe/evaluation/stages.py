"""Stages play a policy: compiled with a simulator, or step by step in a world."""

from __future__ import annotations

from typing import Any, Protocol

from urbe.evaluation.adaptation import MemoryPolicy
from urbe.evaluation.episodes import EpisodeDraws
from urbe.evaluation.grids import Point
from urbe.evaluation.gym_world import GymWorld
from urbe.evaluation.host import Player, play, player
from urbe.evaluation.policies import Acting, Deployable, Predicts, Traceable
from urbe.evaluation.rollouts import MOST, RolloutOutcome, roll_out, roll_out_with_memory
from urbe.evaluation.worlds import Observations, ParallelWorld, StepResult, same_sizes
from urbe.simulators import Simulator
from urbe.simulators.base import observation_size
from urbe.simulators.limits import with_params
from urbe.types import BoolArray

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


class MemoryStage:
    """A policy with a memory, which is empty at the start of every episode, and a simulator.

    Args:
      policy: the policy.
      simulator: its environment.
      time_limit: steps after which an episode is truncated; None for the simulator's.
    """

    def __init__(self, policy: MemoryPolicy[Any], simulator: Simulator, time_limit: int | None) -> None:
        self._policy, self._simulator = policy, simulator
        self._limit = simulator.time_limit if time_limit is None else time_limit
        self._params = simulator.nominal()

    @property
    def most(self) -> int:
        return MOST

    def enter(self, point: Point) -> None:
        self._params = with_params(self._simulator, self._simulator.nominal(), point)

    def play(self, way: Acting, drawn: EpisodeDraws, count: int) -> RolloutOutcome:
        return roll_out_with_memory(self._policy, self._simulator, self._params, drawn, self._limit).first(count)


class DeployedStage:
    """An agent that is deployed anew for every episode in a Gymnasium environment.

    Args:
      agent: the agent.
      world: the environment, with parameters.
      time_limit: steps after which an episode is truncated; None for the world's.
    """

    most = 1

    def __init__(self, agent: Deployable, world: GymWorld, time_limit: int | None) -> None:
        self._agent, self._world = agent, world
        self._limit = world.time_limit if time_limit is None else time_limit

    def enter(self, point: Point) -> None:
        self._world.enter(point)

    def play(self, way: Acting, drawn: EpisodeDraws, count: int) -> RolloutOutcome:
        session = self._agent.deploy(self._world.env, seed=int(drawn.seeds[0]))

        def choose(seen: Observations, _alive: BoolArray, _step: int) -> list[int]:
            return [session.act(seen[0])]

        def on_step(_actions: Any, moved: StepResult, _alive: BoolArray) -> None:
            ends = bool(moved.terminated[0]), bool(moved.truncated[0])
            session.observe(float(moved.rewards[0]), moved.observations[0], *ends)

        return play(self._world, choose, drawn, count, self._limit, on_step)


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
