"""Agents for tools that are written for Stable-Baselines3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe.deep.agent import Agent


@dataclass(frozen=True, eq=False)
class SB3Policy:
    """An agent whose `predict` has the arguments and the result of Stable-Baselines3's.

    Args:
      agent: who acts.
      rng: what is drawn from when it does not act deterministically.

    >>> from urbe.deep.presets import dqn
    >>> from urbe.simulators import CartPole
    >>> model = SB3Policy(dqn(CartPole(), seed=0, capacity=500, warm_up=100, batch=16), np.random.default_rng(0))
    >>> action, state = model.predict(np.zeros((3, 4)), deterministic=True)
    >>> action.shape, state
    ((3,), None)
    """

    agent: Agent
    rng: np.random.Generator

    def predict(
        self,
        observation: Any,
        state: None = None,
        episode_start: Any = None,  # noqa: ARG002
        deterministic: bool = False,
    ) -> tuple[np.ndarray, None]:
        """Actions, and the state of a policy with a memory, which this is not: None.

        Args:
          observation: see `Agent.predict`.
          state: None, as it is returned.
          episode_start: which episodes have just begun; all the same to a policy without a memory.
          deterministic: see `Agent.predict`; unlike there, False is the default.
        """
        if state is not None:
            raise ValueError(f"state is {state!r:.100}, expected None: the policy has no memory.")
        rng = None if deterministic else self.rng
        return np.asarray(self.agent.predict(observation, deterministic=deterministic, rng=rng)), None
