"""What an agent needs of a way to train, and the way without an environment, which only holds what was learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from urbe.deep.core.keys import key_data, root_key, with_keys
from urbe.deep.core.learner import Learned, LearnerState, init_learner
from urbe.deep.core.precision import double
from urbe.deep.core.settings import Settings
from urbe.gym.kinds import Env
from urbe.gym.spaces import Spaces
from urbe.simulators import Schedule, Simulator


class TrainingRecord(NamedTuple):
    """Means of what was measured, by name, and the episodes that ended: columns step, return, length.

    Attributes:
      decided: `(K,)` targets that each member decided, of those on which they differ; None where there is one alone.
    """

    means: dict[str, float]
    episodes: dict[str, np.ndarray]
    decided: np.ndarray | None = None


class Trainer(Protocol):
    """A learner and what it acts in."""

    settings: Settings
    spaces: Spaces

    @property
    def learner(self) -> Learned:
        """What has been learned."""

    @property
    def step(self) -> int:
        """Transitions seen."""

    def advance(self, steps: int) -> None:
        """Acts and learns for so many steps, raising `NotFinite` where a number is not finite."""

    def collect(self) -> TrainingRecord:
        """What happened since the last call."""

    def state(self) -> Any:
        """Everything needed to go on bit for bit, as nested containers of NumPy arrays."""

    def load(self, state: Any) -> None:
        """Goes on from what `state` gave."""

    def describe(self) -> dict[str, Any]:
        """What it is trained on: plain data, but for `simulator`, `schedule` and `training`, which are values."""

    def acts_in(self, env: Env) -> bool:
        """Whether it steps this environment, or one that shares its state."""

    @property
    def deciders(self) -> int:
        """How many members decide its targets; 1 where these are of what is observed."""


@runtime_checkable
class Training(Protocol):
    """What a compiled loop does in another way than DQN; a frozen dataclass that `urbe.deep.describe` lists."""

    def programs(
        self, settings: Settings, simulator: Simulator, schedule: Schedule | None, record_every: int
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """`begin(key, members) -> run` and `advance(run, members, steps) -> run`, compiled.

        A run is a NamedTuple of arrays with the fields `learner`, `meters`, `episodes` and `finite`, as `CompiledRun`.
        """


class FrozenTrainer:
    """What was learned in a Gymnasium environment that is not at hand.

    Its state is the learner alone: of what another trainer saved, the part under `learner`.

    Args:
      settings: what kind of agent learned.
      seed: of the agent.
      spaces: what it observed and how it acted.
      obs_size, n_actions, members, outcomes: sizes, as `describe` of the trainer had them under "shape".
    """

    def __init__(
        self, settings: Settings, seed: int, spaces: Spaces, obs_size: int, n_actions: int, members: int, outcomes: int
    ) -> None:
        self.settings, self.spaces = settings, spaces
        self.environment: str | None = None
        """What it learned in, as text, where a file says so."""
        self._shape = {"obs_size": obs_size, "n_actions": n_actions, "members": members, "outcomes": outcomes}
        with double():
            self._learner: LearnerState = jax.jit(lambda key: init_learner(settings, key, **self._shape))(
                root_key(seed)
            )

    @property
    def learner(self) -> LearnerState:
        """What has been learned."""
        return self._learner

    @property
    def step(self) -> int:
        """Transitions seen."""
        return int(self._learner.step)

    def advance(self, steps: int) -> None:
        """Raises when there is anything to do."""
        if steps:
            raise ValueError(
                "The agent was loaded without its environment, expected one to learn in. It can predict; to go on "
                "learning, load it with env=..., made as it was for training."
            )

    def collect(self) -> TrainingRecord:
        """Nothing happens."""
        return TrainingRecord({}, {})

    def state(self) -> Any:
        """The learner, as nested containers of NumPy arrays."""
        return {"learner": jax.device_get(key_data(self._learner))}

    def load(self, state: Any) -> None:
        """Takes over what was learned."""
        with double():
            self._learner = with_keys(jax.tree.map(jnp.asarray, state["learner"]), self._learner)

    def acts_in(self, env: Env) -> bool:  # noqa: ARG002
        """Whether it steps this environment; it steps none."""
        return False

    @property
    def deciders(self) -> int:
        """One: it collects nothing."""
        return 1

    def describe(self) -> dict[str, Any]:
        """That there is no world."""
        return {"kind": "none", "shape": dict(self._shape)}
