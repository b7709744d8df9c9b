"""Find out which wrappers of an environment have a memory, since copies of the environment would lack it."""

from __future__ import annotations

from copy import deepcopy
from types import FunctionType, ModuleType
from typing import Any

import gymnasium
import numpy as np

from urbe.gym.changing_params import ChangingParams
from urbe.gym.discrete_actions import DiscreteActions
from urbe.gym.kinds import Env, Randomised, innermost
from urbe.gym.members.differences import first_difference

_WATCHING = (
    gymnasium.wrappers.TimeLimit,  # its clock is saved separately
    gymnasium.wrappers.OrderEnforcing,
    gymnasium.wrappers.PassiveEnvChecker,
    gymnasium.wrappers.RecordEpisodeStatistics,
)  # they change neither observations nor actions

HARMLESS = (
    *_WATCHING,
    gymnasium.wrappers.TransformObservation,
    gymnasium.wrappers.TransformReward,
    gymnasium.wrappers.TransformAction,
    DiscreteActions,
)
"""Wrappers without a memory, or whose memory is saved in another way."""

_BOUND = gymnasium.wrappers.AddRenderObservation  # shows the environment it was made for, also in a copy
_PER_EPISODE = (ChangingParams,)


_IGNORED = ("_np_random_seed", "spec")  # describe how an environment was made, not its state
_TRANSFORMING = (gymnasium.ActionWrapper, gymnasium.ObservationWrapper, gymnasium.RewardWrapper)
_TRIAL = (5, 1, 5)  # steps of the episodes in which wrappers of unknown classes are watched


def wrappers(env: Env) -> list[gymnasium.Wrapper[Any, Any, Any, Any]]:
    """The wrappers of an environment, the outermost first."""
    found = []
    while isinstance(env, gymnasium.Wrapper):
        found.append(env)
        env = env.env
    return found


def randomised(env: Env) -> list[Randomised]:
    """The wrappers that draw parameters."""
    return [each for each in wrappers(env) if isinstance(each, Randomised)]


def keeps_state(env: Env, *, across_episodes: bool) -> str | None:
    """The name of a wrapper that may have a memory which no adapter saves, or None.

    A wrapper of an unknown class has none if it transforms only actions, observations or rewards, with Gymnasium's own
    `step` and `reset`, or has no attributes, and some steps of a copy leave its attributes unchanged.

    Args:
      env: the environment with its wrappers.
      across_episodes: whether memory from episode to episode counts, too.
    """
    harmless = HARMLESS if across_episodes else (*HARMLESS, *_PER_EPISODE)
    around = wrappers(env)
    unknown = [
        k
        for k, each in enumerate(around)
        if not isinstance(each, (*harmless, Randomised)) or isinstance(each, _BOUND)  # draws are kept with states
    ]
    changing = [k for k in unknown if not _seems_memoryless(around[k])] or _changed_by_steps(env, unknown)
    return type(around[changing[0]]).__name__ if changing else None


def _seems_memoryless(wrapper: gymnasium.Wrapper[Any, Any, Any, Any]) -> bool:
    if isinstance(wrapper, _BOUND):
        return False
    base = next((kind for kind in _TRANSFORMING if isinstance(wrapper, kind)), None)
    if base is not None and type(wrapper).step is base.step and type(wrapper).reset is base.reset:
        return True
    return vars(wrapper).keys() <= {*vars(gymnasium.Wrapper(wrapper.env)), "_saved_kwargs"}  # no attributes of its own


def _changed_by_steps(env: Env, places: list[int]) -> list[int]:
    """The places of the wrappers whose attributes differ after steps and resets of a copy; all without a copy."""
    if not places:
        return []
    try:
        trial = deepcopy(env)
    except Exception:  # any error of parts of an environment that cannot be copied
        return places
    watched = [wrappers(trial)[k] for k in places]
    before = [deepcopy(_contents(each, set())) for each in watched]
    trial.action_space.seed(0)
    for steps in _TRIAL:
        trial.reset(seed=0)
        for _ in range(steps):
            _, _, terminated, truncated, _ = trial.step(trial.action_space.sample())
            if terminated or truncated:
                break
    after = [_contents(each, set()) for each in watched]
    return [k for k, old, new in zip(places, before, after, strict=True) if first_difference(old, new)]


def _contents(value: Any, seen: set[int]) -> Any:
    """Attributes of an object, and theirs, as nested containers; environments behind a wrapper are left out."""
    if isinstance(value, gymnasium.Space):
        return str(value)  # the trial draws its actions from one
    if not hasattr(value, "__dict__") or isinstance(value, (type, FunctionType, ModuleType, np.random.Generator)):
        return value
    if id(value) in seen:
        return None
    seen.add(id(value))
    return {name: _contents(each, seen) for name, each in vars(value).items() if name != "env"}


def transforming(env: Env) -> str | None:
    """The name of a wrapper that changes observations, actions or rewards, or None."""
    kept = (each for each in wrappers(env) if not isinstance(each, (*_WATCHING, *_PER_EPISODE)))
    return next((type(each).__name__ for each in kept), None)


def differing_attributes(env: Env, copy: Env) -> list[str]:
    """Names the attributes in which two environments, or their wrappers with a memory, differ."""
    found = []
    for one, other in zip([*wrappers(env), innermost(env)], [*wrappers(copy), innermost(copy)], strict=False):
        if isinstance(one, HARMLESS):
            continue
        mine, others = vars(one), vars(other)
        names = [name for name in mine if name not in _IGNORED and first_difference(mine[name], others.get(name))]
        found += [f"{type(one).__name__}.{name}" for name in names]
    return found
