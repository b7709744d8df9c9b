"""Adaptive agents: the cost of a training step compared with DQN-URBE, and the cost of a step of a deployment.

    python -m benchmarks.adaptive

Training is on CartPole with 15 members, in stretches that take turns; steps are steps of experience. DQN-URBE takes one
gradient step of 256 transitions per step, as in the paper; the belief-state agent takes four of 512 per 2048 steps, and
looks ahead under all members at every step. So the cost of a transition that a gradient step learns from is shown too:
the belief-state agent learns from each once, DQN-URBE from 256 per step. A step of a deployment is `act` and `observe`,
on given observations.
"""

from __future__ import annotations

import os

os.environ |= {"NPROC": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}  # before JAX is imported

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.deep import SETTINGS, STRETCH
from benchmarks.measures import Line
from urbe import deep
from urbe.belief import Sensor, Switching
from urbe.deep import paper
from urbe.paper.adaptation.domains import DOMAINS
from urbe.simulators import UncertaintySet

REPEATS = 4
LONG = 20_480
"""Steps of a stretch of the belief-state agent: ten rounds."""

STEPS, STRETCHES = 100, 30
"""Steps of a stretch of a deployment, and number of stretches, of which the fastest counts."""


def adaptive_agents() -> list[Line]:
    """Measures training and deployments."""
    return [*_training(), *_deployments()]


def _training() -> list[Line]:
    pole = paper.cartpole()
    lengths = np.linspace(0.26, 1.26, 14).tolist()
    poles = UncertaintySet.grid(pole, half_length=lengths)
    fixed = deep.dqn_urbe(pole, poles, seed=0, settings=SETTINGS)
    wide = deep.DuelingNetwork(tuple(SETTINGS.network.hidden))
    ours = {
        name: deep.bayes_adaptive_dqn(pole, poles, switching=Switching(1e-3), seed=0, boundary=0.5, **changes)
        for name, changes in (("", {}), (" and DQN-URBE's layers", {"network": wide}))
    }
    fixed.learn(2 * SETTINGS.warm_up)
    for agent in ours.values():
        agent.learn(LONG)
    runs: dict[str, tuple[Callable[[], object], int]] = {"fixed": (lambda: fixed.learn(STRETCH), STRETCH)}
    runs |= {name: ((lambda agent=agent: agent.learn(LONG)), LONG) for name, agent in ours.items()}
    cost = dict.fromkeys(runs, float("inf"))
    for _ in range(REPEATS):
        for name, (run, steps) in runs.items():
            began = time.process_time()
            run()
            cost[name] = min(cost[name], (time.process_time() - began) / steps)
    learned = cost["fixed"] / SETTINGS.batch
    return [
        *(
            Line(
                f"adaptive: a training step with 15 members{name} / of dqn-urbe with 15",
                cost[name] / cost["fixed"],
                "<= 1.5",
                f"{1e6 * cost[name]:.0f} and {1e6 * cost['fixed']:.0f} us of CPU time",
            )
            for name in ours
        ),
        *(
            Line(
                f"adaptive: a transition learned from{name} / of dqn-urbe with 15",
                cost[name] / learned,
                "",
                f"{1e6 * cost[name]:.1f} and {1e6 * learned:.1f} us of CPU time",
            )
            for name in ours
        ),
    ]


def _deployments() -> list[Line]:
    lines = []
    for name in ("rover", "gain", "acrobot"):
        domain = DOMAINS[name]()
        agent = deep.bayes_adaptive_dqn(domain.simulator, domain.members, switching=domain.switching, seed=0)
        lines.append(_deployment(name, agent))
        if name == "gain":
            lines.append(_deployment("gain, states estimated", agent, sensor=Sensor(0.01)))
    return lines


def _deployment(name: str, agent: deep.AdaptiveAgent, **changes: Any) -> Line:
    size, draws = agent.spaces.observation.shape[0], np.random.default_rng(0)
    seen = 0.05 * draws.normal(size=(STEPS, size)).astype(np.float32)
    if name == "rover":
        seen = np.eye(size, dtype=np.float32)[draws.integers(0, size, STEPS)]
    session, best = agent.deploy(**changes), float("inf")
    session.act(seen[0])
    for _ in range(STRETCHES):
        session.log.clear()
        began = time.process_time()
        for each in seen:
            session.observe(1.0, each, False)
            session.act(each)
        best = min(best, (time.process_time() - began) / STEPS)
    members = f"{len(agent.uncertainty_set)} members"
    return Line(f"adaptive: act and observe, {name}, us of CPU time", 1e6 * best, "<= 200", members)


def main() -> None:
    for line in adaptive_agents():
        print(f"{line.what:75} {line.found:8.3g}  {line.target:7} {line.detail}", flush=True)


if __name__ == "__main__":
    main()
