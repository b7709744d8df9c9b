"""The section of the benchmark page: a table of the finished cells."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from textwrap import fill
from typing import Literal

import numpy as np

from benchmarks.learning.cells import COMPILED, HOST, PEER, Cell, Training, keep_trainings, read_trainings
from benchmarks.learning.problems import PROBLEMS
from benchmarks.learning.training import EPISODES
from urbe.statistics.aggregates import iqm
from urbe.statistics.bootstrap import stratified_bootstrap
from urbe.statistics.estimates import ConfidenceInterval
from urbe.types import FloatArray

HEADING = "## How well DQN learns"
NAMES = {PEER: "Stable-Baselines3", COMPILED: "urbe, compiled", HOST: "urbe, host loop"}
RATIO = 1 / 3
"""The largest wanted share of Stable-Baselines3's CPU time."""

TEXT = """\
Written by `python -m benchmarks.learning --write docs/benchmarks.md` on {day}: {machine}, Python {python}, {packages}.
Both learners have the hyper-parameters that the RL Baselines3 Zoo tuned for Stable-Baselines3's DQN, the same number of
steps, and one thread (`benchmarks/learning/problems.py`). A score is the mean undiscounted return of {episodes} greedy
episodes after training, through Gymnasium and from the same initial states for all. The table has the interquartile
mean (IQM) over seeds with 95 % bootstrap intervals over seeds; for the difference of two IQMs, seeds are resampled in
pairs of the same number. CPU seconds are of training without imports, the minimum over seeds, because other work on the
machine only adds to them; urbe's include compilation, which is also listed separately. {changes}{unfinished}The target
is a difference whose interval reaches 0 or lies above it, with at most a third of Stable-Baselines3's CPU time."""

TABLE = """\
| environment | learner | seeds | IQM | 95 % | difference | 95 % | CPU s | compiling | share of CPU | |
|---|---|---:|---:|---|---:|---|---:|---:|---:|---|
"""

Found = dict[Cell, Training]


def section(folder: Path, seeds: Sequence[int]) -> str:
    """Returns its text, and stores the trainings in `trainings.csv`."""
    found = {cell: each for cell, each in read_trainings(folder).items() if cell.seed in seeds}
    keep_trainings(found)
    text = TEXT.format(
        day=date.today().isoformat(),
        machine=platform.machine(),
        python=platform.python_version(),
        packages=_packages(found),
        episodes=EPISODES,
        changes=_changes(found),
        unfinished=_unfinished(found, len(seeds)),
    )
    rows = "\n".join(row for environment in PROBLEMS for row in _rows(found, environment))
    return f"{HEADING}\n\n{fill(text, 120, break_long_words=False)}\n\n{TABLE}{rows}\n"


def _unfinished(found: Found, seeds: int) -> str:
    """Returns a sentence if some learner has not been trained with every seed yet."""
    counts = Counter(cell[:2] for cell in found)
    return f"Rows with fewer than {seeds} seeds are not finished. " if min(counts.values()) < seeds else ""


def _packages(found: Found) -> str:
    versions = {item for each in found.values() for item in each.versions.split()}
    return ", ".join(item.replace("=", " ") for item in sorted(versions))


def _changes(found: Found) -> str:
    changes = sorted({f"`{each.changes}`" for each in found.values() if each.changes})
    return f"urbe's settings differ in {', '.join(changes)}, chosen on seeds of at least 100. " if changes else ""


def _rows(found: Found, environment: str) -> Iterator[str]:
    peer = _scores(found, environment, PEER)
    for learner, name in NAMES.items():
        scores = _scores(found, environment, learner)
        if len(scores) < 2:
            continue
        seconds = _least(found, environment, learner, "seconds")
        cells = [environment, name, str(len(scores)), *_interval(_own(scores))]
        if learner == PEER or len(peer) < 2:
            yield _row([*cells, "", "", f"{seconds:.0f}", "", "", ""])
            continue
        difference = _difference(scores, peer)
        share = seconds / _least(found, environment, PEER, "seconds")
        compiling = _least(found, environment, learner, "compile_seconds")
        verdict = "met" if difference.high >= 0.0 and share <= RATIO else "**missed**"
        costs = [f"{seconds:.0f}", f"{compiling:.1f}", f"{share:.2f}", verdict]
        yield _row([*cells, *_interval(difference), *costs])


def _scores(found: Found, environment: str, learner: str) -> dict[int, float]:
    """Returns the score of each seed."""
    return {cell.seed: each.score for cell, each in found.items() if cell[:2] == (environment, learner)}


def _least(found: Found, environment: str, learner: str, name: Literal["seconds", "compile_seconds"]) -> float:
    chosen = [getattr(each, name) for cell, each in found.items() if cell[:2] == (environment, learner)]
    return float(min(chosen))


def _own(scores: dict[int, float]) -> ConfidenceInterval:
    return stratified_bootstrap(iqm, [np.array(list(scores.values()))], np.random.default_rng(0))


def _difference(ours: dict[int, float], theirs: dict[int, float]) -> ConfidenceInterval:
    """Computes the difference of the two IQMs over the seeds of both, with seeds resampled in pairs."""
    seeds = sorted(ours.keys() & theirs.keys())
    pairs = np.array([[ours[seed], theirs[seed]] for seed in seeds])

    def difference(groups: Sequence[FloatArray]) -> FloatArray:
        drawn = pairs[groups[0].astype(np.int64)]
        return iqm([drawn[..., 0]]) - iqm([drawn[..., 1]])

    return stratified_bootstrap(difference, [np.arange(len(seeds))], np.random.default_rng(0))


def _interval(found: ConfidenceInterval) -> list[str]:
    estimate, low, high = (f"{number:.1f}" for number in found)
    return [estimate, f"{low} to {high}"]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
