"""Stable-Baselines3's DQN on one of the problems, on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.learning.problems import Problem
from benchmarks.learning.training import Trained


def train(problem: Problem, seed: int) -> Trained:
    """Trains it as the Zoo does."""
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(1)
    began = time.process_time()
    model = DQN(
        "MlpPolicy",
        problem.environment,
        policy_kwargs={"net_arch": list(problem.hidden)},
        learning_rate=problem.learning_rate,
        buffer_size=problem.capacity,
        learning_starts=problem.warm_up,
        batch_size=problem.batch,
        gamma=problem.discount,
        train_freq=problem.train_every,
        gradient_steps=problem.gradient_steps,
        target_update_interval=problem.copy_every,
        exploration_fraction=problem.exploration,
        exploration_final_eps=problem.epsilon,
        device="cpu",
        seed=seed,
    )
    model.learn(problem.steps)
    return Trained(_greedy(model), time.process_time() - began, 0.0)


def _greedy(model: Any) -> Callable[[Any], int]:
    return lambda obs: int(model.predict(obs, deterministic=True)[0])
