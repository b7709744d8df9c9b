"""What a tabular agent acts in: replicates of an environment with numbered states and actions, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from urbe.types import BoolArray, FloatArray, IntArray


class Arrivals(NamedTuple):
    """What an action led to, for the replicates that acted; all `(K,)`."""

    next_state: IntArray
    reward: FloatArray
    terminated: BoolArray


class Env(Protocol):
    """B replicates of an environment. Time limits are kept by whoever runs it."""

    def begin(self, episode: int) -> IntArray:
        """`(B,)` first states of an episode."""

    def step(self, replicate: IntArray, state: IntArray, action: IntArray) -> Arrivals:
        """Acts for the replicates `replicate`."""

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave."""


class EnvConfig(Protocol):
    """A description of an environment."""

    def start(self, generators: list[np.random.Generator]) -> Env:
        """One replicate per generator."""
