"""Deep agents: steps per CPU second against Stable-Baselines3, and the share of the machine's peak arithmetic rate.

The paper's CartPole network (4-128-128-128-2), mini-batches of 256, one gradient step per step of the environment, a
replay of 10000, the target copied every 2000 steps (ten full episodes), one thread. Each figure is the best of several
stretches of 2000 steps, so that every stretch has one copy and the stale targets that follow from it; all take turns.
"""

from __future__ import annotations

import os

os.environ |= {"NPROC": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}  # before JAX is imported

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import gymnasium
import numpy as np

from benchmarks.measures import Line
from urbe import deep
from urbe.deep import paper
from urbe.deep.settings import CopyEvery, Epsilon, Settings
from urbe.simulators import UncertaintySet

STRETCH, REPEATS = 2_000, 4
SETTINGS = replace(paper.CARTPOLE, copy=CopyEvery(updates=STRETCH), epsilon=Epsilon(1.0, 0.05, STRETCH))


def deep_agents() -> list[Line]:
    """Measures all agents, which take turns."""
    stretches = {
        "Stable-Baselines3 DQN": _stable_baselines(),
        "dqn": _learner(deep.dqn(paper.cartpole(), seed=0, settings=SETTINGS)),
        "dqn-urbe, 15 members": _urbe(15),
        "dqn-urbe, 60 members": _urbe(60),
        "dqn, host loop": _learner(deep.dqn(gymnasium.make("CartPole-v1"), seed=0, settings=SETTINGS)),
    }
    cpu, wall = _turns(stretches)
    rate = {name: STRETCH / seconds for name, seconds in cpu.items()}
    peer, sgemm = rate["Stable-Baselines3 DQN"], _sgemm()
    gflops = gradient_flops(SETTINGS, 4, 2) * rate["dqn"] / 1e9
    details = {name: f"{rate[name]:.0f} steps per CPU s, {STRETCH / wall[name]:.0f} per s" for name in rate}
    urbe15, urbe60, hosted = (rate[f"dqn{name}"] for name in ("-urbe, 15 members", "-urbe, 60 members", ", host loop"))
    return [
        Line("deep: dqn / Stable-Baselines3 DQN", rate["dqn"] / peer, ">= 4", details["dqn"]),
        Line("deep: Stable-Baselines3 DQN, steps per CPU s", peer, "", details["Stable-Baselines3 DQN"]),
        Line(
            "deep: dqn's gradient arithmetic / sgemm rate",
            gflops / sgemm,
            ">= 0.65",
            f"{gflops:.1f} of {sgemm:.1f} GFLOP/s; only forward and backward of the batch are counted",
        ),
        Line("deep: dqn-urbe / Stable-Baselines3 DQN", urbe15 / peer, ">= 3.5", details["dqn-urbe, 15 members"]),
        Line("deep: dqn-urbe with 15 members / dqn", urbe15 / rate["dqn"], ">= 0.85"),
        Line("deep: time with 60 members / with 15", urbe15 / urbe60, "<= 2", details["dqn-urbe, 60 members"]),
        Line("deep: dqn in the host loop / Stable-Baselines3 DQN", hosted / peer, ">= 2.5", details["dqn, host loop"]),
        *_starts(),
    ]


def gradient_flops(settings: Settings, inputs: int, outputs: int) -> float:
    """Counts the operations of a gradient step: forward, and backward to all weights but not the input."""
    sizes = (inputs, *settings.network.hidden, outputs)
    products = [a * b for a, b in pairwise(sizes)]
    return 2.0 * settings.batch * (3 * sum(products) - products[0])


def _urbe(members: int) -> Callable[[], object]:
    lengths = np.linspace(0.26, 1.26, members - 1).tolist()
    poles = UncertaintySet.grid(paper.cartpole(), half_length=lengths)
    return _learner(deep.dqn_urbe(paper.cartpole(), poles, seed=0, settings=SETTINGS))


def _learner(agent: deep.DQNAgent) -> Callable[[], object]:
    agent.learn(2 * SETTINGS.warm_up)
    return lambda: agent.learn(STRETCH)


def _stable_baselines() -> Callable[[], object]:
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(1)
    model = DQN(
        "MlpPolicy",
        "CartPole-v1",
        policy_kwargs={"net_arch": list(SETTINGS.network.hidden)},
        learning_rate=SETTINGS.learning_rate,
        buffer_size=SETTINGS.capacity,
        learning_starts=SETTINGS.warm_up,
        batch_size=SETTINGS.batch,
        gamma=SETTINGS.discount,
        train_freq=1,
        gradient_steps=1,
        target_update_interval=STRETCH,
        device="cpu",
        seed=0,
    )
    model.learn(2 * SETTINGS.warm_up)
    return lambda: model.learn(STRETCH, reset_num_timesteps=False)


def _turns(stretches: dict[str, Callable[[], object]]) -> tuple[dict[str, float], dict[str, float]]:
    cpu, wall = dict.fromkeys(stretches, float("inf")), dict.fromkeys(stretches, float("inf"))
    for _ in range(REPEATS):
        for name, run in stretches.items():
            wall_began, cpu_began = time.perf_counter(), time.process_time()
            run()
            cpu[name] = min(cpu[name], time.process_time() - cpu_began)
            wall[name] = min(wall[name], time.perf_counter() - wall_began)
    return cpu, wall


def _sgemm(size: int = 1024) -> float:
    """Measures GFLOP/s of a product of two large matrices, by the faster of NumPy and JAX."""
    import jax

    square = np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)
    on_device, product = jax.device_put(square), jax.jit(lambda x: x @ x)
    best = float("inf")
    for run in (lambda: square @ square, lambda: product(on_device).block_until_ready()):
        run()
        for _ in range(20):
            began = time.process_time()
            run()
            best = min(best, time.process_time() - began)
    return 2.0 * size**3 / best / 1e9


def _starts() -> list[Line]:
    """Measures the seconds until the first 100 steps are done, with an empty and with a full compilation cache."""
    code = (
        "import time; t = time.time()\n"
        "from urbe.deep import paper, dqn_urbe\n"
        "from urbe.deep.compilation import cache_compilation; cache_compilation()\n"
        "dqn_urbe(paper.cartpole(), paper.cartpole_set(0), seed=0, settings=paper.CARTPOLE).learn(100)\n"
        "print(time.time() - t)"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        first, second = (
            float(subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True).stdout)
            for _ in range(2)
        )
    return [
        Line("deep: first start of dqn-urbe, s", first, "", "imports, compilation, 100 steps"),
        Line("deep: second start, compiled before, s", second),
    ]
