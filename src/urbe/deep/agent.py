"""The agent a user holds: it learns, acts, and can be saved at any time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from urbe import checks
from urbe.deep.callbacks import AnyCallback, watchers
from urbe.deep.core.schedules import epsilon_at
from urbe.deep.describe import describe_or_why, describe_world
from urbe.deep.history import History
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.loops.trainer import Trainer
from urbe.deep.memory_policies import acts_by_memory, memory_policy
from urbe.deep.policy import Policy
from urbe.deep.recording import learn_and_record
from urbe.evaluation.adaptation import MemoryPolicy
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import save_tensors
from urbe.runs.tree import flatten, unflatten
from urbe.simulators import Simulator

VERSION = 3
"""The version of what `Agent.about` and `Agent.tensors` mean; `urbe.deep.upgrade` reads earlier ones."""


class Agent:
    """An agent of the DQN family; build one with `dqn`, `robust_dqn`, `dqn_ube`, `dqn_urbe` or `soft_robust_dqn`.

    Args:
      name: what to call it.
      trainer: the learner and what it acts in.
      seed: what all its random numbers follow from.
      log_every: steps per row of its log.
    """

    def __init__(self, name: str, trainer: Trainer, seed: int, log_every: int) -> None:
        self.name, self.seed = name, seed
        self.log_every = checks.whole_number("log_every", log_every, 1)
        self.trainer = trainer
        self.history = History()
        self.history.begin_members(trainer.deciders)
        self.stopped: str | None = None
        """Why a callback ended the last call of `learn` or `train` before its time; None if none did."""

    @property
    def step(self) -> int:
        """Steps of experience so far."""
        return self.trainer.step

    @property
    def policy(self) -> Policy:
        """How it acts by what it has learned so far.

        Raises:
          ValueError: it acts by a hidden state; `memory_policy` is its policy.
        """
        if acts_by_memory(self.trainer):
            raise ValueError(
                f"The agent {self.name} acts by what it remembers, not by one observation alone. Play it with "
                "urbe.evaluation.adaptation.deploy_lives(agent.memory_policy, simulator, params, seed=...)."
            )
        return Policy.of(self.trainer.settings, self.trainer.learner)

    @property
    def memory_policy(self) -> MemoryPolicy[Any]:
        """How it acts greedily with the memory it learned with, for `urbe.evaluation.adaptation`; empty for most."""
        return memory_policy(self.trainer)

    @property
    def simulator(self) -> Simulator | None:
        """What it acts in, when that is a simulator of ours."""
        return self.trainer.simulator if isinstance(self.trainer, CompiledTrainer) else None

    def learn(self, steps: int, *, callbacks: Sequence[AnyCallback] = (), progress: bool = False) -> Agent:
        """Acts and learns for `steps` more steps, or until a callback stops it; then `stopped` says why.

        Where it is cut makes no difference: `learn(2000)` and twice `learn(1000)` end in the same bits. Callbacks watch
        and change nothing of what is learned. An agent that they have stopped does not go on with the same callbacks.

        Args:
          steps: of experience.
          callbacks: functions that are called with every row of the log (`urbe.deep.history.LOG`, by name), and what
            measures the agent every so many steps, such as `urbe.deep.Evaluate`; functions receive those rows too.
          progress: show how far it has come: a bar on a terminal, else a line on standard error now and then.

        Raises:
          NotFinite: an observation, reward or loss was not a finite number; says which and when.

        Warns:
          OneMemberDecides: one member of the uncertainty set decided nearly all targets.
        """
        from urbe.deep.progress import learning  # only people look at it
        from urbe.deep.who_decides import warn_of_one

        end = self.step + checks.whole_number("steps", steps, 0)
        watched = watchers(callbacks, self)
        for each in watched.measuring:
            each.describe(self)  # what cannot be measured is said at once
        self.stopped = watched.stop(self)
        with learning(self, end if self.stopped is None else self.step, shown=progress) as show:
            for recorded in learn_and_record(self, end, watched.measuring) if self.stopped is None else ():
                watched.give(*recorded.rows())
                show(recorded.rows())
                self.stopped = recorded.stop
        warn_of_one(self)
        return self

    def predict(self, observation: Any, *, deterministic: bool = True, rng: np.random.Generator | None = None) -> Any:
        """The action for what the environment gives, as the environment takes it.

        Args:
          observation: of the environment's observation space, or B of them side by side as a vector of environments
            gives them; for a simulator `(D,)` or `(B, D)`.
          deterministic: act greedily; or as in training, perturbed by the uncertainty head and with the random actions
            of the present step.
          rng: what the noise and the random actions are drawn from; needed to act as in training.

        Returns:
          an int, or int64 `(B,)`; with `Discrete(n, start=5)` they count from 5.

        Raises:
          ValueError: the observation is not one of the environment's; or `rng` is missing, or given for nothing.
        """
        if checks.flag("deterministic", deterministic) is (rng is not None):
            problem = (
                "given, but acting is deterministic" if deterministic else "missing, but acting is not deterministic"
            )
            raise ValueError(
                f"rng is {problem}; expected predict(observation) to act greedily, or predict(observation, "
                "deterministic=False, rng=numpy.random.default_rng(seed)) to act as in training."
            )
        spaces = self.trainer.spaces
        rows, single = spaces.rows(observation)
        numbers = self.policy.predict(rows, rng)
        if rng is not None:
            share = float(epsilon_at(self.trainer.settings.epsilon, jnp.int32(self.step)))
            random = rng.integers(spaces.n_actions, size=len(rows))
            numbers = np.where(rng.random(len(rows)) < share, random, numbers)
        return spaces.actions(numbers, single)

    def about(self) -> dict[str, Any]:
        """What it is, in plain data: what makes two runs the same."""
        return {
            "version": VERSION,
            "agent": self.name,
            "seed": self.seed,
            "log_every": self.log_every,
            "settings": describe_or_why("settings", self.trainer.settings),
            "world": describe_world(self.trainer.describe()),
        }

    def saved_about(self) -> dict[str, Any]:
        """What a file says of it: `about`, and what is needed to predict without the environment."""
        return {**self.about(), "spaces": self.trainer.spaces.describe()}

    def tensors(self) -> dict[str, np.ndarray]:
        """Everything needed to go on bit for bit, by name."""
        return self.trainer_tensors() | flatten({"history": self.history.state()})

    def trainer_tensors(self) -> dict[str, np.ndarray]:
        """The same without what it has lived through, for those who keep that in logs."""
        return flatten({"trainer": self.trainer.state()})

    def load_tensors(
        self, tensors: Mapping[str, np.ndarray], source: str | os.PathLike[str], history: History | None = None
    ) -> None:
        """Goes on from what `tensors` gave, or `trainer_tensors` with the history; as it was when they do not fit.

        Raises:
          CheckpointError: they are of another agent.
        """
        mine = {name: array for name, array in tensors.items() if name.startswith("trainer/")}
        past = {name.removeprefix("history/"): array for name, array in tensors.items() if name.startswith("history/")}
        if len(mine) + len(past) != len(tensors):
            strange = next(name for name in tensors if not name.startswith(("trainer/", "history/")))
            raise CheckpointError(source, f"holds {strange!r}, which is no part of an agent.")
        lived = History.of(past, source) if history is None else history
        self.trainer.load(unflatten(mine, {"trainer": self.trainer.state()}, source)["trainer"])
        self.history = lived
        lived.begin_members(self.trainer.deciders)  # earlier runs had no such table

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves all of it, replay and random numbers included, into a file; see `urbe.deep.load`.

        Whoever reads there meanwhile, or after a crash, finds the old agent or the new one, whole.
        """
        save_tensors(checks.file_path("path", path), self.tensors(), self.saved_about())
