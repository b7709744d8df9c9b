"""The rovers, sets and agents of the Mars Rover comparison, made from their names in `mars_readings`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from urbe.deep import calibrated
from urbe.deep.agent import Agent
from urbe.deep.paper import MARS_ROVER, MEMBERS
from urbe.deep.presets import dqn, dqn_ube, dqn_urbe, robust_dqn
from urbe.experiments.mars_readings import EPSILON, NOMINAL, WIDE, World
from urbe.simulators import MarsRover, MarsRoverParams, UncertaintySet, Uniform
from urbe.simulators.mars_rover import any_approach, diagonal_approach

RISKS = {"any": any_approach, "diagonal": diagonal_approach}

EXPLORING = replace(MARS_ROVER, epsilon=replace(MARS_ROVER.epsilon, last=EPSILON))
"""Random actions never cease."""

CALIBRATED = calibrated(hidden=(15,))
"""The calibrated head, with as many units as the paper's."""

_MAKERS: dict[str, Callable[[MarsRover, UncertaintySet, int], Agent]] = {
    "dqn": lambda rover, _, seed: dqn(rover, seed=seed, settings=MARS_ROVER),
    "dqn-ube": lambda rover, _, seed: dqn_ube(rover, seed=seed, settings=MARS_ROVER),
    "robust-dqn": lambda rover, members, seed: robust_dqn(rover, members, seed=seed, settings=MARS_ROVER),
    "dqn-urbe": lambda rover, members, seed: dqn_urbe(rover, members, seed=seed, settings=MARS_ROVER),
    "dqn-epsilon": lambda rover, _, seed: dqn(rover, seed=seed, settings=EXPLORING),
    "robust-dqn-epsilon": lambda rover, members, seed: robust_dqn(rover, members, seed=seed, settings=EXPLORING),
    "calibrated-dqn-urbe": lambda rover, members, seed: dqn_urbe(
        rover, members, seed=seed, settings=MARS_ROVER, variance=CALIBRATED
    ),
}


def rover_of(world: World) -> MarsRover:
    """The simulator of a reading."""
    success, fail, step = world.rewards
    usual = MarsRoverParams(NOMINAL)
    return MarsRover(success=success, fail=fail, step_reward=step, risk=RISKS[world.risk], usual=usual)


def members_of(world: World, members: str, seed: int) -> UncertaintySet:
    """The nominal probability and 15 drawn ones: the same for all agents of a seed."""
    law = Uniform(0.0, 1.0 if members == WIDE else world.small_end)
    return UncertaintySet.samples(rover_of(world), seed, count=MEMBERS, failure=law)


def make(agent: str, world: World, members: str, seed: int) -> Agent:
    """A new agent; those without a set ignore it."""
    return _MAKERS[agent](rover_of(world), members_of(world, members, seed), seed)
