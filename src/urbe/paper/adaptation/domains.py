"""The domains of the chapter: simulators, members, and the worlds of deployments."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from urbe import rng
from urbe.belief import Switching
from urbe.paper.adaptation import ACROBOT, CAR, DRAWN, EVEN, GAIN, LENGTH, PENDULUM, ROVER, STATES
from urbe.paper.adaptation.journeys import Journeys
from urbe.paper.adaptation.members import FAILURES, GAINS, GAMBLES, GRAVITIES, LENGTHS, SWINGS
from urbe.paper.adaptation.pendulum import Pendulum
from urbe.paper.adaptation.tuning import CHOSEN
from urbe.paper.adaptation.worlds import (
    PHASE,
    PRIORS_SEED,
    SHORT,
    Domain,
    World,
    drawn,
    jumps,
    phases,
    same,
)
from urbe.simulators import (
    Acrobot,
    CartPole,
    Drift,
    LogUniform,
    MarsRover,
    MountainCar,
    RandomJumps,
    RandomMember,
    SevenStates,
    SevenStatesParams,
    StepChange,
    UncertaintySet,
    Uniform,
)
from urbe.simulators.mars_rover import one_hot

INFORMED = Switching(1e-3)
"""The assumption for domains in which every step is informative."""


def rover() -> Domain:
    """Mars Rover: at a failure probability above 0.054 waiting is better, but gives no information about it."""
    return _rover(Journeys())


def even_rover() -> Domain:
    """The rover with a failure cost slightly above that of waiting: only above 0.2 waiting is better."""
    return _rover(Journeys(fail=-0.235))


def _rover(journeys: Journeys) -> Domain:
    simulator = MarsRover(
        success=journeys.success, fail=journeys.fail, step_reward=journeys.step_reward, encoding=one_hot
    )
    base, name, life = simulator.nominal(), "failure", 5 * PHASE
    fixed = (0.005, 0.3, 0.005, 0.6, 0.01)
    worlds = {
        "schedule": phases(base, name, fixed, PHASE),
        "slow schedule": phases(base, name, fixed, 3 * PHASE),
        **{f"stationary {p:g}": same(base, name, p, 2 * PHASE) for p in (0.005, 0.02, 0.04, 0.08, 0.3, 0.9)},
        "jumps": jumps(base, name, LogUniform(0.002, 0.8), 0.04, life),
        "rare jumps": jumps(base, name, LogUniform(0.002, 0.8), 0.004, life),
        "frequent jumps": jumps(base, name, LogUniform(0.002, 0.8), 0.3, life),
        "mostly adverse": jumps(base, name, LogUniform(0.03, 0.9), 0.04, life),
        "mostly benign": jumps(base, name, LogUniform(0.001, 0.08), 0.04, life),
        "drift": phases(base, name, tuple(np.geomspace(0.005, 0.5, life // 5).tolist()), 5),
        **drawn(base, name, 0.001, 0.9, life, 0.04),
    }
    members = UncertaintySet.grid(simulator, include_nominal=False, failure=FAILURES)
    return Domain(simulator, members, CHOSEN.switching, (name, "failure probability"), 1.0, worlds, journeys)


def states() -> Domain:
    """Seven states, whose gambles have the same probability of success: a safe reward of 0.14 gives no information.

    The worlds are the paper's schedule, the adverse one, no change, and schedules drawn at random, each the same for
    all lives.
    """
    simulator = SevenStates(time_limit=2)
    name, odds = "success_2", (0.001, 0.8, 0.1, 0.9)

    def held(lengths: tuple[int, ...], values: tuple[float, ...]) -> World:
        each = tuple((n, SevenStatesParams.alike(p)) for n, p in zip(lengths, values, strict=True))
        return World(StepChange(each), sum(lengths), lengths)

    def changing(k: int) -> World:
        draws = rng.stream(PRIORS_SEED, "seven states", k)
        lengths = tuple((1 + draws.geometric(1.0 / 100.0, 6)).tolist())
        return held(lengths, tuple(draws.beta(0.5, 0.5 + draws.random(), 6).clip(0.001, 0.999).tolist()))

    worlds = {
        "schedule": held((300,) * 4, odds),
        "adverse schedule": held((450, 150, 450, 150), odds),
        **{f"stationary {p:g}": held((300,), (p,)) for p in (0.05, 0.9)},
        **{world: changing(k) for k, world in enumerate(DRAWN)},
    }
    members = UncertaintySet(SevenStatesParams.alike(jnp.asarray(GAMBLES, jnp.float32)), nominal=None)
    gamble = Journeys(distances=(1,), shares=(1.0,), fail=0.0, step_reward=0.14, time_limit=1)
    switching = Switching(1.0 / 200.0, per="episode")
    return Domain(simulator, members, switching, (name, "success of a gamble"), 1.0, worlds, gamble, of_success=True)


def gain() -> Domain:
    """CartPole whose actuator changes its gain, including the sign: no single policy suits all members."""
    simulator = CartPole(time_limit=200, terminal_reward=0.0)
    base, name, force, life = simulator.nominal(), "force", float(CartPole().nominal().force), 4 * SHORT

    def held(*gains: float) -> World:
        return phases(base, name, tuple(force * each for each in gains), SHORT)

    noisy = held(1.0, -1.0, 0.7, -1.5)
    worlds = {
        "schedule": noisy,
        "between members": held(1.1, -0.9, 0.45, -1.3),
        "outside the set": held(2.2, -2.2, 0.25),
        "jumps": jumps(base, name, Uniform(-1.6 * force, 1.6 * force), 0.1, life),
        "drift": World(Drift(base, {name: (1.5 * force, 0.5 * force)}, life), life),
        "nominal": same(base, name, force, 2 * SHORT),
        "noise": World(noisy.schedule, noisy.episodes, noisy.phases, noise=0.003),
        **_either_way(base, name, force, 0.3, 2.0),
    }
    members = UncertaintySet.grid(simulator, include_nominal=False, force=[force * each for each in GAINS])
    return Domain(simulator, members, INFORMED, (name, "actuator gain"), force, worlds)


def length() -> Domain:
    """CartPole whose pole changes its length: one policy may suit all members."""
    simulator = CartPole(time_limit=200, terminal_reward=0.0)
    base, name, life = simulator.nominal(), "half_length", 4 * SHORT
    worlds = {
        "schedule": phases(base, name, (0.75, 3.0, 0.3, 1.5), SHORT),
        "drift": World(Drift(base, {name: (0.3, 3.0)}, life), life),
        "nominal": same(base, name, float(base.half_length), 2 * SHORT),
        "between members": phases(base, name, (0.6, 2.7, 0.3, 1.3), SHORT),
        "outside the set": phases(base, name, (0.2, 5.0), SHORT),
        "jumps": jumps(base, name, LogUniform(0.25, 3.4), 0.1, life),
        **drawn(base, name, 0.2, 4.0, life, 0.1),
    }
    members = UncertaintySet.grid(simulator, include_nominal=False, half_length=LENGTHS)
    return Domain(simulator, members, INFORMED, (name, "half of the pole's length"), 1.0, worlds)


def acrobot() -> Domain:
    """Acrobot whose motor may be reversed."""
    return _swinging(Acrobot(), "torque")


def car() -> Domain:
    """MountainCar whose engine may be reversed; with 500 steps, since 200 are hardly enough for learning."""
    return _swinging(MountainCar(time_limit=500), "force")


def _swinging(simulator: Any, name: str) -> Domain:
    base = simulator.nominal()
    unit = float(base._asdict()[name])

    def held(*gains: float) -> World:
        return phases(base, name, tuple(unit * each for each in gains), SHORT)

    worlds = {
        "schedule": held(1.0, -1.0, 0.8, -1.2),
        "nominal": same(base, name, unit, 2 * SHORT),
        "between members": held(1.1, -0.9, 0.9, -1.1),
        **_either_way(base, name, unit, 0.8, 1.25),
    }
    members = UncertaintySet.grid(simulator, include_nominal=False, **{name: [unit * each for each in SWINGS]})
    gain_of = (name, "gain of the motor")
    return Domain(simulator, members, INFORMED, gain_of, unit, worlds, mirrored=True)


def inverted_pendulum() -> Domain:
    """MuJoCo's InvertedPendulum, whose gravity and pole mass change; in the members they are in proportion.

    In jumps they change independently and in the drawn schedules only gravity does, so the set is wrong there.
    """
    simulator = Pendulum()
    base, name, episodes, life = simulator.nominal(), "gravity", 4, 16
    per_gravity = float(base.pole_mass) / float(base.gravity)

    def held(*points: tuple[float, float]) -> World:
        each = tuple((episodes, base._replace(gravity=g, pole_mass=mass)) for g, mass in points)
        return World(StepChange(each), episodes * len(each), (episodes,) * len(each))

    def in_proportion(*gravities: float) -> World:
        return held(*((g, per_gravity * g) for g in gravities))

    low, high = GRAVITIES[0], GRAVITIES[-1]
    masses = (per_gravity * low, per_gravity * high)
    either = {name: LogUniform(low, high), "pole_mass": LogUniform(*masses)}
    worlds = {
        "schedule": in_proportion(9.81, 23.0, 5.0, 30.0),
        "nominal": same(base, name, float(base.gravity), 2 * episodes),
        "between members": in_proportion(12.0, 20.0, 3.5, 27.0),
        "outside the set": held((30.0, 1.0), (2.5, 15.0)),
        "drift": World(Drift(base, {name: (low, high), "pole_mass": masses}, life), life),
        "jumps": World(RandomJumps(base, either, 0.1), life),
        **drawn(base, name, 2.0, 35.0, life, 0.1),
    }
    gravities = jnp.asarray(GRAVITIES, jnp.float32)
    members = UncertaintySet(base._replace(gravity=gravities, pole_mass=jnp.float32(per_gravity) * gravities), 1)
    return Domain(simulator, members, INFORMED, (name, "gravity"), 1.0, worlds)


def _either_way(base: Any, name: str, unit: float, least: float, most: float) -> dict[str, World]:
    """Worlds that jump at random times among ten values drawn from log-uniform sizes; signs are drawn with them."""
    found = {}
    for k, world in enumerate(DRAWN):
        draws = rng.stream(PRIORS_SEED, name, k)
        sizes = unit * least * (most / least) ** draws.random(10)
        signs = np.where(draws.random(10) < 0.2 + 0.6 * draws.random(), -1.0, 1.0)
        values = tuple(base._replace(**{name: float(value)}) for value in sizes * signs)
        found[world] = World(RandomMember(values, 0.1 * 10.0 ** (2.0 * draws.random() - 1.0)), 4 * SHORT)
    return found


DOMAINS = {
    ROVER: rover,
    EVEN: even_rover,
    STATES: states,
    GAIN: gain,
    LENGTH: length,
    ACROBOT: acrobot,
    CAR: car,
    PENDULUM: inverted_pendulum,
}
"""The domains by name; made on request, since members are JAX arrays."""
