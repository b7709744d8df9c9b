"""The interaction loop of agents and environments, with time limits and records.

Agent and environment have separate random streams, so that two agents with the same seed have the same environment and
can be compared seed by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from urbe import checks
from urbe.agents.base import AgentConfig, Steps, Streams, Task, check_task
from urbe.envs.base import EnvConfig
from urbe.rng import streams
from urbe.types import FloatArray, IntArray

Progress = Callable[[int, int], None]


class RunRecord(NamedTuple):
    """The record of a run.

    Attributes:
      reward: `(B, episodes)` total reward of each episode.
      steps: `(B, episodes)` its number of steps.
      regret: `(B, episodes)` the sum of the `gaps` of its actions; zero without gaps.
    """

    reward: FloatArray
    steps: IntArray
    regret: FloatArray


def run(
    agent: AgentConfig,
    env: EnvConfig,
    task: Task,
    *,
    episodes: int,
    seed: int,
    replicates: int | IntArray = 1,
    gaps: FloatArray | None = None,
    progress: Progress | None = None,
) -> RunRecord:
    """Runs replicates of an agent for a number of episodes.

    Args:
      agent: parameters of the agent.
      env: the environment.
      task: the agent's prior knowledge.
      episodes: number of episodes.
      seed: seed of all random numbers; the run of replicate k does not depend on the number of replicates.
      replicates: number of independent learners, each in its own environment; or their indices, `(B,)`.
      gaps: `(H, S, A)` the loss of each action (`urbe.evaluation.optimality_gaps`); the regret is their sum.
      progress: called as `progress(done, episodes)`.

    Returns:
      a `RunRecord`.
    """
    given = np.arange(checks.whole_number("replicates", replicates, 1)) if np.ndim(replicates) == 0 else replicates
    numbers = checks.int_array("replicates", given, 0, meaning="number of a replicate")
    running = Run(agent, env, task, episodes=episodes, seed=seed, replicates=numbers, gaps=gaps)
    while not running.done:
        running.episode()
        if progress is not None:
            progress(running.at, episodes)
    return running.record


class Run:
    """A run that can be stopped, saved and resumed between episodes.

    Args:
      agent, env, task, episodes, seed, gaps: as for `run`.
      replicates: `(B,)` numbers of the replicates, which determine their random streams.

    Attributes:
      at: episodes done.
      record: the record of these episodes.
      agent: the learners.
      parts: parameters that must agree for a saved run to be resumed.
    """

    def __init__(
        self,
        agent: AgentConfig,
        env: EnvConfig,
        task: Task,
        *,
        episodes: int,
        seed: int,
        replicates: IntArray,
        gaps: FloatArray | None = None,
    ) -> None:
        check_task(agent, task)
        checks.kind("env", env, callable(getattr(env, "start", None)), "an environment, such as FiniteEnv.of(model)")
        checks.whole_number("episodes", episodes, 1)
        checks.whole_number("seed", seed, 0)
        self.at = 0
        shape = (len(replicates), episodes)
        self.record = RunRecord(np.zeros(shape), np.zeros(shape, dtype=int), np.zeros(shape))
        self.agent = agent.start(task, Streams(seed, replicates))
        self._env = env.start(streams(seed, "environment", replicates))
        self._horizon, self._n_states = task.horizon, task.prior.model.n_states
        self._gaps = gaps
        self.parts: dict[str, object] = {
            "agent": agent,
            "env": env,
            "task": task,
            "episodes": episodes,
            "seed": seed,
            "replicates": replicates,
            "gaps": gaps,
        }

    @property
    def done(self) -> bool:
        """Whether all episodes have been run."""
        return bool(self.at == self.record.reward.shape[1])

    def episode(self) -> None:
        """Runs one episode of every replicate."""
        state = self._known(self._env.begin(self.at))
        replicate = np.arange(len(state))
        total, length = np.zeros(len(state)), np.zeros(len(state), dtype=np.int64)
        for step in range(self._horizon):
            action = self.agent.act(replicate, state, step)
            next_state, reward, terminated = self._env.step(replicate, state, action)
            self._known(next_state)
            going = ~terminated
            cut = going if step + 1 == self._horizon else np.zeros_like(going)
            self.agent.observe(Steps(replicate, state, action, reward, next_state, terminated, cut), step)
            total[replicate] += reward
            if self._gaps is not None:
                self.record.regret[replicate, self.at] += self._gaps[step, state, action]
            length[replicate] += 1
            replicate, state = replicate[going], next_state[going]
            if not len(replicate):
                break
        self.record.reward[:, self.at], self.record.steps[:, self.at] = total, length
        self.agent.end_episode()
        self.at += 1

    def _known(self, state: IntArray) -> IntArray:
        """Raises for states that the task does not have: compiled agents would read beyond their tables."""
        if len(state) and not 0 <= state.min() <= state.max() < self._n_states:
            wrong = int(state[(state < 0) | (state >= self._n_states)][0])
            raise ValueError(
                f"env is in state {wrong}, expected one of 0, ..., {self._n_states - 1}: the prior of the task has "
                f"{self._n_states} states. Make task and environment of the same model."
            )
        return state

    def state(self) -> dict[str, Any]:
        """The complete state, as nested dicts of arrays and plain values."""
        return {
            "at": self.at,
            "reward": self.record.reward.copy(),
            "steps": self.record.steps.copy(),
            "regret": self.record.regret.copy(),
            "agent": self.agent.state(),
            "env": self._env.state(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`, bit for bit."""
        self.at = int(state["at"])
        self.record = RunRecord(*(np.array(state[name]) for name in RunRecord._fields))
        self.agent.load(state["agent"])
        self._env.load(state["env"])
