"""Adapters get and set the state and the parameters of environments of different kinds, as copies of them need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium.envs.classic_control import (
    AcrobotEnv,
    CartPoleEnv,
    Continuous_MountainCarEnv,
    MountainCarEnv,
    PendulumEnv,
)

from urbe import checks
from urbe.gym.kinds import Env, innermost
from urbe.gym.mujoco import MujocoAdapter
from urbe.gym.own_methods import OwnMethodsAdapter, has_own_methods
from urbe.gym.simulator_env import SimulatorEnv


class Adapter(Protocol):
    """An adapter for one kind of environment; each method gets the environment with all its wrappers."""

    def get_state(self, env: Env) -> Any:
        """Everything that its next step depends on except parameters and generator, as nested containers of arrays."""

    def set_state(self, env: Env, state: Any) -> None:
        """Restores the result of `get_state`, within an episode."""

    def get_params(self, env: Env) -> dict[str, float]:
        """Its parameters by name."""

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """Changes some parameters and all derived quantities; raises ValueError naming an invalid one."""


@dataclass(frozen=True)
class AttributesAdapter:
    """Classic environments of Gymnasium, which keep their state in `state` and parameters in attributes.

    Args:
      names: names of the attributes.
      above_zero: names of those that must be above zero.
    """

    names: tuple[str, ...]
    above_zero: tuple[str, ...] = ()

    def get_state(self, env: Env) -> np.ndarray:
        """The state, such as angles and their velocities."""
        return np.array(innermost(env).state, np.float64)

    def set_state(self, env: Env, state: np.ndarray) -> None:
        """Sets the state."""
        innermost(env).state = np.array(state)

    def get_params(self, env: Env) -> dict[str, float]:
        """The values of the attributes."""
        return {name: float(getattr(innermost(env), name)) for name in self.names}

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """Checks all values, then sets the attributes."""
        checks.known_names(params, self.names, type(innermost(env)).__name__)
        numbers = {
            name: (checks.positive if name in self.above_zero else checks.finite_number)(name, value)
            for name, value in params.items()
        }
        for name, number in numbers.items():
            setattr(innermost(env), name, number)


@dataclass(frozen=True)
class CartPoleAdapter(AttributesAdapter):
    """Gymnasium's CartPole; `length` is half of the pole's. Quantities derived from masses are computed again."""

    names: tuple[str, ...] = ("gravity", "masscart", "masspole", "length", "force_mag")
    above_zero: tuple[str, ...] = ("masscart", "length")

    def set_state(self, env: Env, state: np.ndarray) -> None:
        """Restores a state, also after the end of an episode."""
        super().set_state(env, state)
        innermost(env).steps_beyond_terminated = None

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """Sets attributes, and total_mass and polemass_length from them."""
        super().set_params(env, params)
        pole = innermost(env)
        pole.total_mass, pole.polemass_length = pole.masspole + pole.masscart, pole.masspole * pole.length


@dataclass(frozen=True)
class ContinuousCarAdapter(AttributesAdapter):
    """Gymnasium's MountainCar with continuous actions, whose numbers are rounded to float32 after its first step."""

    names: tuple[str, ...] = ("power",)

    def get_state(self, env: Env) -> np.ndarray:
        """Position and velocity, and whether they are rounded."""
        state = innermost(env).state
        return np.array([*state, state.dtype == np.float32], np.float64)

    def set_state(self, env: Env, state: np.ndarray) -> None:
        """Sets the state."""
        innermost(env).state = np.array(state[:2], np.float32 if state[2] else np.float64)


class SimulatorAdapter:
    """A simulator of urbe behind Gymnasium's interface; copies draw the same random numbers as the environment."""

    def get_state(self, env: Env) -> dict[str, Any]:
        """The state of the simulator and of its random numbers."""
        return {"state": innermost(env).get_state(), "noise": innermost(env).get_noise()}

    def set_state(self, env: Env, state: dict[str, Any]) -> None:
        """Sets the state."""
        innermost(env).set_state(state["state"])
        innermost(env).set_noise(state["noise"])

    def get_params(self, env: Env) -> dict[str, float]:
        """All parameters of the simulator."""
        params: dict[str, float] = innermost(env).get_params()
        return params

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """Calls the environment's own method."""
        innermost(env).set_params(**params)


_LINKS = ("LINK_LENGTH_1", "LINK_MASS_1", "LINK_MASS_2", "LINK_COM_POS_1", "LINK_COM_POS_2", "LINK_MOI")
_EXACT: dict[type[Any], Adapter] = {
    CartPoleEnv: CartPoleAdapter(),
    AcrobotEnv: AttributesAdapter((*_LINKS, "torque_noise_max"), above_zero=_LINKS),
    MountainCarEnv: AttributesAdapter(("force", "gravity")),
    Continuous_MountainCarEnv: ContinuousCarAdapter(),
    PendulumEnv: AttributesAdapter(("g", "m", "l", "dt"), above_zero=("m", "l", "dt")),
    SimulatorEnv: SimulatorAdapter(),
}


def adapter_of(env: Env) -> Adapter | None:
    """Returns the adapter for an environment of a known kind, or one that has the four methods itself.

    Kinds are recognised by their exact class: a subclass may have more state.
    """
    inner = innermost(env)
    if type(inner) in _EXACT:
        return _EXACT[type(inner)]
    if type(inner).__module__.startswith("gymnasium.envs.mujoco."):
        return MujocoAdapter()
    return OwnMethodsAdapter() if has_own_methods(env) else None


def no_members(env: Any) -> str:
    """Explains why an environment has no members, and what to do."""
    return (
        f"{env} has no members to be robust against: no adapter is known that could set its state, so copies with "
        "other parameters cannot be set to it. Give the environment the methods get_state, set_state, "
        "get_params and set_params; or give EnvMembers(env, params, adapter=adapter) with an Adapter of your own that "
        "has them, or FunctionMembers(function, count), a function of (observation, action); or train a plain agent."
    )
