"""MuJoCo's InvertedPendulum as a simulator of few parameters, for agents that learn in millions of simulated steps.

One step is one call of MuJoCo from the compiled program, for all members and lives at once. A test compares steps with
those of Gymnasium's InvertedPendulum-v5. `urbe.gym.EnvSimulator` simulates any environment in this way, but goes
through Gymnasium and saves everything that MuJoCo derives, which takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from urbe import checks
from urbe.gym.kinds import innermost
from urbe.gym.mujoco import MujocoAdapter
from urbe.gym.named import named_env
from urbe.simulators.base import Key, Outcomes
from urbe.simulators.limits import Number

FORCES = (-3.0, -0.7, 0.0, 0.7, 3.0)
"""The control of the actuator for each action."""

LEAN = 0.2
"""Beyond this angle, in radians, the pole has fallen."""

NOISE = 0.01
"""Positions and velocities start uniformly within this distance of zero."""


class PendulumParams(NamedTuple):
    """Metres per square second, and kilograms."""

    gravity: Number = 9.81
    pole_mass: Number = 5.0185914


@dataclass(frozen=True)
class Pendulum:
    """InvertedPendulum-v5 with discrete forces; the state is (x, theta, x', theta'), and every step up earns 1."""

    time_limit: int = 100

    @property
    def n_actions(self) -> int:
        """The number of actions, one for each of `FORCES`."""
        return len(FORCES)

    def nominal(self) -> PendulumParams:
        """The parameters of Gymnasium's environment."""
        return PendulumParams(*map(jnp.float32, PendulumParams()))

    def start(self, key: Key, params: PendulumParams) -> Float[Array, " 4"]:
        """Draws a state that is almost upright and at rest."""
        return jax.random.uniform(key, (4,), jnp.float32, -NOISE, NOISE)

    def outcomes(self, state: Float[Array, " 4"], action: Int[Array, ""], params: PendulumParams) -> Outcomes:
        """Returns the only outcome, computed by MuJoCo."""
        row = jnp.stack([*state, jnp.asarray(FORCES, jnp.float32)[action], *map(jnp.float32, params)])
        shape: Any = jax.ShapeDtypeStruct
        reached = jax.pure_callback(_steps, shape((4,), np.float32), row, vmap_method="broadcast_all")
        ended = jnp.abs(reached[1]) > LEAN
        reward = jnp.where(ended, jnp.float32(0.0), jnp.float32(1.0))
        return Outcomes(jnp.ones(1, jnp.float32), reached[None], reward[None], ended[None])

    def observe(self, state: Float[Array, " 4"]) -> Float[Array, " 4"]:
        """Returns the state, which is observed completely."""
        return state

    def state_of(self, obs: Float[Array, " 4"]) -> Float[Array, " 4"]:
        """Returns the observation, which is the state."""
        return obs

    def check_params(self, params: Mapping[str, float]) -> None:
        """Gravity is finite, and the mass positive."""
        checks.finite_number("gravity", params["gravity"])
        checks.positive("pole_mass", params["pole_mass"])


@lru_cache(maxsize=4096)
def _model(gravity: float, mass: float) -> Any:
    """MuJoCo's model with these parameters."""
    env, _ = _environment()
    MujocoAdapter().set_params(env, {"gravity": gravity, "pole_mass": mass})
    return copy(innermost(env).model)


@cache
def _environment() -> tuple[Any, Any]:
    """Gymnasium's environment, and the data of all steps."""
    import mujoco

    env = named_env("InvertedPendulum-v5", {})
    return env, mujoco.MjData(innermost(env).model)


def _steps(rows: Any) -> np.ndarray:
    """The state after each row of state, force, gravity and mass of the pole."""
    import mujoco

    env, data = _environment()
    frames = innermost(env).frame_skip
    each = np.asarray(rows, np.float64)
    reached = np.empty((each.size // each.shape[-1], 4), np.float32)
    for i, row in enumerate(each.reshape(-1, each.shape[-1]).tolist()):
        data.qpos[:], data.qvel[:], data.ctrl[0], data.qacc_warmstart[:] = row[:2], row[2:4], row[4], 0.0
        mujoco.mj_step(_model(*row[5:]), data, frames)
        reached[i, :2], reached[i, 2:] = data.qpos, data.qvel
    return reached.reshape(*each.shape[:-1], 4)
