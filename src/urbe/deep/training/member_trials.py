"""Play simple policies under the members of an uncertainty set: is one of them hopeless for every policy?

    harsh      the best policy tried returns less there than random actions do under the nominal parameters
    hopeless   harsh, and its gain over random actions is less than a tenth of the best policy's gain at the nominal

The policies tried are the agent's, every constant action, and `SEARCHED` random linear ones: a lower bound on what is
possible. "Hopeless" is a finding about these policies, not a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.loops.host.trainer import HostTrainer
from urbe.evaluation.robustness import evaluate
from urbe.gym.members.base import SimulatorMembers
from urbe.gym.members.copies import EnvMembers
from urbe.gym.spaces import Spaces
from urbe.rng import stream
from urbe.simulators import Simulator, UncertaintySet
from urbe.simulators.limits import param_dict
from urbe.statistics.estimates import paired_difference

if TYPE_CHECKING:
    from urbe.deep.agent import DQNAgent

SEARCHED, SEARCH_EPISODES, EPISODES = 30, 2, 20
"""Linear policies tried, episodes of each, and fresh episodes of the best of all."""

TIME_LIMIT = 1_000
"""The largest length of an episode of a trial."""

GAIN = 0.1
"""A member is hopeless below this share of the gain under nominal parameters."""


@dataclass(frozen=True)
class MemberTrial:
    """The returns of simple policies under one member, as means over the same `EPISODES` episodes.

    Args:
      member: its index.
      best: the return of the best policy tried.
      policy: name of that policy.
      tried: number of policies.
      random: the return of random actions there.
      nominal_best, nominal_random: the same under the nominal parameters.
      harsh: `best` is below `nominal_random`, by more than chance.
      hopeless: harsh, and `best - random` is below a tenth of `nominal_best - nominal_random`.
    """

    member: int
    best: float
    policy: str
    tried: int
    random: float
    nominal_best: float
    nominal_random: float
    harsh: bool
    hopeless: bool


def try_members(agent: DQNAgent, members: Iterable[int] | None = None, seed: int = 0) -> list[MemberTrial]:
    """Plays simple policies under some members, by default all, and under the nominal parameters.

    The agent does not change. This takes seconds for each member, more if episodes are long.

    Args:
      agent: a robust agent whose members can be played: parameters of a simulator, or copies of an environment.
      members: indices of members.
      seed: seed of the policies and the episodes.

    Raises:
      ValueError: its members cannot be played, or none is nominal.
    """
    worlds = _worlds(agent)
    nominal = _Tried(agent, worlds.nominal, worlds.policies(agent, seed), seed)
    return [
        _trial(k, _Tried(agent, worlds.member(k), worlds.policies(agent, seed), seed), nominal)
        for k in (range(worlds.size) if members is None else members)
    ]


class _World(NamedTuple):
    env: Any
    point: Any


class _Worlds(NamedTuple):
    """The environments of trials: parameters of a simulator, or copies of an environment."""

    simulator: Any
    points: list[dict[str, float]]
    copies: EnvMembers | None
    nominal_place: int
    size: int

    @property
    def nominal(self) -> _World:
        return self.member(self.nominal_place)

    def member(self, place: int) -> _World:
        if self.copies is None:
            return _World(self.simulator, self.points[place])
        copies = self.copies
        own = copies.adapter.get_params(copies.copies[place])

        def make() -> Any:
            env = deepcopy(copies.copies[place])  # the members' copies do not change
            env.reset(seed=0)
            copies.adapter.set_params(env, own)
            return env

        return _World(make, {})

    def policies(self, agent: DQNAgent, seed: int) -> dict[str, Any]:
        """Policies by name: the agent's, constant ones, and random linear functions of its observations."""
        replay = agent.trainer.learner.replay  # type: ignore[attr-defined]
        seen = np.asarray(replay.obs)[: max(min(int(replay.inserted), len(replay.obs)), 1)]
        spread = np.where((deviation := seen.std(axis=0)) > 0.0, deviation, 1.0)
        rng, spaces = stream(seed, "linear policies"), agent.trainer.spaces
        actions = spaces.n_actions
        found: dict[str, Any] = {"the agent's own": agent.policy}
        found |= {
            f"always action {a}": _Linear(np.zeros((seen.shape[1], actions)), np.eye(actions)[a], spaces)
            for a in range(actions)
        }
        for i in range(SEARCHED):
            weights = rng.normal(size=(seen.shape[1], actions)) / spread[:, None]
            bias = rng.normal(size=actions) - seen.mean(axis=0) @ weights
            found[f"linear policy {i}"] = _Linear(weights, bias, spaces)
        return found


@dataclass(frozen=True)
class _Linear:
    """argmax_a (o W + b)_a, of the observation as a row o of numbers."""

    weights: Float[np.ndarray, "D A"]
    bias: Float[np.ndarray, " A"]
    spaces: Spaces

    def predict(self, obs: Any) -> Any:
        """For one observation or several."""
        rows, single = self.spaces.rows(obs)
        return self.spaces.actions((rows.astype(np.float64) @ self.weights + self.bias).argmax(axis=-1), single)


class _Random:
    """Uniformly random actions, from a separate stream."""

    def __init__(self, spaces: Spaces, seed: int) -> None:
        self._rng, self._spaces = stream(seed, "random policy"), spaces

    def predict(self, obs: Any) -> Any:
        """For one observation or several."""
        rows, single = self._spaces.rows(obs)
        return self._spaces.actions(self._rng.integers(self._spaces.n_actions, size=len(rows)), single)


class _Tried:
    """The best policy in one environment, and random actions there: `(EPISODES,)` returns each."""

    def __init__(self, agent: DQNAgent, world: _World, policies: Mapping[str, Any], seed: int) -> None:
        first = {name: _play(world, each, SEARCH_EPISODES, seed).mean() for name, each in policies.items()}
        self.tried = len(first) + 1
        self.policy = max(first, key=lambda name: first[name])
        self.best = _play(world, policies[self.policy], EPISODES, seed + 1)
        self.random = _play(world, _Random(agent.trainer.spaces, seed), EPISODES, seed + 1)
        if self.random.mean() > self.best.mean():
            self.policy, self.best = "at random", self.random


def _play(world: _World, policy: Any, episodes: int, seed: int) -> Float[np.ndarray, " E"]:
    limit = None if isinstance(world.env, Simulator) else TIME_LIMIT
    found = evaluate(
        policy, [world.point], env=world.env, episodes=episodes, seed=seed, acting="greedy", time_limit=limit
    )
    assert found.greedy is not None
    returns: np.ndarray = found.greedy.returns[0]
    return returns


def _trial(member: int, there: _Tried, nominal: _Tried) -> MemberTrial:
    harsh = paired_difference(nominal.random, there.best).low > 0.0
    gain, expected = there.best.mean() - there.random.mean(), nominal.best.mean() - nominal.random.mean()
    return MemberTrial(
        member,
        float(there.best.mean()),
        there.policy,
        there.tried,
        float(there.random.mean()),
        float(nominal.best.mean()),
        float(nominal.random.mean()),
        harsh,
        bool(harsh and gain < GAIN * expected),
    )


def _worlds(agent: DQNAgent) -> _Worlds:
    trainer, uncertain = agent.trainer, None
    if isinstance(trainer, CompiledTrainer) and trainer.deciders > 1:
        simulator, uncertain = trainer.simulator, trainer.uncertain
    elif isinstance(trainer, HostTrainer) and isinstance(trainer.members, SimulatorMembers):
        simulator, uncertain = trainer.members.simulator, trainer.members.uncertainty
    elif isinstance(trainer, HostTrainer) and isinstance(trainer.members, EnvMembers):
        members = trainer.members
        return _Worlds(None, [], members, _nominal(members.nominal), len(members))
    if not isinstance(uncertain, UncertaintySet):
        raise ValueError(
            f"The agent {agent.name} has no members that can be played, expected a robust agent with parameters of a "
            "simulator or with copies of an environment."
        )
    points = [param_dict(each) for each in uncertain.members()]
    return _Worlds(simulator, points, None, _nominal(uncertain.nominal), len(points))


def _nominal(place: int | None) -> int:
    if place is None:
        raise ValueError("No member is nominal, expected one to compare with: include_nominal=True.")
    return place
