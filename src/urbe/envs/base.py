"""The protocol of environments for tabular agents: parallel replicates with numbered states and actions."""

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
    """B replicates of an environment. The interaction loop handles time limits."""

    def begin(self, episode: int) -> IntArray:
        """Returns `(B,)` first states of an episode."""

    def step(self, replicate: IntArray, state: IntArray, action: IntArray) -> Arrivals:
        """Acts for the replicates `replicate`."""

    def state(self) -> dict[str, Any]:
        """Everything needed to resume."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`."""


class EnvConfig(Protocol):
    """A description of an environment."""

    def start(self, generators: list[np.random.Generator]) -> Env:
        """Starts one replicate per generator."""
