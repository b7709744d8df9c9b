"""Train on a simulator of urbe in a compiled loop."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from urbe import checks
from urbe.deep.core.finite import raise_not_finite
from urbe.deep.core.keys import key_data, root_key, with_keys
from urbe.deep.core.learner import LearnerState
from urbe.deep.core.precision import double
from urbe.deep.core.settings import Settings
from urbe.deep.loops.compiled import CompiledRun, make_advance, make_begin, relabelled
from urbe.deep.loops.meters import FinishedEpisodes, decided_by_member, means, restarted
from urbe.deep.loops.trainer import Training, TrainingRecord, unchangeable
from urbe.gym.kinds import Env
from urbe.gym.spaces import Spaces
from urbe.simulators import Constant, Schedule, Simulator, UncertaintySet
from urbe.simulators.base import observation_size


class CompiledTrainer:
    """A learner and a simulator in one compiled loop.

    Args:
      settings: settings of the agent.
      simulator: the environment.
      uncertain: the set in its targets; None learns from observed outcomes.
      schedule: the changes of the simulator's parameters; None keeps the nominal ones.
      seed: seed of all random numbers.
      record_every: the largest number of steps between two calls of `collect`.
      keep_states: whether `set_members` will be called: states are then stored, too.
      training: a different training than DQN; None for the family of DQN.
    """

    def __init__(
        self,
        settings: Settings,
        simulator: Simulator,
        uncertain: UncertaintySet | None,
        schedule: Schedule | None,
        seed: int,
        record_every: int,
        keep_states: bool = False,
        training: Training | None = None,
    ) -> None:
        self.settings, self.simulator, self.uncertain, self.training = settings, simulator, uncertain, training
        self.schedule = Constant(simulator.nominal()) if schedule is None else schedule
        self._given_schedule = schedule
        self.spaces = Spaces.flat(observation_size(simulator), simulator.n_actions)
        params = None if uncertain is None else uncertain.params
        with double():
            if training is None:
                begin = make_begin(settings, simulator, schedule, record_every, keep_states)
                self._advance = make_advance(settings, simulator, schedule)
            else:
                begin, self._advance = training.programs(settings, simulator, schedule, record_every)
            self._run: CompiledRun = begin(root_key(seed), params)

    @property
    def learner(self) -> LearnerState:
        """The learner."""
        return self._run.learner

    @property
    def step(self) -> int:
        """Transitions seen."""
        return int(self._run.learner.step)

    def advance(self, steps: int) -> None:
        """Acts and learns for this number of steps.

        Raises:
          NotFinite: a number was not finite; the loop stopped after that step.
        """
        with double():
            params = None if self.uncertain is None else self.uncertain.params
            self._run = self._advance(self._run, params, jnp.int32(steps))
            finite = jax.device_get(self._run.finite)
        raise_not_finite(finite, self.uncertain is None)

    def set_members(self, uncertain: UncertaintySet) -> None:
        """Continues with other members, for which the replay is computed again, without another compilation.

        Raises:
          ValueError: there were no members, their number differs, or states were not stored.
        """
        if self.uncertain is None or self._run.states is None:
            raise ValueError(unchangeable(self.uncertain is None))
        checks.kind("uncertain", uncertain, isinstance(uncertain, UncertaintySet), "an UncertaintySet of the simulator")
        if len(uncertain) != len(self.uncertain) or uncertain.names != self.uncertain.names:
            raise ValueError(
                f"uncertain has {len(uncertain)} members with the parameters {', '.join(uncertain.names)}, expected "
                f"{len(self.uncertain)} with {', '.join(self.uncertain.names)}: the replay has room for this number."
            )
        with double():
            self._run = jax.jit(lambda run, params: relabelled(self.settings, self.simulator, run, params))(
                self._run, uncertain.params
            )
        self.uncertain = uncertain

    def collect(self, restart: bool = True) -> TrainingRecord:
        """The record since the last restart; the next one begins here if `restart`."""
        meters, episodes = jax.device_get((self._run.meters, self._run.episodes))
        if restart:
            none: Any = np.int32(0)
            empty = self._run.episodes._replace(ended=none)
            self._run = self._run._replace(meters=restarted(meters), episodes=empty)
        return TrainingRecord(means(meters), _finished(episodes), decided_by_member(meters))

    def state(self) -> Any:
        """Everything needed to resume bit for bit, as nested containers of NumPy arrays."""
        return jax.device_get(key_data(self._run))

    def load(self, state: Any) -> None:
        """Restores the result of `state`."""
        with double():
            self._run = with_keys(jax.tree.map(jnp.asarray, state), self._run)

    def acts_in(self, env: Env) -> bool:
        """Whether it steps this Gymnasium environment; always False."""
        return False

    @property
    def deciders(self) -> int:
        """The number of members that decide targets; 1 if targets use the observed outcome."""
        decided = self._run.meters.decided
        return 1 if decided is None else len(decided)

    def describe(self) -> dict[str, Any]:
        """The training environment, with the simulator and its schedule as objects."""
        return {
            "kind": "simulator",
            "simulator": self.simulator,
            "schedule": self._given_schedule,
            "uncertain": None if self.uncertain is None else self.uncertain.describe(),
            **({} if self.training is None else {"training": self.training}),
        }


def _finished(episodes: FinishedEpisodes) -> dict[str, np.ndarray]:
    n = int(episodes.ended)
    return {
        "step": np.array(episodes.step[:n]),
        "return": np.array(episodes.episode_return[:n], np.float64),
        "length": np.array(episodes.length[:n]),
    }
