"""The simulators of the chapter, the members that agents know, and the worlds that they are deployed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe.belief import Switching
from urbe.paper.adaptation import GAIN, ROVER
from urbe.paper.adaptation.tuning import CHOSEN, FAILURES
from urbe.simulators import (
    CartPole,
    Constant,
    Drift,
    LogUniform,
    MarsRover,
    RandomJumps,
    Schedule,
    StepChange,
    UncertaintySet,
    Uniform,
)
from urbe.simulators.mars_rover import one_hot

PHASE = 50
"""Episodes of a phase; a world without phases has five times as many."""

GAINS = (-1.6, -1.4, -1.2, -1.0, -0.8, -0.65, -0.5, 0.4, 0.5, 0.65, 0.8, 1.0, 1.2, 1.4, 1.6)
"""The members of the actuator, in units of the nominal force; a negative gain pushes the other way."""


@dataclass(frozen=True)
class World:
    """How parameters change from episode to episode.

    Attributes:
      schedule: of the parameters.
      episodes: of a life.
      phases: lengths of phases, where they are the same for all lives.
      noise: standard deviation of noise on observations.
    """

    schedule: Schedule
    episodes: int
    phases: tuple[int, ...] = ()
    noise: float = 0.0


@dataclass(frozen=True)
class Domain:
    """What agents are trained for.

    Attributes:
      simulator: with its nominal parameters; the rover's is finite.
      members: what the belief is over.
      switching: what agents assume about changes; none of the worlds is exactly like that.
      parameter: the one that changes, and its name on axes.
      unit: what the parameter is divided by on axes.
      worlds: by name; the first is drawn in detail.
    """

    simulator: Any
    members: UncertaintySet
    switching: Switching
    parameter: tuple[str, str]
    unit: float
    worlds: Mapping[str, World]


def _phases(base: Any, name: str, values: tuple[float, ...], length: int) -> World:
    held = tuple((length, base._replace(**{name: value})) for value in values)
    return World(StepChange(held), length * len(values), (length,) * len(values))


def _same(base: Any, name: str, value: float, episodes: int = 2 * PHASE) -> World:
    return World(Constant(base._replace(**{name: value})), episodes, (episodes,))


def rover() -> Domain:
    """Mars Rover: at a failure probability above 0.054 it is better to wait, and waiting says nothing about it."""
    simulator = MarsRover(success=1.0, fail=-1.0, step_reward=-0.001, encoding=one_hot)
    base, name, life = simulator.nominal(), "failure", 5 * PHASE

    def jumps(low: float, high: float, hazard: float) -> World:
        return World(RandomJumps(base, {name: LogUniform(low, high)}, hazard), life)

    fixed = (0.005, 0.3, 0.005, 0.6, 0.01)
    worlds = {
        "schedule": _phases(base, name, fixed, PHASE),
        "slow schedule": _phases(base, name, fixed, 3 * PHASE),
        **{f"stationary {p:g}": _same(base, name, p) for p in (0.005, 0.02, 0.04, 0.08, 0.3, 0.9)},
        "jumps": jumps(0.002, 0.8, 0.04),
        "rare jumps": jumps(0.002, 0.8, 0.004),
        "frequent jumps": jumps(0.002, 0.8, 0.3),
        "mostly adverse": jumps(0.03, 0.9, 0.04),
        "mostly benign": jumps(0.001, 0.08, 0.04),
        "drift": _phases(base, name, tuple(np.geomspace(0.005, 0.5, life // 5).tolist()), 5),
    }
    members = UncertaintySet.grid(simulator, include_nominal=False, failure=FAILURES)
    return Domain(simulator, members, CHOSEN.switching, (name, "failure probability"), 1.0, worlds)


def gain() -> Domain:
    """CartPole whose actuator changes its gain, sign included: no single policy serves all members."""
    simulator = CartPole(time_limit=200, terminal_reward=0.0)
    base, name, force = simulator.nominal(), "force", float(CartPole().nominal().force)
    length = PHASE // 5

    def phases(*gains: float) -> World:
        return _phases(base, name, tuple(force * each for each in gains), length)

    noisy = phases(1.0, -1.0, 0.7, -1.5)
    worlds = {
        "schedule": noisy,
        "between members": phases(1.1, -0.9, 0.45, -1.3),
        "outside the set": phases(2.2, -2.2, 0.25),
        "jumps": World(RandomJumps(base, {name: Uniform(-1.6 * force, 1.6 * force)}, 0.1), 4 * length),
        "drift": World(Drift(base, {name: (1.5 * force, 0.5 * force)}, 4 * length), 4 * length),
        "noise": World(noisy.schedule, noisy.episodes, noisy.phases, noise=0.003),
    }
    members = UncertaintySet.grid(simulator, include_nominal=False, force=[force * each for each in GAINS])
    return Domain(simulator, members, Switching(1e-3), (name, "actuator gain"), force, worlds)


DOMAINS = {ROVER: rover, GAIN: gain}
"""By name; made when asked for, as members are arrays of JAX."""
