"""urbe's DQN on one of the problems, on one thread: compiled with urbe's simulator, or on Gymnasium's environment."""

from __future__ import annotations

import os
import time
from typing import Any

os.environ |= {"NPROC": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}  # before JAX is imported

import gymnasium

from benchmarks.learning.problems import WHOLE_ROLLOUT, Problem
from benchmarks.learning.training import Trained
from urbe import deep, simulators
from urbe.deep.settings import CopyEvery, Decay, Epsilon, Network, Settings
from urbe.overrides import override

SIMULATORS = {
    "CartPole-v1": simulators.CartPole,
    "Acrobot-v1": simulators.Acrobot,
    "MountainCar-v0": simulators.MountainCar,
}
CLIP_NORM = 20.0
"""Stable-Baselines3's 10 for a loss that is half of ours."""


def settings_for(problem: Problem, changes: list[str]) -> Settings:
    """Returns the problem's hyper-parameters, with some fields changed as by `urbe train --set`."""
    per_round = problem.train_every if problem.gradient_steps == WHOLE_ROLLOUT else problem.gradient_steps
    # a copy between two rounds counts at the next one
    copy_every = max(problem.copy_every, problem.train_every)
    return override(
        Settings(
            network=Network(hidden=problem.hidden, initial="torch"),
            discount=problem.discount,
            learning_rate=problem.learning_rate,
            batch=problem.batch,
            capacity=problem.capacity,
            warm_up=max(problem.warm_up, 1),
            train_every=problem.train_every,
            gradient_steps=per_round,
            copy=CopyEvery(updates=copy_every * per_round // problem.train_every),
            epsilon=Epsilon(1.0, problem.epsilon, round(problem.exploration * problem.steps)),
            huber=1.0,
            clip_norm=CLIP_NORM,
            decay=Decay(1.0, problem.steps),
        ),
        changes,
    )


def train(problem: Problem, settings: Settings, seed: int, compiled: bool) -> Trained:
    """Trains it; the first step is timed separately, because it compiles."""
    world: Any = SIMULATORS[problem.environment]() if compiled else gymnasium.make(problem.environment)
    began = time.process_time()
    agent = deep.dqn(world, seed=seed, settings=settings).learn(1)
    ready = time.process_time()
    agent.learn(problem.steps - 1)
    return Trained(agent.policy.predict, time.process_time() - began, ready - began)
