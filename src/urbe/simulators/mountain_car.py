"""MountainCar: a car with a weak engine must swing back and forth to leave a valley."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from urbe import checks
from urbe.simulators.base import Key, Outcomes
from urbe.simulators.limits import Number, check_nominal_params

LEFT_END, RIGHT_END, GOAL = -1.2, 0.6, 0.5


class MountainCarParams(NamedTuple):
    """The accelerations of a step, and the largest velocity."""

    force: Number = 0.001
    gravity: Number = 0.0025
    max_speed: Number = 0.07


@dataclass(frozen=True)
class MountainCar:
    """Gymnasium's MountainCar-v0 with parameters that can be changed; the state is (position, velocity).

        velocity += (action - 1) force - gravity cos(3 position),   clipped to [-max_speed, max_speed]
        position += velocity,   clipped to [-1.2, 0.6]; a car that hits the left end stops

    Reaching position 0.5 with a velocity of at least `goal_velocity` ends the episode. Every step costs 1. Only the
    start is random: at rest, with a position uniform in [-0.6, -0.4].

    Args:
      time_limit: steps after which an episode is truncated.
      goal_velocity: least velocity at the goal.
      nominal_params: the nominal parameters.
    """

    time_limit: int = 200
    goal_velocity: float = 0.0
    nominal_params: MountainCarParams = MountainCarParams()

    def __post_init__(self) -> None:
        checks.whole_number("time_limit", self.time_limit, 1)
        checks.finite_number("goal_velocity", self.goal_velocity)
        check_nominal_params(self, self.nominal_params)

    @property
    def n_actions(self) -> int:
        """Accelerate to the left, not at all, to the right."""
        return 3

    def nominal(self) -> MountainCarParams:
        """`nominal_params`, as float32 numbers."""
        return MountainCarParams(*map(jnp.float32, self.nominal_params))

    def check_params(self, params: Mapping[str, float]) -> None:
        """The largest velocity is at least 0."""
        checks.number("max_speed", params["max_speed"], 0.0, math.inf)

    def start(self, key: Key, params: MountainCarParams) -> Float[Array, " 2"]:
        """At rest near the bottom of the valley."""
        position = jax.random.uniform(key, (), jnp.float32, -0.6, -0.4)
        return jnp.stack([position, jnp.float32(0.0)])

    def outcomes(self, state: Float[Array, " 2"], action: Int[Array, ""], params: MountainCarParams) -> Outcomes:
        """The single, deterministic outcome."""
        position, velocity = state
        engine = jnp.asarray(action - 1, jnp.float32) * params.force
        velocity = velocity + engine - params.gravity * jnp.cos(3.0 * position)
        velocity = jnp.clip(velocity, -params.max_speed, params.max_speed)
        position = jnp.clip(position + velocity, LEFT_END, RIGHT_END)
        velocity = jnp.where((position <= LEFT_END) & (velocity < 0.0), 0.0, velocity)
        ended = (position >= GOAL) & (velocity >= self.goal_velocity)
        after = jnp.stack([position, velocity]).astype(jnp.float32)
        return Outcomes(jnp.ones(1, jnp.float32), after[None], jnp.full(1, -1.0, jnp.float32), ended[None])

    def observe(self, state: Float[Array, " 2"]) -> Float[Array, " 2"]:
        """The state itself."""
        return state

    def state_of(self, obs: Float[Array, " 2"]) -> Float[Array, " 2"]:
        """The observation itself."""
        return obs
