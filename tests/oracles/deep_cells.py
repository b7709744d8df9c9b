"""What a sweep may run: small deep agents and small sums that tell where they began: nowhere, or at a checkpoint.

Each beginning leaves a file beside the cell's `log`: `<cell>.<pid>.<step>.began`. A file `<cell>.hold` there holds the
cell at the step that it names until the file changes: tests that kill a cell before its end do not race with it.
"""

from __future__ import annotations

import hashlib
import os
import time
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
    from urbe.runs.directory import saved_steps

    begun = max(saved_steps(folder / "run"), default=0)
    Path(cell.log, f"{cell.name}.{os.getpid()}.{begun}.began").touch()
    return _learn(cell, folder) if cell.steps else [Row("sum", i, 0.1 * i + cell.seed) for i in range(100)]


def _held(cell):
    """The step at which the cell is to wait; its last one when nothing holds it."""
    try:
        return int(Path(cell.log, f"{cell.name}.hold").read_text())
    except FileNotFoundError:
        return cell.steps


def _learn(cell, folder):
    from urbe.deep import dqn, train
    from urbe.simulators import CartPole

    agent = dqn(CartPole(time_limit=50), seed=cell.seed, log_every=100, capacity=300, warm_up=50, batch=16)
    for step in (cell.steps // 2, cell.steps):
        while (held := _held(cell)) < step:
            train(agent, folder / "run", held, checkpoint_every=100)
            while _held(cell) == held:
                time.sleep(0.01)
        train(agent, folder / "run", step, checkpoint_every=100)
        tell(folder, step, cell.steps)
    rows = [
        Row(name, int(step), float(value))
        for name in ("mean_return", "td_error")
        for step, value in zip(agent.history.log["step"], agent.history.log[name], strict=True)
    ]
    weights = hashlib.sha256(b"".join(tensor.tobytes() for _, tensor in sorted(agent.tensors().items())))
    return [*rows, Row(weights.hexdigest(), cell.steps, 0.0)]
