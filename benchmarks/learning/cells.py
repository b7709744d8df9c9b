"""Cells: one training each, run in a process of its own, and kept in a file of its own once it is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.learning.problems import PROBLEMS
from benchmarks.learning.training import greedy_returns

PEER, COMPILED, HOST = "stable-baselines3", "urbe", "urbe-host"
LEARNERS = (PEER, COMPILED, HOST)
SIMULATED = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")
"""The environments that urbe simulates itself."""


PACKAGES = {PEER: ("stable-baselines3", "torch"), COMPILED: ("jax",), HOST: ("jax",)}


class Cell(NamedTuple):
    """One training."""

    environment: str
    learner: str
    seed: int

    def file(self, folder: Path) -> Path:
        """Where its results are."""
        return folder / f"{self.environment}_{self.learner}_{self.seed}.json"


def cells(environments: list[str], learners: list[str], seeds: list[int]) -> list[Cell]:
    """All of them, seed by seed: whenever one stops, all environments have about as many."""
    return [
        Cell(environment, learner, seed)
        for seed in seeds
        for environment in environments
        for learner in learners
        if learner != COMPILED or environment in SIMULATED
    ]


def run_cell(cell: Cell, folder: Path, changes: list[str]) -> None:
    """Trains and tests in this process, and writes the file; `changes` are of urbe's settings, see `ours`."""
    problem = PROBLEMS[cell.environment]
    if cell.learner == PEER:
        from benchmarks.learning import peer

        trained = peer.train(problem, cell.seed)
    else:
        from benchmarks.learning import ours

        trained = ours.train(problem, ours.settings_for(problem, changes), cell.seed, cell.learner == COMPILED)
    found = {
        **cell._asdict(),
        "returns": greedy_returns(trained.act, cell.environment),
        "seconds": trained.seconds,
        "compile_seconds": trained.compile_seconds,
        "changes": [] if cell.learner == PEER else changes,
        "versions": {name: version(name) for name in ("numpy", "gymnasium", *PACKAGES[cell.learner])},
    }
    _write(cell.file(folder), found)


def run_missing(wanted: list[Cell], folder: Path, changes: list[str]) -> None:
    """Runs the cells that have no file yet, one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    for cell in wanted:
        if not cell.file(folder).exists():
            options = ["--run", cell.environment, cell.learner, str(cell.seed), "--cells", str(folder)]
            subprocess.run([sys.executable, "-m", "benchmarks.learning", *options, "--set", *changes], check=True)
            found = json.loads(cell.file(folder).read_text())
            mean = sum(found["returns"]) / len(found["returns"])
            print(
                f"{cell.environment} {cell.learner} {cell.seed}: {mean:.1f}, {found['seconds']:.1f} CPU s", flush=True
            )


def read_cells(folder: Path) -> dict[Cell, dict[str, Any]]:
    """What there is."""
    found = (json.loads(path.read_text()) for path in sorted(folder.glob("*.json")))
    return {Cell(each["environment"], each["learner"], each["seed"]): each for each in found}


def _write(path: Path, found: dict[str, Any]) -> None:
    """At once: a file that exists is whole."""
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(found))
    unfinished.replace(path)
