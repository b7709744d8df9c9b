"""The result of a training, and its test: greedy episodes through Gymnasium, the same for every learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

EPISODES, FIRST_SEED = 100, 1_000_000


class Trained(NamedTuple):
    """A greedy policy, and the CPU seconds it took; `compile_seconds` of them went into compilation."""

    act: Callable[[Any], int]
    seconds: float
    compile_seconds: float


def greedy_returns(act: Callable[[Any], int], environment: str) -> list[float]:
    """Undiscounted returns of `EPISODES` episodes, whose first states are the same for every learner and seed."""
    import gymnasium

    env, returns = gymnasium.make(environment), []
    for episode in range(EPISODES):
        obs, _ = env.reset(seed=FIRST_SEED + episode)
        total, over = 0.0, False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(act(obs))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    env.close()
    return returns
