"""The simulators, uncertainty sets and agents of the Mars Rover comparison, made from their names."""

from __future__ import annotations

from collections.abc import Sequence

from urbe.deep import DQNAgent, calibrated
from urbe.deep.paper import MARS_ROVER, MEMBERS
from urbe.overrides import override
from urbe.paper.deep_agents import make_agent
from urbe.paper.mars_rover import EPSILON, NOMINAL, WIDE, RoverWorld
from urbe.simulators import MarsRover, MarsRoverParams, UncertaintySet, Uniform
from urbe.simulators.mars_rover import any_approach, diagonal_approach

RISKS = {"any": any_approach, "diagonal": diagonal_approach}

CALIBRATED = calibrated(hidden=(15,))
"""The calibrated head, with as many units as the paper's."""


def rover_of(world: RoverWorld) -> MarsRover:
    """Makes the simulator of an assumption."""
    success, fail, step = world.rewards
    nominal = MarsRoverParams(NOMINAL)
    return MarsRover(success=success, fail=fail, step_reward=step, risk=RISKS[world.risk], nominal_params=nominal)


def members_of(world: RoverWorld, members: str, seed: int) -> UncertaintySet:
    """Draws the nominal probability and 15 others, the same for all agents of a seed."""
    law = Uniform(0.0, 1.0 if members == WIDE else world.small_end)
    return UncertaintySet.samples(rover_of(world), seed, count=MEMBERS, failure=law)


def make(agent: str, world: RoverWorld, members: str, seed: int, settings: Sequence[str] = ()) -> DQNAgent:
    """Makes a new agent; agents without a set ignore it.

    Args:
      agent: name of the agent, or `module:attribute`.
      world, members, seed: environment, uncertainty set and seed of training.
      settings: `field=value`, for settings that differ from the paper's.
    """
    return make_agent(
        agent,
        rover_of(world),
        members_of(world, members, seed),
        seed=seed,
        settings=override(MARS_ROVER, settings),
        epsilon=EPSILON,
        variants={"calibrated-dqn-urbe": lambda _: CALIBRATED},
    )
