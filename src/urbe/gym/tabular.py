"""Gymnasium environments with finitely many states and actions, for tabular agents.

States are numbered as in `MDP.from_gymnasium`: if the table `P` of an environment has terminal states that are also
passed through, or if there is no table, episodes end in one extra terminal state, the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from urbe.agents.base import Task
from urbe.envs.base import Arrivals
from urbe.gym.logs import discrete, has_table
from urbe.mdp.build import from_transitions
from urbe.mdp.model import MDP
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.rewards import NormalGamma
from urbe.rng import go_to, positions
from urbe.types import IntArray


class Numbering(NamedTuple):
    """The numbering of an environment's states and actions: from 0 here, from `first_...` in the environment.

    Attributes:
      n_states, n_actions: their numbers in the environment.
      end: the extra terminal state; -1 if there is none.
      known: whether its dynamics can be read from a table.
    """

    n_states: int
    first_state: int
    n_actions: int
    first_action: int
    end: int
    known: bool


@dataclass(frozen=True, eq=False)
class GymEnv:
    """Replicates of a Gymnasium environment, one instance each.

    Every episode is reset with a seed from the replicate's own stream, so that a run can be saved between episodes and
    resumed bit for bit, whatever internal state the environment has. Time limits belong to the task: an episode that
    the environment truncates cannot continue (`max_episode_steps=-1` makes an environment without a limit).

    Args:
      make: makes an environment; observations and actions are `Discrete`.

    >>> import gymnasium
    >>> lake = GymEnv(lambda: gymnasium.make("FrozenLake-v1", map_name="4x4"))
    >>> lake.feasible(discount=0.99)
    MDP(16 states (5 terminal), 44 rows, 128 entries, discount 0.99)
    """

    make: Callable[[], Any]

    @cached_property
    def numbers(self) -> Numbering:
        """The numbering of states and actions; makes an environment to read it."""
        env = self.make()
        n_states, first_state = discrete("observation_space", env.observation_space)
        n_actions, first_action = discrete("action_space", env.action_space)
        known = has_table(env)
        extra = not known or MDP.from_gymnasium(env, discount=1.0).n_states > n_states
        env.close()
        return Numbering(n_states, first_state, n_actions, first_action, n_states if extra else -1, known)

    def feasible(self, discount: float) -> MDP:
        """The model of the table, or without one a model in which every action may lead to every state.

        Without a table, probabilities are equal and rewards 0: the model says what is possible, not what is likely.
        """
        numbers = self.numbers
        if numbers.known:
            env = self.make()
            model = MDP.from_gymnasium(env, discount=discount)
            env.close()
            return model
        n, a = numbers.n_states, numbers.n_actions
        state, action, successor = (x.ravel() for x in np.indices((n, a, n + 1)))
        chance = np.full(len(state), 1.0 / (n + 1))
        return from_transitions(
            state, action, successor, chance, 0.0, discount=discount, n_states=n + 1, terminal=[numbers.end]
        )

    def start(self, generators: list[np.random.Generator]) -> GymReplicates:
        return GymReplicates([self.make() for _ in generators], self.numbers, generators)


def gym_task(
    env: GymEnv,
    *,
    discount: float,
    horizon: int,
    concentration: float = 1.0,
    rewards: NormalGamma | None = None,
) -> Task:
    """The task of an environment: its pairs and their feasible successors, with a prior on the probabilities.

    If the environment has a table `P`, feasible successors and rewards are read from it, but no probabilities.
    Without a table every state may follow, and rewards are learned.

    Args:
      env: the environment.
      discount: in [0, 1].
      horizon: steps after which episodes are truncated.
      concentration: Dirichlet prior of each feasible successor, positive.
      rewards: prior of rewards, used without a table; None is `NormalGamma()`.

    >>> import gymnasium
    >>> lake = GymEnv(lambda: gymnasium.make("FrozenLake-v1"))
    >>> gym_task(lake, discount=0.99, horizon=100).prior
    Posterior(44 rows, 128 feasible successors, 0 transitions seen)
    """
    learnt = None if env.numbers.known else (rewards or NormalGamma())
    return Task(Posterior.before(env.feasible(discount), concentration, learnt), horizon)


class GymReplicates:
    """Replicates of a Gymnasium environment, as an `urbe.envs.base.Env`."""

    def __init__(self, envs: list[Any], numbers: Numbering, generators: list[np.random.Generator]) -> None:
        self._envs, self._numbers, self._generators = envs, numbers, generators
        self._steps = np.zeros(len(envs), dtype=np.int64)
        self._cut = np.zeros(len(envs), dtype=np.bool_)

    def begin(self, episode: int) -> IntArray:
        self._steps[:], self._cut[:] = 0, False
        seeds = [int(generator.integers(2**31)) for generator in self._generators]
        first = [int(env.reset(seed=seed)[0]) for env, seed in zip(self._envs, seeds, strict=True)]
        states: IntArray = np.array(first, dtype=np.int64) - self._numbers.first_state
        return states

    def step(self, replicate: IntArray, state: IntArray, action: IntArray) -> Arrivals:
        """Steps the environments, which know their states."""
        k, numbers = len(replicate), self._numbers
        next_state, reward, terminated = np.empty(k, dtype=np.int64), np.empty(k), np.empty(k, dtype=np.bool_)
        for i, b in enumerate(replicate):
            if self._cut[b]:
                raise ValueError(
                    f"The environment truncated its episode after {self._steps[b]} steps, but the task continues; give "
                    "the task a horizon of at most that, or make the environment with max_episode_steps=-1."
                )
            seen, reward[i], terminated[i], self._cut[b], _ = self._envs[b].step(int(action[i]) + numbers.first_action)
            ends = bool(terminated[i]) and numbers.end >= 0
            next_state[i] = numbers.end if ends else int(seen) - numbers.first_state
        self._steps[replicate] += 1
        return Arrivals(next_state, reward, terminated)

    def state(self) -> dict[str, Any]:
        """Between episodes the state consists of the generators."""
        return {"generators": positions(self._generators)}

    def load(self, state: Mapping[str, Any]) -> None:
        go_to(self._generators, state["generators"])
