"""Add the last steps to the observations of a Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from urbe import checks
from urbe.gym.kinds import AnyEnv, numbered, single
from urbe.gym.rows import Observations


class StackedHistory(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose observations include the last steps, like `urbe.simulators.Stacked`.

    Observations are float32 numbers: the environment's own in a row, then a frame for each of the last steps, the
    oldest first. A frame is [ o | one-hot a | r | episode ended | o' - o ].

    Args:
      env: a single environment with discrete actions.
      length: number of remembered steps.
      survives: whether they are remembered beyond the end of an episode.

    >>> import gymnasium
    >>> StackedHistory(gymnasium.make("CartPole-v1"), length=3).observation_space.shape
    (40,)
    """

    def __init__(self, env: AnyEnv, length: int = 8, survives: bool = True) -> None:
        super().__init__(single(env))
        self.length, self.survives = checks.whole_number("length", length, 1), survives
        self._rows, actions = Observations(self.env.observation_space), numbered(self.env.action_space)
        if actions is None:
            raise ValueError(f"{env} has the action space {env.action_space}, expected Discrete.")
        self._n_actions, self._first = actions
        self._frames = np.zeros((length, 2 * self._rows.size + self._n_actions + 2), np.float32)
        self._obs = np.zeros(self._rows.size, np.float32)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, self._seen().shape, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode, with the steps of earlier ones if they survive."""
        observation, info = self.env.reset(seed=seed, options=options)
        if not self.survives:
            self._frames[:] = 0.0
        elif self._frames[-1].any():  # the last episode may have been abandoned
            self._frames[-1, self._rows.size + self._n_actions + 1] = 1.0
        self._obs = self._rows.row(observation)
        return self._seen(), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Acts once, and remembers it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        reached, taken = self._rows.row(observation), np.zeros(self._n_actions, np.float32)
        taken[int(action) - self._first] = 1.0
        numbers = np.array([reward, terminated or truncated], np.float32)
        self._frames = np.roll(self._frames, -1, axis=0)
        self._frames[-1] = np.concatenate([self._obs, taken, numbers, reached - self._obs])
        self._obs = reached
        return self._seen(), reward, terminated, truncated, info

    def _seen(self) -> np.ndarray:
        return np.concatenate([self._obs, self._frames.ravel()])
