"""Choose prior and hazard of the rover's belief on separate random schedules, by exact plans.

    python -m urbe.paper.adaptation.tuning

takes about four minutes and prints the table from which `CHOSEN` was taken. The chapter evaluates none of these
schedules or seeds, and none of the chapter's was used here. The criterion is the mean loss over the schedules, relative
to an agent that knows the failure probability of every episode. Nothing is trained: plans are exact (`journeys`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from urbe import rng
from urbe.belief import Switching
from urbe.paper.adaptation.journeys import Journeys, live, plan
from urbe.paper.adaptation.members import FAILURES
from urbe.types import FloatArray

SEED = 100
LIVES, EPISODES = 200, 250

THRESHOLD = 0.054

HAZARDS = (0.01, 0.02, 0.04, 0.08)

UNKNOWN = ((0.005, 0.05), (0.003, 0.03, 0.3), (0.01, 0.04, 0.16))
"""Candidates of an unknown hazard, initially with equal probability."""

BENIGN = (0.3, 6 / 13, 0.6, 0.75)
"""Prior probabilities of the members under which travelling pays; 6 / 13 is the uniform prior."""

BOUNDARY = 0.97
"""The discount from episode to episode."""


class Candidate(NamedTuple):
    """The prior belief about changes; with several hazards, the hazard is unknown."""

    hazard: float | tuple[float, ...]
    benign: float

    @property
    def switching(self) -> Switching:
        return Switching(self.hazard, per="episode", prior=prior_of(self.benign))


CHOSEN = Candidate(hazard=(0.005, 0.05), benign=0.6)
"""The lowest mean loss of the table, 0.0787; with one hazard the lowest is 0.0805, of 0.04 and the same prior."""


def prior_of(benign: float) -> tuple[float, ...]:
    """Makes a prior that is uniform on each side of the threshold, with this probability below it."""
    low = np.array(FAILURES) < THRESHOLD
    share: FloatArray = np.where(low, benign / low.sum(), (1.0 - benign) / (~low).sum())
    return tuple((share / share.sum()).tolist())


def _log_uniform(draws: np.random.Generator, low: float, high: float, size: int) -> FloatArray:
    return np.exp(draws.uniform(np.log(low), np.log(high), size))


def _regimes(draws: np.random.Generator) -> FloatArray:
    """In order, then broken, and so on, for 20 to 100 episodes each; the failure probability is drawn for each."""
    parts: list[FloatArray] = []
    benign = bool(draws.random() < 0.5)
    while sum(len(part) for part in parts) < EPISODES:
        low, high = (0.003, 0.03) if benign else (0.1, 0.9)
        parts.append(np.repeat(_log_uniform(draws, low, high, 1), draws.integers(20, 101)))
        benign = not benign
    return np.concatenate(parts)[:EPISODES]


def _jumps(hazard: float) -> Callable[[np.random.Generator], FloatArray]:
    def path(draws: np.random.Generator) -> FloatArray:
        held = _log_uniform(draws, 0.001, 0.5, EPISODES)
        last = np.maximum.accumulate(np.where(draws.random(EPISODES) < hazard, np.arange(EPISODES), 0))
        return held[last]

    return path


SCHEDULES: dict[str, Callable[[np.random.Generator], FloatArray]] = {
    "regimes": _regimes,
    "jumps 0.02": _jumps(0.02),
    "jumps 0.1": _jumps(0.1),
    "never": _jumps(0.0),
}
"""Random schedules: a life's failure probabilities from its generator."""


def schedules() -> dict[str, FloatArray]:
    """`(LIVES, EPISODES)` failure probabilities of each."""
    return {
        name: np.stack([path(rng.stream(SEED, name, life)) for life in range(LIVES)])
        for name, path in SCHEDULES.items()
    }


def table() -> Iterator[tuple[Candidate, dict[str, float]]]:
    """Returns each candidate, and its mean loss per episode under each schedule."""
    journeys, held = Journeys(), schedules()
    for candidate in (Candidate(hazard, benign) for hazard in (*HAZARDS, *UNKNOWN) for benign in BENIGN):
        decides = plan(journeys, FAILURES, candidate.switching, BOUNDARY, seed=SEED)
        lost = {}
        for name, each in held.items():
            earned = live(journeys, FAILURES, candidate.switching, decides.travels, each, SEED + 1)
            lost[name] = float((journeys.best(each) - earned).mean())
        yield candidate, lost


if __name__ == "__main__":
    print("            hazard  benign", *(f"{name:>10}" for name in SCHEDULES), "      mean")
    for candidate, lost in table():
        numbers = (f"{loss:10.4f}" for loss in (*lost.values(), np.mean(list(lost.values()))))
        print(f"{candidate.hazard!s:>18}  {candidate.benign:6.3f}", *numbers, flush=True)
