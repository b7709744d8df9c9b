"""The simulators, uncertainty sets and agents of the Mars Rover comparison, made from their names in `cells`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from urbe.deep import calibrated
from urbe.deep.agent import Agent
from urbe.deep.paper import MARS_ROVER, MEMBERS
from urbe.deep.presets import dqn, dqn_ube, dqn_urbe, robust_dqn
from urbe.deep.settings import Settings
from urbe.overrides import override
from urbe.paper.choice import load_own
from urbe.paper.mars_rover.cells import EPSILON, NOMINAL, WIDE, RoverWorld
from urbe.simulators import MarsRover, MarsRoverParams, UncertaintySet, Uniform
from urbe.simulators.mars_rover import any_approach, diagonal_approach

RISKS = {"any": any_approach, "diagonal": diagonal_approach}

CALIBRATED = calibrated(hidden=(15,))
"""The calibrated head, with as many units as the paper's."""


def _exploring(settings: Settings) -> Settings:
    """Random actions never cease."""
    return replace(settings, epsilon=replace(settings.epsilon, last=EPSILON))


_MAKERS: dict[str, Callable[[MarsRover, UncertaintySet, int, Settings], Agent]] = {
    "dqn": lambda rover, _, seed, chosen: dqn(rover, seed=seed, settings=chosen),
    "dqn-ube": lambda rover, _, seed, chosen: dqn_ube(rover, seed=seed, settings=chosen),
    "robust-dqn": lambda rover, members, seed, chosen: robust_dqn(rover, members, seed=seed, settings=chosen),
    "dqn-urbe": lambda rover, members, seed, chosen: dqn_urbe(rover, members, seed=seed, settings=chosen),
    "dqn-epsilon": lambda rover, _, seed, chosen: dqn(rover, seed=seed, settings=_exploring(chosen)),
    "robust-dqn-epsilon": lambda rover, members, seed, chosen: robust_dqn(
        rover, members, seed=seed, settings=_exploring(chosen)
    ),
    "calibrated-dqn-urbe": lambda rover, members, seed, chosen: dqn_urbe(
        rover, members, seed=seed, settings=chosen, variance=CALIBRATED
    ),
}


def rover_of(world: RoverWorld) -> MarsRover:
    """The simulator of a reading."""
    success, fail, step = world.rewards
    nominal = MarsRoverParams(NOMINAL)
    return MarsRover(success=success, fail=fail, step_reward=step, risk=RISKS[world.risk], nominal_params=nominal)


def members_of(world: RoverWorld, members: str, seed: int) -> UncertaintySet:
    """The nominal probability and 15 drawn ones: the same for all agents of a seed."""
    law = Uniform(0.0, 1.0 if members == WIDE else world.small_end)
    return UncertaintySet.samples(rover_of(world), seed, count=MEMBERS, failure=law)


def make(agent: str, world: RoverWorld, members: str, seed: int, settings: Sequence[str] = ()) -> Agent:
    """A new agent; those without a set ignore it.

    Args:
      agent: its name, or `module:attribute`.
      world, members, seed: where it learns.
      settings: `field=value`, where they are not the paper's.
    """
    chosen, rover, drawn = override(MARS_ROVER, settings), rover_of(world), members_of(world, members, seed)
    if agent in _MAKERS:
        return _MAKERS[agent](rover, drawn, seed, chosen)
    own: Agent = load_own(agent)(rover, drawn, seed=seed, settings=chosen)
    return own
