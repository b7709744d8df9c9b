"""CartPole: keep a pole on a cart upright by pushing the cart left or right."""

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

SECONDS = 0.02
"""Duration of a step."""

TRACK = 2.4
"""Beyond this distance from the middle, in metres, the cart has left the track."""

LEAN = 12 * 2 * math.pi / 360
"""Beyond this angle, in radians, the pole has fallen."""


class CartPoleParams(NamedTuple):
    """Metres, kilograms and newtons; half_length is half of the pole's length."""

    half_length: Number = 0.5
    masspole: Number = 0.1
    masscart: Number = 1.0
    gravity: Number = 9.8
    force: Number = 10.0


@dataclass(frozen=True)
class CartPole:
    """Gymnasium's CartPole-v1 with parameters that can be changed; the state is (x, x', theta, theta').

        m = masspole + masscart,   f = force if action = 1 else -force
        u = [ f + masspole half_length theta'^2 sin(theta) ] / m
        theta'' = [ gravity sin(theta) - u cos(theta) ] / [ half_length (4/3 - masspole cos(theta)^2 / m) ]
        x'' = u - masspole half_length theta'' cos(theta) / m

    and an Euler step of 0.02 s with these, all from the current parameters: Gymnasium multiplies masspole and length
    once, at construction, so that changing only its `length` gives inconsistent dynamics. An episode ends when
    |x| > 2.4 m or |theta| > 12 degrees. Only the start is random, uniform in [-0.05, 0.05] for all four.

    Args:
      time_limit: steps after which an episode is truncated; 500 as in CartPole-v1, 200 in [Derman2019].
      terminal_reward: reward of the step that ends the episode; every other pays 1. Gymnasium pays 1 here, too; with 0
        the return counts the steps survived.
      nominal_params: the nominal parameters.
    """

    time_limit: int = 500
    terminal_reward: float = 1.0
    nominal_params: CartPoleParams = CartPoleParams()

    def __post_init__(self) -> None:
        checks.whole_number("time_limit", self.time_limit, 1)
        checks.finite_number("terminal_reward", self.terminal_reward)
        check_nominal_params(self, self.nominal_params)

    @property
    def n_actions(self) -> int:
        """Push left, push right."""
        return 2

    def nominal(self) -> CartPoleParams:
        """`nominal_params`, as float32 numbers."""
        return CartPoleParams(*map(jnp.float32, self.nominal_params))

    def check_params(self, params: Mapping[str, float]) -> None:
        """Lengths and the cart's mass are above 0, the pole's mass is at least 0."""
        for name in ("half_length", "masscart"):
            checks.positive(name, params[name])
        checks.number("masspole", params["masspole"], 0.0, math.inf)

    def start(self, key: Key, params: CartPoleParams) -> Float[Array, " 4"]:
        """Near the middle, nearly upright, nearly at rest."""
        return jax.random.uniform(key, (4,), jnp.float32, -0.05, 0.05)

    def outcomes(self, state: Float[Array, " 4"], action: Int[Array, ""], params: CartPoleParams) -> Outcomes:
        """The single, deterministic outcome."""
        _, x_dot, theta, theta_dot = state
        total_mass = params.masspole + params.masscart
        pole_moment = params.masspole * params.half_length
        cos, sin = jnp.cos(theta), jnp.sin(theta)
        push = jnp.where(action == 1, params.force, -params.force)
        u = (push + pole_moment * theta_dot**2 * sin) / total_mass
        theta_acc = (params.gravity * sin - cos * u) / (
            params.half_length * (4.0 / 3.0 - params.masspole * cos**2 / total_mass)
        )
        x_acc = u - pole_moment * theta_acc * cos / total_mass
        after = state + SECONDS * jnp.stack([x_dot, x_acc, theta_dot, theta_acc]).astype(jnp.float32)
        ended = (jnp.abs(after[0]) > TRACK) | (jnp.abs(after[2]) > LEAN)
        reward = jnp.where(ended, jnp.float32(self.terminal_reward), jnp.float32(1.0))
        return Outcomes(jnp.ones(1, jnp.float32), after[None], reward[None], ended[None])

    def observe(self, state: Float[Array, " 4"]) -> Float[Array, " 4"]:
        """The state itself."""
        return state

    def state_of(self, obs: Float[Array, " 4"]) -> Float[Array, " 4"]:
        """The observation itself."""
        return obs
