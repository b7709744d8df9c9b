"""Gymnasium environments with named parameters, stepped in parallel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from urbe.evaluation.episodes import EpisodeDraws
from urbe.evaluation.grids import Point
from urbe.evaluation.worlds import Observations, StepResult, action_number, same_sizes
from urbe.gym.kinds import SINGLE, Env, numbered
from urbe.gym.rows import Observations as Rows
from urbe.gym.simulator_env import SimulatorEnv
from urbe.types import BoolArray, IntArray

EnvSource = Env | Callable[..., Env]


class GymWorld:
    """Gymnasium environments in parallel.

    Args:
      env: an environment that takes its parameters by `set_params(**named)`; or a function without arguments
        that makes such environments; or a function from parameters, a dict by name, to any environment.
    """

    def __init__(self, env: EnvSource) -> None:
        if not isinstance(env, SINGLE) and not callable(env):
            raise ValueError(
                f"env is of type {type(env).__name__}, expected a simulator, a Gymnasium environment with set_params, "
                "or a function that makes environments."
            )
        self._given = env if isinstance(env, SINGLE) else None
        self._make = _maker(env)
        self._fresh = not isinstance(env, SINGLE) and _takes_params(env)
        self._point: Point = {}
        self._envs: list[Env] = []
        self.before: Mapping[str, float] | None = None
        if not self._fresh:
            self._envs = [self._make({})]
            self.before = _params(self._envs[0])

    def enter(self, point: Point) -> None:
        """Makes new environments if that is how they get their parameters."""
        if self._fresh and (not self._envs or point != self._point):
            count = max(len(self._envs), 1)
            self.close()
            self._envs = [self._made(point) for _ in range(count)]
        self._point = point
        for env in self._envs:
            self._tell(env)

    def widen(self, count: int) -> None:
        """Makes environments until there are at least `count`; a given environment stays the only one."""
        while self._given is None and len(self._envs) < count:
            self._envs.append(self._made(self._point))
            self._tell(self._envs[-1])

    @property
    def env(self) -> Env:
        """The first environment."""
        return self._envs[0]

    @property
    def lanes(self) -> int:
        """The number of environments."""
        return len(self._envs)

    @property
    def time_limit(self) -> int | None:
        """The time limit of a simulator, if nothing else truncates its episodes."""
        return own_limit(self._envs[0])

    @property
    def action_shape(self) -> tuple[int, ...]:
        return tuple(self._envs[0].action_space.shape or ())

    def reset(self, drawn: EpisodeDraws) -> Observations:
        return [env.reset(seed=int(seed))[0] for env, seed in zip(self._envs, drawn.seeds, strict=False)]

    def step(self, actions: Any, alive: BoolArray) -> StepResult:
        n = len(alive)
        moved = StepResult([None] * n, np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_))
        for lane in np.flatnonzero(alive):
            env = self._envs[lane]
            action = actions[lane]
            if (discrete := numbered(env.action_space)) is not None:
                action = action_number(action, *discrete)
            seen, reward, terminated, truncated, _ = env.step(action)
            moved.observations[lane] = seen
            moved.rewards[lane], moved.terminated[lane], moved.truncated[lane] = reward, terminated, truncated
        return moved

    def rows(self, observations: Observations) -> Float[np.ndarray, "B D"]:
        of = Rows(self._envs[0].observation_space)
        return np.stack([of.row(seen) for seen in observations])

    def fit(self, obs_size: int, n_actions: int) -> None:
        env = self._envs[0]
        if (discrete := numbered(env.action_space)) is None:
            raise ValueError(
                f"env has the actions {env.action_space}, expected {n_actions} discrete ones, as the policy."
            )
        same_sizes(str(env), Rows(env.observation_space).size, discrete[0], obs_size, n_actions)

    def actions(self, numbers: IntArray) -> Any:
        space: Any = self._envs[0].action_space
        return numbers + int(space.start)

    def close(self) -> None:
        """Restores an environment that was given, and closes all others."""
        if self._given is None:
            for env in self._envs:
                env.close()
            self._envs = []
        elif self.before is not None:
            self._given.get_wrapper_attr("set_params")(**self.before)

    def _made(self, point: Point) -> Env:
        env = self._make(dict(point))
        if not isinstance(env, SINGLE):
            raise ValueError(f"env returned a {type(env).__name__}, expected a function that makes a gymnasium.Env.")
        return env

    def _tell(self, env: Env) -> None:
        if self._fresh or not self._point:
            return
        if not env.has_wrapper_attr("set_params"):
            raise ValueError(
                f"env makes {env}, which has no set_params(**named), so that its parameters cannot be changed; give a "
                "function that makes one for given parameters: env=lambda params: ..."
            )
        env.get_wrapper_attr("set_params")(**self._point)


def _maker(env: EnvSource) -> Callable[[Point], Env]:
    if isinstance(env, SINGLE):
        return lambda _: env
    return env if _takes_params(env) else lambda _: env()


def _takes_params(make: Callable[..., Env]) -> bool:
    """Whether a function has a required argument."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(p.kind in kinds and p.default is p.empty for p in inspect.signature(make).parameters.values())


def _params(env: Env) -> Mapping[str, float] | None:
    named: Mapping[str, float] | None = (
        env.get_wrapper_attr("get_params")() if env.has_wrapper_attr("get_params") else None
    )
    return named


def own_limit(env: Env) -> int | None:
    """The time limit of the simulator behind an environment, if nothing else truncates its episodes."""
    limited = env.spec is not None and env.spec.max_episode_steps is not None
    return env.unwrapped.simulator.time_limit if isinstance(env.unwrapped, SimulatorEnv) and not limited else None
