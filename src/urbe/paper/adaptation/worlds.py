"""Domains and worlds: a domain has a simulator, members, and worlds in which the parameters change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from urbe import rng
from urbe.belief import Switching
from urbe.paper.adaptation import DRAWN
from urbe.paper.adaptation.journeys import Journeys
from urbe.simulators import Distribution, LogUniform, RandomJumps, Schedule, StepChange, UncertaintySet

PHASE = 50
"""Episodes of a phase on Mars Rover; a world without phases has five times as many."""

SHORT = 10
"""Episodes of a phase in domains in which every step is informative."""

PRIORS_SEED = 880002
"""Seed of the priors of the drawn schedules, which no choice of any agent used."""


@dataclass(frozen=True)
class World:
    """How parameters change from episode to episode.

    Attributes:
      schedule: schedule of the parameters.
      episodes: episodes of a life.
      phases: lengths of phases, if they are the same for all lives.
      noise: standard deviation of noise on observations.
    """

    schedule: Schedule
    episodes: int
    phases: tuple[int, ...] = ()
    noise: float = 0.0


@dataclass(frozen=True)
class Domain:
    """A domain in which agents are trained and deployed.

    Attributes:
      simulator: the simulator with its nominal parameters.
      members: the members of the belief.
      switching: the agents' assumption about changes; no world satisfies it exactly.
      parameter: the parameter that changes, and its name on axes.
      unit: unit of the parameter on axes.
      worlds: the worlds by name; the first is drawn in detail.
      journeys: episodes as single decisions, travel or wait, if they are such; decisions are then planned exactly.
      of_success: whether the parameter is the probability of success, not of failure, on a journey.
      mirrored: whether a negative parameter is a positive one with the actions in reverse order.
    """

    simulator: Any
    members: UncertaintySet
    switching: Switching
    parameter: tuple[str, str]
    unit: float
    worlds: Mapping[str, World]
    journeys: Journeys | None = None
    of_success: bool = False
    mirrored: bool = False


def phases(base: Any, name: str, values: tuple[float, ...], length: int) -> World:
    """Sudden changes after phases of one length."""
    held = tuple((length, base._replace(**{name: value})) for value in values)
    return World(StepChange(held), length * len(values), (length,) * len(values))


def same(base: Any, name: str, value: float, episodes: int) -> World:
    """No changes."""
    return phases(base, name, (value,), episodes)


def jumps(base: Any, name: str, law: Distribution, hazard: float, episodes: int) -> World:
    """Sudden changes at random times, to values drawn from a distribution."""
    return World(RandomJumps(base, {name: law}, hazard), episodes)


def drawn(base: Any, name: str, least: float, most: float, episodes: int, rate: float) -> dict[str, World]:
    """Makes worlds that jump at random times, each with its own prior.

    The ends of its range are log-uniform in [least, most], and its hazard is log-uniform within a factor of ten around
    `rate`. The first ends of the range are at least a factor of two apart.
    """
    found = {}
    for k, world in enumerate(DRAWN):
        draws = rng.stream(PRIORS_SEED, name, k)
        while True:
            low, high = sorted((least * (most / least) ** draws.random(2)).tolist())
            if high >= 2.0 * low:
                break
        hazard = rate * 10.0 ** (2.0 * draws.random() - 1.0)
        found[world] = jumps(base, name, LogUniform(low, high), min(hazard, 1.0), episodes)
    return found
