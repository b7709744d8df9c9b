"""The interface of tabular environments: parallel replicates with numbered states and actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from urbe.types import BoolArray, FloatArray, IntArray


class Arrival(NamedTuple):
    """The results of actions, for the replicates that acted; all `(K,)`."""

    next_state: IntArray
    reward: FloatArray
    terminated: BoolArray


class Env(Protocol):
    """B replicates of an environment. The caller enforces time limits."""

    def begin(self, episode: int) -> IntArray:
        """Returns `(B,)` first states of an episode."""

    def step(self, replicate: IntArray, state: IntArray, action: IntArray) -> Arrival:
        """Acts for the replicates `replicate`."""

    def state(self) -> dict[str, Any]:
        """Returns the state needed to resume."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`."""


class EnvConfig(Protocol):
    """A description of an environment."""

    def start(self, generators: list[np.random.Generator]) -> Env:
        """Starts one replicate per generator."""
