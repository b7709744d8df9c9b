"""The adaptive agent: it learns over beliefs, and can be deployed, saved and loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from urbe import checks
from urbe.belief.estimates import Sensor
from urbe.belief.state import Watch
from urbe.deep.adaptive.learner import AdaptiveRun, RoundMeans
from urbe.deep.adaptive.learning_policy import LearningBelief
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.natures import EpisodeNature
from urbe.deep.adaptive.policy import AdaptivePolicy, check_sensor
from urbe.deep.adaptive.program import ROUNDS, begin, compiled_rounds
from urbe.deep.adaptive.rules import BeliefRule
from urbe.deep.adaptive.session import Session
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.deep.core.finite import NotFinite
from urbe.deep.core.keys import key_data, root_key, with_keys
from urbe.deep.saving.describe import describe, describe_or_why
from urbe.evaluation.adaptation import Deployments, deploy_lives, parameter_paths
from urbe.evaluation.gym_world import own_limit
from urbe.evaluation.host import ENDLESS, endless
from urbe.gym.env_simulator import EnvSimulator
from urbe.gym.kinds import SINGLE, Env
from urbe.gym.members.base import Members
from urbe.gym.rows import host_env
from urbe.gym.spaces import Spaces
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import save_tensors
from urbe.runs.tree import flatten, unflatten
from urbe.simulators import Constant, Schedule, Simulator, UncertaintySet
from urbe.simulators.base import observation_size
from urbe.simulators.limits import check_schedule

VERSION = 2
"""Version of `AdaptiveAgent.about` and `AdaptiveAgent.tensors`."""

LOG = ("step", *RoundMeans._fields)
"""Columns of the log, which has a row per round of `lives` x `length` steps."""


class AdaptiveAgent:
    """An agent whose uncertainty set adapts; build one with `bayes_adaptive_dqn`, `thompson_dqn` or `adaptive_dqn`.

    Args:
      name: name of the agent.
      model: members, likelihoods, and changes of the true member.
      uncertainty_set: the members.
      settings: settings of learning.
      rule: acting rule in deployment.
      watch: decides in deployment when no member explains the observations.
      seed: seed of all random numbers.

    Attributes:
      log: arrays by the names of `LOG`.
    """

    def __init__(
        self,
        name: str,
        model: BeliefModel,
        uncertainty_set: UncertaintySet,
        settings: AdaptiveSettings,
        rule: BeliefRule,
        watch: Watch,
        seed: int,
    ) -> None:
        self.name, self.model, self.uncertainty_set = name, model, uncertainty_set
        self.settings, self.rule, self.watch = settings, rule, watch
        self.seed = checks.whole_number("seed", seed, 0)
        self.spaces = Spaces.flat(observation_size(model.simulator), model.simulator.n_actions)
        self.log: dict[str, np.ndarray] = {column: np.zeros(0) for column in LOG}
        self._asked = 0
        self._run: AdaptiveRun = begin(settings, model, root_key(self.seed))

    @property
    def step(self) -> int:
        """Steps of experience so far: whole rounds of `settings.round`."""
        return int(self._run.rounds) * self.settings.round

    @property
    def asked(self) -> int:
        """Steps that were requested so far; `step` is this number, rounded up to whole rounds."""
        return self._asked

    @property
    def simulator(self) -> Simulator | None:
        """Its environment, if that is a simulator of urbe."""
        return None if isinstance(self.model.simulator, EnvSimulator) else self.model.simulator

    @property
    def environment(self) -> str | None:
        """The Gymnasium environment in whose copies it learns, as text; None for a simulator of urbe."""
        return str(self.model.simulator) if self.simulator is None else None

    @property
    def acts_by_memory(self) -> bool:
        """True: actions depend on a belief."""
        return True

    @property
    def policy(self) -> AdaptivePolicy:
        """The current policy, with a memory; for `urbe.evaluation.adaptation`."""
        weights = jax.tree.map(jnp.copy, self._run.average)  # the run itself is consumed by learning
        return AdaptivePolicy(weights, self.model, self.settings, self.rule, self.watch)

    @property
    def memory_policy(self) -> AdaptivePolicy:
        """The same as `policy`, under the name that all agents share."""
        return self.policy

    def learn(self, steps: int) -> AdaptiveAgent:
        """Learns for `steps` more steps of simulated experience, rounded up to whole rounds.

        `learn(2000)` and two calls of `learn(1000)` give the same bits.

        Raises:
          NotFinite: a loss was not a finite number.
          NotEnoughMemory: learning needs more memory than is available.
        """
        asked = self._asked + checks.whole_number("steps", steps, 0)
        left = -(-asked // self.settings.round) - int(self._run.rounds)
        advance = compiled_rounds(self.settings, self.model, self._run) if left > 0 else None
        self._asked = asked
        while advance is not None and left > 0:
            count, first = min(left, ROUNDS), self.step
            self._run, rows = advance(self.model, self._run, jnp.int32(count))
            found = np.asarray(rows, np.float64)[:count]
            table = np.column_stack([first + self.settings.round * np.arange(1, count + 1), found])
            for i, column in enumerate(LOG):
                self.log[column] = np.concatenate([self.log[column], table[:, i]])
            if not np.isfinite(found[:, 0]).all():
                at = int(table[~np.isfinite(found[:, 0]), 0][0])
                raise NotFinite(
                    f"The loss of the round that ended at step {at} is not finite, expected numbers. Lower the "
                    "learning rate, or raise reward_scale."
                )
            left -= count
        return self

    def under_noise(self, sensor: Sensor) -> AdaptivePolicy:
        """The policy for noisy observations, which estimates the state under every member.

        Raises:
          ValueError: states cannot be estimated, because members share outcomes or have several.
        """
        check_sensor(self.model, sensor)
        return replace(self.policy, sensor=sensor)

    def learning_policy(self, *, learning_rate: float = 2e-5, batch: int = 32) -> LearningBelief:
        """The policy that keeps on learning while it is deployed, by a gradient step after every `batch` steps.

        Play it with `urbe.evaluation.adaptation.deploy_lives(..., in_turn=True)`.

        Raises:
          ValueError: the agent does not learn values of its belief, or its simulator's states do not follow from
            observations.
        """
        if self.settings.informed or isinstance(self.settings.nature, EpisodeNature):
            raise ValueError(
                f"The agent {self.name} learns values of members or weights them for whole episodes, expected one of "
                "bayes_adaptive_dqn with a caution per step: only such values can be learned from a deployment."
            )
        checks.positive("learning_rate", learning_rate)
        optimiser = jax.tree.map(jnp.copy, self._run.optimiser)
        return LearningBelief(self.policy, optimiser, learning_rate, checks.whole_number("batch", batch, 1))

    def deploy(
        self,
        env: Env | None = None,
        members: Members | None = None,
        *,
        seed: int = 0,
        sensor: Sensor | None = None,
    ) -> Session:
        """Starts a deployment in the user's own loop; see `Session`.

        Args:
          env: a Gymnasium environment for the session; None for any with the observations and actions of the training
            simulator.
          members: members of this environment, as many as the agent's and in the same order, if likelihoods come from
            their predictions; None takes them from the simulator or, if it simulates a Gymnasium environment, from
            copies of `env`.
          seed: seed of random draws.
          sensor: the noise of observations; None for exact ones. It cannot be combined with `members`, which are set to
            the true state of the environment.
        """
        spaces = self.spaces if env is None else _spaces(env)
        self._require_spaces(spaces)
        if sensor is not None and members is not None:
            raise ValueError("sensor was given with members, expected one of the two: members use the true state.")
        simulator = self.model.simulator
        if isinstance(simulator, EnvSimulator) and simulator.place is None and members is None:
            if env is None:
                raise ValueError(
                    "env is None, expected the Gymnasium environment of the deployment: the agent learned in copies "
                    f"of {simulator}, whose predictions start from the state of the environment. If that cannot "
                    "be read, learn in EnvSimulator(env, place=...), or give members=FunctionMembers(...) too."
                )
            members = simulator.members_of(env, self.uncertainty_set)
        policy = self.policy if sensor is None else self.under_noise(sensor)
        return Session(policy, spaces, seed, None if members is None else env, members)

    def adapt(
        self,
        env: Simulator | Env,
        episodes: int,
        *,
        schedule: Schedule | None = None,
        members: Members | None = None,
        seed: int = 0,
    ) -> Deployments:
        """Plays episodes of one life, with a belief that survives each of them and without gradient steps.

        Args:
          env: a simulator, or a Gymnasium environment.
          episodes: number of episodes.
          schedule: the changes of a simulator's parameters; None keeps the nominal ones.
          members: members of a Gymnasium environment, see `deploy`.
          seed: seed of the episodes.

        Returns:
          returns, lengths and reports of the episodes, arrays with the shape `(1, episodes, ...)`.
        """
        checks.whole_number("episodes", episodes, 1)
        if isinstance(env, SINGLE):
            if schedule is not None:
                raise ValueError(
                    "schedule was given with a Gymnasium environment, expected None: wrap it, "
                    "urbe.gym.ChangingParams(env, schedule, seed)."
                )
            return _adapt_in(self.deploy(env, members, seed=seed), env, episodes, seed)
        checks.kind(
            "env", env, isinstance(env, Simulator), "a simulator such as CartPole(), or a Gymnasium environment"
        )
        self._require_spaces(Spaces.flat(observation_size(env), env.n_actions))
        changing = Constant(env.nominal()) if schedule is None else schedule
        check_schedule(env, changing)
        params = parameter_paths(changing, lives=1, episodes=episodes, seed=seed)
        return deploy_lives(self.policy, env, params, seed=seed)

    def about(self) -> dict[str, Any]:
        """Describes the agent as plain data that identifies a run."""
        return {
            "version": VERSION,
            "family": "adaptive",
            "agent": self.name,
            "seed": self.seed,
            "settings": describe("settings", self.settings),
            "rule": describe("rule", self.rule),
            "watch": describe("watch", self.watch),
            "simulator": describe_or_why("simulator", self.model.simulator),
            "environment": self.environment,
            "uncertain": self.uncertainty_set.describe(),
            "switching": describe("switching", self.model.switching),
            "floor": self.model.floor,
            "magnitude": np.asarray(self.model.magnitude).tolist(),
            "flip": self.model.flip,
        }

    def tensors(self) -> dict[str, np.ndarray]:
        """Everything needed to resume bit for bit, by name."""
        run = jax.device_get(key_data(self._run))
        return flatten({"run": run, "asked": np.int64(self._asked), "log": self.log})

    def load_tensors(self, tensors: Mapping[str, np.ndarray], source: str | os.PathLike[str]) -> None:
        """Restores the result of `tensors`; unchanged if they do not fit.

        Raises:
          CheckpointError: they belong to another agent.
        """
        rows = len(tensors.get("log/step", ()))
        like = {
            "run": jax.device_get(key_data(self._run)),
            "asked": np.int64(0),
            "log": {column: np.zeros(rows) for column in LOG},
        }
        found = unflatten(tensors, like, source)
        if rows != int(found["run"].rounds):
            raise CheckpointError(source, f"has a log of {rows} rows, expected {int(found['run'].rounds)}.")
        self._run = with_keys(jax.tree.map(jnp.asarray, found["run"]), self._run)
        self._asked, self.log = int(found["asked"]), found["log"]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves everything, including lives and random numbers, to a file; see `urbe.deep.load_adaptive`."""
        save_tensors(path, self.tensors(), self.about())

    def _require_spaces(self, spaces: Spaces) -> None:
        size = self.spaces.observation.shape
        if spaces.observation.shape != size or spaces.n_actions != self.spaces.n_actions:
            raise ValueError(
                f"env has observations of shape {spaces.observation.shape} and {spaces.n_actions} actions, expected "
                f"{size} and {self.spaces.n_actions}, as the agent was trained with."
            )


def _spaces(env: Env) -> Spaces:
    host = host_env(env)
    return Spaces(host.observations.space, host.n_actions, host.start)


def _adapt_in(session: Session, env: Env, episodes: int, seed: int) -> Deployments:
    returns, lengths, ends, reports = [], [], [], []
    limit = own_limit(env)
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        total, length, over, terminated = 0.0, 0, False, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(session.act(observation))
            truncated = truncated or length + 1 == limit
            session.observe(float(reward), observation, terminated, truncated)
            total, length, over = total + float(reward), length + 1, terminated or truncated
            if length == ENDLESS and not over:
                raise ValueError(endless("Wrap"))
        returns.append(total)
        lengths.append(length)
        ends.append(terminated)
        reports.append(session.report())
    found = {name: np.stack([report[name] for report in reports])[None] for name in reports[0]}
    return Deployments(np.array([returns]), np.array([lengths], np.int64), np.array([ends], np.bool_), None, found)
