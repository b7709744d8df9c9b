"""The protocol of trainers, and a trainer without an environment, which only holds a learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from urbe.deep.core.keys import key_data, root_key, with_keys
from urbe.deep.core.learner import Learned, LearnerState, init_learner
from urbe.deep.core.once import jit_once
from urbe.deep.core.precision import double
from urbe.deep.core.settings import Settings
from urbe.gym.kinds import Env
from urbe.gym.spaces import Spaces
from urbe.simulators import Schedule, Simulator


class TrainingRecord(NamedTuple):
    """Means of diagnostics, by name, and the episodes that ended: columns step, return, length.

    Attributes:
      decided: `(K,)` targets decided by each member, of those on which members differ; None for a single member.
    """

    means: dict[str, float]
    episodes: dict[str, np.ndarray]
    decided: np.ndarray | None = None


class Trainer(Protocol):
    """A learner and its environment."""

    settings: Settings
    spaces: Spaces

    @property
    def learner(self) -> Learned:
        """The learner."""

    @property
    def step(self) -> int:
        """Transitions seen."""

    def advance(self, steps: int) -> None:
        """Acts and learns for this number of steps; raises `NotFinite` if a number is not finite."""

    def collect(self, restart: bool = True) -> TrainingRecord:
        """The record since the last restart; the next one begins here if `restart`."""

    def set_members(self, uncertain: Any) -> None:
        """Continues with other members of the uncertainty set, as many; raises ValueError if that is impossible."""

    def state(self) -> Any:
        """Everything needed to resume bit for bit, as nested containers of NumPy arrays."""

    def load(self, state: Any) -> None:
        """Restores the result of `state`."""

    def describe(self) -> dict[str, Any]:
        """Describes the environment: plain data, except `simulator`, `schedule` and `training`, which are objects."""

    def acts_in(self, env: Env) -> bool:
        """Whether it steps this environment, or one that shares its state."""

    @property
    def deciders(self) -> int:
        """The number of members that decide its targets; 1 if targets use the observed outcome."""


def unchangeable(without_set: bool) -> str:
    """Says why the members of a trainer cannot change."""
    lacking = "an uncertainty set" if without_set else "keep_states=True"
    return f"The trainer was made without {lacking}, expected one whose members may change."


@runtime_checkable
class Training(Protocol):
    """A training that replaces DQN in the compiled loop; a frozen dataclass that `urbe.deep.saving.describe` lists."""

    def programs(
        self, settings: Settings, simulator: Simulator, schedule: Schedule | None, record_every: int
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Makes the compiled `begin(key, members) -> run` and `advance(run, members, steps) -> run`.

        A run is a NamedTuple of arrays with the fields `learner`, `meters`, `episodes` and `finite`, as `CompiledRun`.
        """


class FrozenTrainer:
    """A learner whose Gymnasium environment is not available.

    Its state is only the learner: the part `learner` of another trainer's state.

    Args:
      settings: settings of the agent.
      seed: seed of the agent.
      spaces: observation space and actions.
      obs_size, n_actions, members, outcomes: sizes, from the entry "shape" of the trainer's `describe`.
    """

    def __init__(
        self, settings: Settings, seed: int, spaces: Spaces, obs_size: int, n_actions: int, members: int, outcomes: int
    ) -> None:
        self.settings, self.spaces = settings, spaces
        self.environment: str | None = None
        """The training environment as text, if a file has it."""
        self._shape = {"obs_size": obs_size, "n_actions": n_actions, "members": members, "outcomes": outcomes}
        with double():
            start = jit_once(lambda key: init_learner(settings, key, **self._shape))
            self._learner: LearnerState = start(root_key(seed))

    @property
    def learner(self) -> LearnerState:
        """The learner."""
        return self._learner

    @property
    def step(self) -> int:
        """Transitions seen."""
        return int(self._learner.step)

    def advance(self, steps: int) -> None:
        """Raises unless `steps` is 0."""
        if steps:
            raise ValueError(
                "The agent was loaded without its environment, expected one to learn in. It can predict; to continue "
                "training, load it with env=..., made as for training."
            )

    def collect(self, restart: bool = True) -> TrainingRecord:
        """Returns an empty record."""
        return TrainingRecord({}, {})

    def set_members(self, uncertain: Any) -> None:
        """Raises: it has no members."""
        raise ValueError(unchangeable(True))

    def state(self) -> Any:
        """The learner, as nested containers of NumPy arrays."""
        return {"learner": jax.device_get(key_data(self._learner))}

    def load(self, state: Any) -> None:
        """Restores the learner."""
        with double():
            self._learner = with_keys(jax.tree.map(jnp.asarray, state["learner"]), self._learner)

    def acts_in(self, env: Env) -> bool:
        """Whether it steps this environment; always False."""
        return False

    @property
    def deciders(self) -> int:
        """One: it collects nothing."""
        return 1

    def describe(self) -> dict[str, Any]:
        """Describes that there is no environment."""
        return {"kind": "none", "shape": dict(self._shape)}
