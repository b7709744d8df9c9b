"""What is an environment of Gymnasium, and which of its spaces are whole numbers."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

Env = gymnasium.Env[Any, Any]
AnyEnv = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]

SINGLE = gymnasium.Env
KINDS = (gymnasium.Env, VectorEnv)
"""The classes of environments, single ones and vectors."""


def innermost(env: Env) -> Any:
    """The environment without its wrappers, of whatever class it is."""
    return env.unwrapped


def numbered(space: Any) -> tuple[int, int] | None:
    """Size and first number of a discrete space; None of another one."""
    return (int(space.n), int(space.start)) if isinstance(space, gymnasium.spaces.Discrete) else None
