"""Restrict a continuous environment to a finite number of actions."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from urbe import checks


class DiscreteActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """An environment with a box of actions, restricted to the listed ones.

    Args:
      env: with a Box action space.
      values: one row per action, `(A, ...)` with the box's shape in each; `(A,)` for a box of one number.

    >>> import gymnasium
    >>> env = DiscreteActions(gymnasium.make("MountainCarContinuous-v0"), [-1.0, 0.0, 1.0])
    >>> env.action_space, env.action(2)
    (Discrete(3), array([1.], dtype=float32))
    """

    def __init__(self, env: gymnasium.Env[Any, Any], values: ArrayLike) -> None:
        super().__init__(env)
        box = env.action_space
        if not isinstance(box, gymnasium.spaces.Box):
            raise ValueError(f"env has the action space {box}, expected a Box; others need no values.")
        rows = checks.float_array("values", values)
        if rows.ndim == 1 and np.prod(box.shape) == 1:
            rows = rows.reshape(-1, *box.shape)
        if rows.ndim != 1 + len(box.shape) or rows.shape[1:] != box.shape or not len(rows):
            raise ValueError(
                f"values has shape {rows.shape}, expected (A, {', '.join(map(str, box.shape))}): one row per action."
            )
        outside = ((rows < box.low) | (rows > box.high)).reshape(len(rows), -1).any(axis=1)
        if outside.any():
            at = int(np.argmax(outside))
            raise ValueError(f"values[{at}] is {rows[at]}, expected an action between {box.low} and {box.high}.")
        self.values = rows.astype(box.dtype)
        self.action_space = gymnasium.spaces.Discrete(len(rows))

    def action(self, action: Any) -> Any:
        """Returns the action with this number."""
        return self.values[int(action)].copy()
