"""The agent: it learns, acts, and can be saved at any time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from urbe import checks
from urbe.deep.core.schedules import epsilon_at
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.loops.make import Uncertain
from urbe.deep.loops.trainer import Trainer
from urbe.deep.policies.learning import LearningPolicy, learning_policy
from urbe.deep.policies.memory import acts_by_memory, memory_policy
from urbe.deep.policies.policy import Policy
from urbe.deep.saving.describe import describe_or_why, describe_world
from urbe.deep.training.callbacks import AnyCallback, watchers
from urbe.deep.training.history import History
from urbe.deep.training.recording import learn_and_record
from urbe.evaluation.adaptation import MemoryPolicy
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import save_tensors
from urbe.runs.tree import flatten, unflatten
from urbe.simulators import Simulator

VERSION = 3
"""The version of `DQNAgent.about` and `DQNAgent.tensors`; `urbe.deep.saving.upgrade` reads earlier ones."""


class DQNAgent:
    """An agent of the DQN family; build one with `dqn`, `robust_dqn`, `dqn_ube`, `dqn_urbe` or `soft_robust_dqn`.

    Args:
      name: name of the agent.
      trainer: the learner and its environment.
      seed: seed of all random numbers.
      log_every: steps per row of its log.
    """

    def __init__(self, name: str, trainer: Trainer, seed: int, log_every: int) -> None:
        self.name, self.seed = name, seed
        self.log_every = checks.whole_number("log_every", log_every, 1)
        self.trainer = trainer
        self.history = History()
        self.history.begin_members(trainer.deciders)
        self.stopped: str | None = None
        """Why a callback stopped the last call of `learn` or `train` early; None if none did."""

    @property
    def step(self) -> int:
        """Steps of experience so far."""
        return self.trainer.step

    @property
    def acts_by_memory(self) -> bool:
        """Whether actions depend on a hidden state."""
        return acts_by_memory(self.trainer)

    @property
    def policy(self) -> Policy:
        """The current policy.

        Raises:
          ValueError: the agent acts on a hidden state; use `memory_policy`.
        """
        if self.acts_by_memory:
            raise ValueError(
                f"The agent {self.name} acts on a memory, not only on the observation. Play it with "
                "urbe.evaluation.adaptation.deploy_lives(agent.memory_policy, simulator, params, seed=...)."
            )
        return Policy.of(self.trainer.settings, self.trainer.learner)

    @property
    def memory_policy(self) -> MemoryPolicy[Any]:
        """The greedy policy with the agent's memory, for `urbe.evaluation.adaptation`; most agents have no memory."""
        return memory_policy(self.trainer)

    @property
    def simulator(self) -> Simulator | None:
        """Its environment, if that is a simulator of urbe."""
        return self.trainer.simulator if isinstance(self.trainer, CompiledTrainer) else None

    def learning_policy(self, **changes: Any) -> LearningPolicy:
        """The policy that keeps on learning while it is deployed, with a memory of its own in every life.

        Play it with `urbe.evaluation.adaptation.deploy_lives(..., in_turn=True)`.

        Args:
          changes: fields of the settings to change for the deployment, by name. By default the replay is empty and has
            a capacity of 2,000, a twentieth of the actions is random, and learning starts after one batch.

        Raises:
          ValueError: the agent cannot learn from its observations alone.
        """
        return learning_policy(self.trainer, changes)

    def learn(self, steps: int, *, callbacks: Sequence[AnyCallback] = (), progress: bool = False) -> DQNAgent:
        """Acts and learns for `steps` more environment steps, or until a callback stops it; then `stopped` says why.

        `learn(2000)` and two calls of `learn(1000)` give the same bits. Callbacks do not change learning. An agent that
        they have stopped does not continue with the same callbacks.

        Args:
          steps: number of environment steps.
          callbacks: functions that are called with every row of the log, a dict (`urbe.deep.training.history.LOG`), and
            objects that measure the agent at intervals, such as `urbe.deep.Evaluate`; functions also get their rows.
          progress: show progress: a bar on a terminal, otherwise an occasional line on standard error.

        Raises:
          NotFinite: an observation, reward or loss was not finite; the message says which and when.

        Warns:
          OneMemberDecides: one member of the uncertainty set decided nearly all targets.
          NoEpisodeEnded: none has ended in 10000 steps or more.
        """
        from urbe.deep.training.endless import warn_of_endless
        from urbe.deep.training.progress import learning  # imports rich, needed only here
        from urbe.deep.training.who_decides import warn_of_one

        end = self.step + checks.whole_number("steps", steps, 0)
        watched = watchers(callbacks, self)
        for each in watched.measuring:
            each.describe(self)  # raises early if it cannot measure the agent
        self.stopped = watched.stop(self)
        with learning(self, end if self.stopped is None else self.step, shown=progress) as show:
            for recorded in learn_and_record(self, end, watched.measuring) if self.stopped is None else ():
                watched.give(*recorded.rows())
                show(recorded.rows())
                self.stopped = recorded.stop
        warn_of_endless(self)
        warn_of_one(self)
        return self

    def set_members(self, uncertainty_set: Uncertain) -> DQNAgent:
        """Continues with as many other members of the uncertainty set, for which the replay is computed again.

        Raises:
          ValueError: the agent was made without `keep_states=True`, or the members do not fit.
        """
        self.trainer.set_members(uncertainty_set)
        return self

    def predict(self, observation: Any, *, deterministic: bool = True, rng: np.random.Generator | None = None) -> Any:
        """Returns the action for an observation, in the environment's own form.

        Args:
          observation: an observation of the environment, or a batch of B observations from a vector of environments;
            for a simulator `(D,)` or `(B, D)`.
          deterministic: act greedily; otherwise as in training, with the noise of the uncertainty head and with the
            current rate of random actions.
          rng: generator of the noise and the random actions; needed to act as in training.

        Returns:
          an int, or int64 `(B,)`; with `Discrete(n, start=5)` actions count from 5.

        Raises:
          ValueError: the observation does not belong to the environment's space, or `rng` is missing or not needed.
        """
        if checks.flag("deterministic", deterministic) is (rng is not None):
            problem = (
                "given, but acting is deterministic" if deterministic else "missing, but acting is not deterministic"
            )
            raise ValueError(
                f"rng is {problem}; expected predict(observation) to act greedily, or predict(observation, "
                "deterministic=False, rng=numpy.random.default_rng(seed)) to act as in training."
            )
        if rng is not None:
            checks.generator("rng", rng)
        spaces = self.trainer.spaces
        rows, single = spaces.rows(observation)
        numbers = self.policy.predict(rows, rng)
        if rng is not None:
            share = float(epsilon_at(self.trainer.settings.epsilon, jnp.int32(self.step)))
            random = rng.integers(spaces.n_actions, size=len(rows))
            numbers = np.where(rng.random(len(rows)) < share, random, numbers)
        return spaces.actions(numbers, single)

    def about(self) -> dict[str, Any]:
        """Describes the agent as plain data that identifies a run."""
        return {
            "version": VERSION,
            "agent": self.name,
            "seed": self.seed,
            "log_every": self.log_every,
            "settings": describe_or_why("settings", self.trainer.settings),
            "world": describe_world(self.trainer.describe()),
        }

    def saved_about(self) -> dict[str, Any]:
        """The description in a file: `about`, and the data needed to predict without the environment."""
        return {**self.about(), "spaces": self.trainer.spaces.describe()}

    def tensors(self) -> dict[str, np.ndarray]:
        """Everything needed to resume bit for bit, by name."""
        return self.trainer_tensors() | flatten({"history": self.history.state()})

    def trainer_tensors(self) -> dict[str, np.ndarray]:
        """The same without the history, for runs that keep it in logs."""
        return flatten({"trainer": self.trainer.state()})

    def load_tensors(
        self, tensors: Mapping[str, np.ndarray], source: str | os.PathLike[str], history: History | None = None
    ) -> None:
        """Restores the result of `tensors`, or of `trainer_tensors` with the history. Changes nothing on an error.

        Raises:
          CheckpointError: they belong to another agent.
        """
        mine = {name: array for name, array in tensors.items() if name.startswith("trainer/")}
        past = {name.removeprefix("history/"): array for name, array in tensors.items() if name.startswith("history/")}
        if len(mine) + len(past) != len(tensors):
            strange = next(name for name in tensors if not name.startswith(("trainer/", "history/")))
            raise CheckpointError(source, f"holds {strange!r}, which is not part of an agent.")
        lived = History.of(past, source) if history is None else history
        self.trainer.load(unflatten(mine, {"trainer": self.trainer.state()}, source)["trainer"])
        self.history = lived
        lived.begin_members(self.trainer.deciders)  # earlier runs had no such table

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves everything, including replay and random numbers, to a file; see `urbe.deep.load`.

        The file is replaced atomically: readers find the complete old or new agent, also after a crash.
        """
        save_tensors(checks.file_path("path", path), self.tensors(), self.saved_about())
