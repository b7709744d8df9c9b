"""Recognise environments of Gymnasium and their discrete spaces."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

Env = gymnasium.Env[Any, Any]
AnyEnv = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]

SINGLE = gymnasium.Env
KINDS = (gymnasium.Env, VectorEnv)
"""The classes of environments, single ones and vectors."""


@runtime_checkable
class Randomised(Protocol):
    """A wrapper that draws parameters, and whose draws can be saved: `urbe.gym.RandomisedParams`."""

    def get_draws(self) -> np.ndarray:
        """Integers from which `set_draws` continues."""

    def set_draws(self, draws: np.ndarray) -> None:
        """Restores the draws and their parameters."""

    def describe_draws(self) -> dict[str, Any]:
        """Describes the distribution of the parameters, as plain data."""


def single(env: AnyEnv) -> Env:
    """The environment itself; raises ValueError for a vector, whose environments are wrapped one by one."""
    if not isinstance(env, SINGLE):
        raise ValueError(
            f"env is {env}, expected a single environment; of a vector, wrap each one before they are put together."
        )
    return env


def innermost(env: Env) -> Any:
    """The environment without its wrappers, of any class."""
    return env.unwrapped


def numbered(space: Any) -> tuple[int, int] | None:
    """Size and first number of a discrete space; None for other spaces."""
    return (int(space.n), int(space.start)) if isinstance(space, gymnasium.spaces.Discrete) else None
