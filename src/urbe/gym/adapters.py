"""How environments of different kinds are read, moved and changed: what copies of them need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, MountainCarEnv

from urbe import checks
from urbe.gym.changing_params import ChangingParams
from urbe.gym.discrete_actions import DiscreteActions
from urbe.gym.kinds import Env, Randomised, innermost
from urbe.gym.mujoco import MujocoAdapter
from urbe.gym.own_methods import OwnMethodsAdapter, has_own_methods
from urbe.gym.simulator_env import SimulatorEnv


class Adapter(Protocol):
    """One kind of environment; each method is given it with all its wrappers."""

    def get_state(self, env: Env) -> Any:
        """All that its next step depends on, as nested containers of arrays, but for parameters and its generator."""

    def set_state(self, env: Env, state: Any) -> None:
        """Goes where `get_state` was, within an episode."""

    def get_params(self, env: Env) -> dict[str, float]:
        """Its parameters by name."""

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """Changes some of them, with everything that follows from them; raises ValueError naming a bad one."""


@dataclass(frozen=True)
class AttributesAdapter:
    """Classic environments of Gymnasium's, which keep their state in `state` and parameters in attributes.

    Args:
      names: of the attributes.
      above_zero: those of them that must be.
    """

    names: tuple[str, ...]
    above_zero: tuple[str, ...] = ()

    def get_state(self, env: Env) -> np.ndarray:
        """Such as angles and their speeds."""
        return np.array(innermost(env).state, np.float64)

    def set_state(self, env: Env, state: np.ndarray) -> None:
        """Goes there."""
        innermost(env).state = np.array(state)

    def get_params(self, env: Env) -> dict[str, float]:
        """As its attributes."""
        return {name: float(getattr(innermost(env), name)) for name in self.names}

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """Sets attributes, once all are known to be good."""
        checks.known_names(params, self.names, type(innermost(env)).__name__)
        numbers = {
            name: (checks.positive if name in self.above_zero else checks.finite_number)(name, value)
            for name, value in params.items()
        }
        for name, number in numbers.items():
            setattr(innermost(env), name, number)


@dataclass(frozen=True)
class CartPoleAdapter(AttributesAdapter):
    """Gymnasium's CartPole; `length` is half of the pole's. What it computes from masses once is computed again."""

    names: tuple[str, ...] = ("gravity", "masscart", "masspole", "length", "force_mag")
    above_zero: tuple[str, ...] = ("masscart", "length")

    def set_state(self, env: Env, state: np.ndarray) -> None:
        """Also forgets that an episode had ended."""
        super().set_state(env, state)
        innermost(env).steps_beyond_terminated = None

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """Sets attributes, and total_mass and polemass_length from them."""
        super().set_params(env, params)
        pole = innermost(env)
        pole.total_mass, pole.polemass_length = pole.masspole + pole.masscart, pole.masspole * pole.length


class SimulatorAdapter:
    """A simulator of ours behind Gymnasium's interface; copies draw the numbers the environment draws."""

    def get_state(self, env: Env) -> dict[str, Any]:
        """The simulator's, and where its random numbers stand."""
        return {"state": innermost(env).get_state(), "noise": innermost(env).get_noise()}

    def set_state(self, env: Env, state: dict[str, Any]) -> None:
        """Goes there."""
        innermost(env).set_state(state["state"])
        innermost(env).set_noise(state["noise"])

    def get_params(self, env: Env) -> dict[str, float]:
        """All of the simulator."""
        params: dict[str, float] = innermost(env).get_params()
        return params

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """As the environment itself does."""
        innermost(env).set_params(**params)


_LINKS = ("LINK_LENGTH_1", "LINK_MASS_1", "LINK_MASS_2", "LINK_COM_POS_1", "LINK_COM_POS_2", "LINK_MOI")
_EXACT: dict[type[Any], Adapter] = {
    CartPoleEnv: CartPoleAdapter(),
    AcrobotEnv: AttributesAdapter((*_LINKS, "torque_noise_max"), above_zero=_LINKS),
    MountainCarEnv: AttributesAdapter(("force", "gravity")),
    SimulatorEnv: SimulatorAdapter(),
}

_WATCHING = (
    gymnasium.wrappers.TimeLimit,  # its clock is kept apart
    gymnasium.wrappers.OrderEnforcing,
    gymnasium.wrappers.PassiveEnvChecker,
    gymnasium.wrappers.RecordEpisodeStatistics,
)  # they change nothing that is seen or done

HARMLESS = (
    *_WATCHING,
    gymnasium.wrappers.TransformObservation,
    gymnasium.wrappers.TransformReward,
    gymnasium.wrappers.TransformAction,
    DiscreteActions,
)
"""Wrappers that look at one step alone, or whose memory is kept in another way."""

_BOUND = gymnasium.wrappers.AddRenderObservation  # shows the environment it was made for, also in a copy
_PER_EPISODE = (ChangingParams,)


def adapter_of(env: Env) -> Adapter | None:
    """The adapter for a kind of environment that is known, or that has the four methods itself.

    Kinds are known by their exact class: a subclass may keep more.
    """
    inner = innermost(env)
    if type(inner) in _EXACT:
        return _EXACT[type(inner)]
    if type(inner).__module__.startswith("gymnasium.envs.mujoco."):
        return MujocoAdapter()
    return OwnMethodsAdapter() if has_own_methods(env) else None


def wrappers(env: Env) -> list[gymnasium.Wrapper[Any, Any, Any, Any]]:
    """From the outermost inwards."""
    found = []
    while isinstance(env, gymnasium.Wrapper):
        found.append(env)
        env = env.env
    return found


def randomised(env: Env) -> list[Randomised]:
    """The wrappers that draw parameters."""
    return [each for each in wrappers(env) if isinstance(each, Randomised)]


def keeps_state(env: Env, *, across_episodes: bool) -> str | None:
    """The name of a wrapper that may remember something which no adapter knows of, or None.

    Args:
      env: with its wrappers.
      across_episodes: whether what is remembered from episode to episode counts too.
    """
    harmless = HARMLESS if across_episodes else (*HARMLESS, *_PER_EPISODE)
    kept = (
        each
        for each in wrappers(env)
        if not isinstance(each, (*harmless, Randomised)) or isinstance(each, _BOUND)  # draws are kept with states
    )
    return next((type(each).__name__ for each in kept), None)


def transforming(env: Env) -> str | None:
    """The name of a wrapper that changes what is seen, done or gained, or None."""
    kept = (each for each in wrappers(env) if not isinstance(each, (*_WATCHING, *_PER_EPISODE)))
    return next((type(each).__name__ for each in kept), None)


def no_members(env: Any) -> str:
    """Why there are no members for an environment, and what to do."""
    return (
        f"{env} has no members to be robust against: no adapter is known that could set its state, so that copies with "
        "other parameters cannot be brought to where it stands. Give the environment the methods get_state, set_state, "
        "get_params and set_params; or give EnvMembers(env, params, adapter=adapter) with an Adapter of your own that "
        "has them, or FunctionMembers(function, count), a function of (observation, action); or train a plain agent."
    )
