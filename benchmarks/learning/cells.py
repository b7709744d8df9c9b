"""Cells: one training each, run in a separate process.

A finished training is stored in its own file, in a folder that git ignores, and as a row of `trainings.csv` next to
this file, from which a repeated comparison continues.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.learning.problems import PROBLEMS
from benchmarks.learning.training import greedy_returns
from urbe.atomic import replace_files, text_writer

PEER, COMPILED, HOST = "stable-baselines3", "urbe", "urbe-host"
LEARNERS = (PEER, COMPILED, HOST)
SIMULATED = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")
"""The environments that urbe simulates itself."""


TRAININGS = Path(__file__).with_name("trainings.csv")
PACKAGES = {PEER: ("stable-baselines3", "torch"), COMPILED: ("jax",), HOST: ("jax",)}


class Cell(NamedTuple):
    """One training."""

    environment: str
    learner: str
    seed: int

    def file(self, folder: Path) -> Path:
        """Returns the file of its results."""
        return folder / f"{self.environment}_{self.learner}_{self.seed}.json"


def cells(environments: list[str], learners: list[str], seeds: list[int]) -> list[Cell]:
    """Lists all cells seed by seed, so that an interrupted run has about as many of each environment."""
    return [
        Cell(environment, learner, seed)
        for seed in seeds
        for environment in environments
        for learner in learners
        if learner != COMPILED or environment in SIMULATED
    ]


class Training(NamedTuple):
    """The result of a cell.

    Attributes:
      score: mean return of greedy test episodes.
      seconds: CPU seconds of training.
      compile_seconds: how many of them went into compilation.
      changes: of urbe's settings, separated by spaces.
      versions: of the packages that matter, separated by spaces.
    """

    score: float
    seconds: float
    compile_seconds: float
    changes: str
    versions: str


def run_cell(cell: Cell, folder: Path, changes: list[str]) -> None:
    """Trains and tests in this process, and writes the file; `changes` are of urbe's settings, see `ours`."""
    problem = PROBLEMS[cell.environment]
    folder.mkdir(parents=True, exist_ok=True)
    if cell.learner == PEER:
        from benchmarks.learning import peer

        trained = peer.train(problem, cell.seed)
    else:
        from benchmarks.learning import ours

        trained = ours.train(problem, ours.settings_for(problem, changes), cell.seed, cell.learner == COMPILED)
    packages = ("numpy", "gymnasium", *PACKAGES[cell.learner])
    training = Training(
        score=fmean(greedy_returns(trained.act, cell.environment)),
        seconds=trained.seconds,
        compile_seconds=trained.compile_seconds,
        changes="" if cell.learner == PEER else " ".join(changes),
        versions=" ".join(f"{name}={version(name)}" for name in packages),
    )
    text = json.dumps({**cell._asdict(), **training._asdict()})
    replace_files({cell.file(folder): text_writer([text])})


def run_missing(wanted: list[Cell], folder: Path, changes: list[str]) -> None:
    """Runs the cells without results, one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    for cell in wanted:
        if cell not in read_trainings(folder):
            options = ["--run", cell.environment, cell.learner, str(cell.seed), "--cells", str(folder)]
            subprocess.run([sys.executable, "-m", "benchmarks.learning", *options, "--set", *changes], check=True)
            done = read_trainings(folder)[cell]
            print(
                f"{cell.environment} {cell.learner} {cell.seed}: {done.score:.1f}, {done.seconds:.1f} CPU s", flush=True
            )


def read_trainings(folder: Path) -> dict[Cell, Training]:
    """Reads the rows of `trainings.csv`, and the files of the folder, which are newer."""
    rows: list[dict[str, Any]] = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    if TRAININGS.exists():
        with TRAININGS.open(newline="") as file:
            rows = [*csv.DictReader(file), *rows]
    return {
        Cell(row["environment"], row["learner"], int(row["seed"])): Training(
            float(row["score"]), float(row["seconds"]), float(row["compile_seconds"]), row["changes"], row["versions"]
        )
        for row in rows
    }


def keep_trainings(trainings: dict[Cell, Training]) -> None:
    """Writes `trainings.csv`."""
    with io.StringIO(newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(Cell._fields + Training._fields)
        for cell, training in sorted(trainings.items()):
            writer.writerow([*cell, training.score, f"{training.seconds:.2f}", f"{training.compile_seconds:.2f}",
                             training.changes, training.versions])  # fmt: skip
        replace_files({TRAININGS: text_writer([text.getvalue()])})
