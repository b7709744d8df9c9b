"""What a sweep may run: small deep agents and small sums that tell where they began: nowhere, or at a checkpoint.

Each beginning leaves a file beside the cell's `log`: `<cell>.<pid>.<step>.began`.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from urbe.sweep.progress import tell

NAME = "deep_cells"


@dataclass(frozen=True)
class Small:
    """An agent that learns so many steps; without any, a sum."""

    seed: int
    log: str
    steps: int = 0

    @property
    def name(self):
        return f"{'agent' if self.steps else 'sum'}-{self.seed}"

    @property
    def cost(self):
        return self.steps / 3000 + 0.01


class Row(NamedTuple):
    name: str
    step: int
    value: float


def run(cell, folder):
    from urbe.io.runs import saved_steps

    begun = max(saved_steps(folder / "run"), default=0)
    Path(cell.log, f"{cell.name}.{os.getpid()}.{begun}.began").touch()
    return _learn(cell, folder) if cell.steps else [Row("sum", i, 0.1 * i + cell.seed) for i in range(100)]


def _learn(cell, folder):
    from urbe.deep import dqn, train
    from urbe.simulators import CartPole

    agent = dqn(CartPole(time_limit=50), seed=cell.seed, log_every=100, capacity=300, warm_up=50, batch=16)
    half = cell.steps // 2
    train(agent, folder / "run", half, checkpoint_every=100)
    tell(folder, half, cell.steps)
    train(agent, folder / "run", cell.steps, checkpoint_every=100)
    rows = [
        Row(name, int(step), float(value))
        for name in ("mean_return", "td_error")
        for step, value in zip(agent.history.log["step"], agent.history.log[name], strict=True)
    ]
    weights = hashlib.sha256(b"".join(tensor.tobytes() for _, tensor in sorted(agent.tensors().items())))
    return [*rows, Row(weights.hexdigest(), cell.steps, 0.0)]
