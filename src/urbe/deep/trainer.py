"""What an agent needs of a way to train: two of them share one pure update, `urbe.deep.learner`."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np

from urbe.deep.learner import Learner
from urbe.deep.settings import Settings
from urbe.deep.spaces import Spaces


class Record(NamedTuple):
    """Means of what was measured, by name, and the episodes that ended: columns step, return, length."""

    means: dict[str, float]
    episodes: dict[str, np.ndarray]


class Trainer(Protocol):
    """A learner and what it acts in."""

    settings: Settings
    spaces: Spaces

    @property
    def learner(self) -> Learner:
        """What has been learned."""

    @property
    def step(self) -> int:
        """Transitions seen."""

    def advance(self, steps: int) -> None:
        """Acts and learns for so many steps, raising `NotFinite` where a number is not finite."""

    def collect(self) -> Record:
        """What happened since the last call."""

    def state(self) -> Any:
        """Everything needed to go on bit for bit, as nested containers of NumPy arrays."""

    def load(self, state: Any) -> None:
        """Goes on from what `state` gave."""

    def describe(self) -> dict[str, Any]:
        """What it is trained on, in plain data."""

    def acts_in(self, env: gymnasium.Env[Any, Any]) -> bool:
        """Whether it steps this environment, or one that shares its state."""
