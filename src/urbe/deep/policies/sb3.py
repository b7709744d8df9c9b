"""Adapt agents to tools for Stable-Baselines3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe.deep.agent import DQNAgent


@dataclass(frozen=True, eq=False)
class SB3Policy:
    """An agent whose `predict` has the interface of Stable-Baselines3.

    Args:
      agent: the agent.
      rng: generator for actions that are not deterministic.

    >>> from urbe.deep.presets import dqn
    >>> from urbe.simulators import CartPole
    >>> model = SB3Policy(dqn(CartPole(), seed=0, capacity=500, warm_up=100, batch=16), np.random.default_rng(0))
    >>> action, state = model.predict(np.zeros((3, 4)), deterministic=True)
    >>> action.shape, state
    ((3,), None)
    """

    agent: DQNAgent
    rng: np.random.Generator

    def predict(
        self, observation: Any, state: None = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[np.ndarray, None]:
        """Returns actions, and None in place of the state of a policy with a memory.

        Args:
          observation: see `DQNAgent.predict`.
          state: None, as returned.
          episode_start: which episodes have just begun; ignored, as the policy has no memory.
          deterministic: see `DQNAgent.predict`; unlike there, False is the default.
        """
        if state is not None:
            raise ValueError(f"state is {state!r:.100}, expected None: the policy has no memory.")
        rng = None if deterministic else self.rng
        return np.asarray(self.agent.predict(observation, deterministic=deterministic, rng=rng)), None
