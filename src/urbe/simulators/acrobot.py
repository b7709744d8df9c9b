"""Acrobot: two links hang from a bar; the joint between them is driven, and the free end must swing up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from urbe import checks
from urbe.simulators.base import Key, Outcomes
from urbe.simulators.limits import Number, check_nominal_params

SECONDS = 0.2
"""Duration of a step."""

FASTEST = (4 * math.pi, 9 * math.pi)
"""The velocities of the two angles are clipped here."""


class AcrobotParams(NamedTuple):
    """Metres, kilograms and newton metres; link 1 hangs from the bar, link 2 from link 1.

    A link's centre of mass is `com_position` from its upper end and its moment of inertia is about that centre.
    """

    link_length_1: Number = 1.0
    link_length_2: Number = 1.0
    link_mass_1: Number = 1.0
    link_mass_2: Number = 1.0
    com_position_1: Number = 0.5
    com_position_2: Number = 0.5
    inertia_1: Number = 1.0
    inertia_2: Number = 1.0
    gravity: Number = 9.8
    torque: Number = 1.0


@dataclass(frozen=True)
class Acrobot:
    """Gymnasium's Acrobot-v1 with parameters that can be changed; the state is (theta1, theta2, theta1', theta2').

    theta1 is link 1's angle from hanging down, and theta2 is link 2's angle from link 1. The equations of motion are
    those of the book (Sutton and Barto, 1998, section 11.3), which follow from the Lagrangian; each step is one of the
    fourth-order Runge-Kutta method over 0.2 s, after which angles are taken modulo 2 pi and velocities clipped at 4 pi
    and 9 pi.

    The episode ends when the free end is above the bar by more than `height`,

        -link_length_1 cos(theta1) - link_length_2 cos(theta1 + theta2) > height.

    Every other step costs 1. Only the start is random, uniform in [-0.1, 0.1] for all four.

    Departure: Gymnasium leaves the lengths out of the last line; for lengths of 1 both agree. Link 2's length is in no
    other line: its motion depends on its centre of mass, not on its length.

    Args:
      time_limit: steps after which an episode is truncated.
      height: height that the free end must reach, in metres above the bar.
      nominal_params: the nominal parameters.
    """

    time_limit: int = 500
    height: float = 1.0
    nominal_params: AcrobotParams = AcrobotParams()

    def __post_init__(self) -> None:
        checks.whole_number("time_limit", self.time_limit, 1)
        checks.finite_number("height", self.height)
        check_nominal_params(self, self.nominal_params)

    @property
    def n_actions(self) -> int:
        """Torque in the negative sense, none, in the positive sense."""
        return 3

    def nominal(self) -> AcrobotParams:
        """`nominal_params`, as float32 numbers."""
        return AcrobotParams(*map(jnp.float32, self.nominal_params))

    def check_params(self, params: Mapping[str, float]) -> None:
        """Masses and inertias are above 0; lengths and centres are at least 0."""
        for name in ("link_mass_1", "link_mass_2", "inertia_1", "inertia_2"):
            checks.positive(name, params[name])
        for name in ("link_length_1", "link_length_2", "com_position_1", "com_position_2"):
            checks.number(name, params[name], 0.0, math.inf)

    def observation_bounds(self) -> tuple[Float[np.ndarray, " 6"], Float[np.ndarray, " 6"]]:
        """Cosines, sines and the velocities' limits."""
        high = np.array([1.0, 1.0, 1.0, 1.0, *FASTEST], dtype=np.float32)
        return -high, high

    def start(self, key: Key, params: AcrobotParams) -> Float[Array, " 4"]:
        """Hanging down, nearly at rest."""
        return jax.random.uniform(key, (4,), jnp.float32, -0.1, 0.1)

    def outcomes(self, state: Float[Array, " 4"], action: Int[Array, ""], params: AcrobotParams) -> Outcomes:
        """The single, deterministic outcome."""
        torque = jnp.asarray(action - 1, jnp.float32) * params.torque
        after = _runge_kutta(state, torque, params)
        theta_1, theta_2 = _wrap(after[0]), _wrap(after[1])
        fastest = jnp.asarray(FASTEST, jnp.float32)
        after = jnp.concatenate([jnp.stack([theta_1, theta_2]), jnp.clip(after[2:], -fastest, fastest)])
        top = -params.link_length_1 * jnp.cos(theta_1) - params.link_length_2 * jnp.cos(theta_1 + theta_2)
        ended = top > self.height
        reward = jnp.where(ended, jnp.float32(0.0), jnp.float32(-1.0))
        return Outcomes(jnp.ones(1, jnp.float32), after[None], reward[None], ended[None])

    def observe(self, state: Float[Array, " 4"]) -> Float[Array, " 6"]:
        """Cosine and sine of both angles, and their velocities."""
        angles = jnp.stack([jnp.cos(state[:2]), jnp.sin(state[:2])], axis=1)
        return jnp.concatenate([angles.reshape(4), state[2:]])

    def state_of(self, obs: Float[Array, " 6"]) -> Float[Array, " 4"]:
        """Angles in [-pi, pi] from their cosines and sines."""
        angles = jnp.arctan2(obs[jnp.asarray((1, 3))], obs[jnp.asarray((0, 2))])
        return jnp.concatenate([angles, obs[4:]])


def motion(state: Float[Array, " 4"], torque: Float[Array, ""], params: AcrobotParams) -> Float[Array, " 4"]:
    """d/dt of the state, from the Lagrangian of the two links.

    Without torque the energy is constant; with torque it changes at the rate torque times theta2'.
    """
    theta_1, theta_2, speed_1, speed_2 = state
    l1, m1, m2 = params.link_length_1, params.link_mass_1, params.link_mass_2
    c1, c2, g = params.com_position_1, params.com_position_2, params.gravity
    cos, sin = jnp.cos(theta_2), jnp.sin(theta_2)
    d1 = m1 * c1**2 + m2 * (l1**2 + c2**2 + 2.0 * l1 * c2 * cos) + params.inertia_1 + params.inertia_2
    d2 = m2 * (c2**2 + l1 * c2 * cos) + params.inertia_2
    phi2 = m2 * c2 * g * jnp.sin(theta_1 + theta_2)
    phi1 = -m2 * l1 * c2 * speed_2 * (speed_2 + 2.0 * speed_1) * sin
    phi1 = phi1 + (m1 * c1 + m2 * l1) * g * jnp.sin(theta_1) + phi2
    acc_2 = (torque + d2 / d1 * phi1 - m2 * l1 * c2 * speed_1**2 * sin - phi2) / (
        m2 * c2**2 + params.inertia_2 - d2**2 / d1
    )
    acc_1 = -(d2 * acc_2 + phi1) / d1
    return jnp.stack([speed_1, speed_2, acc_1, acc_2]).astype(jnp.float32)


def _runge_kutta(y: Float[Array, " 4"], torque: Float[Array, ""], params: AcrobotParams) -> Float[Array, " 4"]:
    """One step of the classical method over SECONDS, with constant torque."""
    k1 = motion(y, torque, params)
    k2 = motion(y + SECONDS / 2 * k1, torque, params)
    k3 = motion(y + SECONDS / 2 * k2, torque, params)
    k4 = motion(y + SECONDS * k3, torque, params)
    return y + SECONDS / 6 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def _wrap(angle: Float[Array, ""]) -> Float[Array, ""]:
    """The same angle in [-pi, pi]."""
    turns = jnp.where(jnp.abs(angle) <= math.pi, 0.0, jnp.round(angle / (2 * math.pi)))
    return angle - 2 * math.pi * turns
