"""Convert Gymnasium environments, single ones and vectors, to one form: n rows that act together.

They differ in how episodes follow each other, and in where the last observation of an episode is found:

    single environment   step returns it; reset is called at once
    DISABLED             step returns it; those that ended are reset at once
    SAME_STEP            in infos["final_obs"]; step returns the first one of the next episode
    NEXT_STEP            step returns it; the next step resets instead of acting, and is no transition
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space, iterate
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from jaxtyping import Float

from urbe import checks
from urbe.gym.kinds import KINDS, AnyEnv, Env, numbered


@dataclass(frozen=True)
class Observations:
    """Converts observations to rows of float32 numbers: boxes flattened, discrete values one-hot, parts in order.

    Args:
      space: the observation space of one environment.

    >>> Observations(gymnasium.spaces.Discrete(3, start=5)).row(6)
    array([0., 1., 0.], dtype=float32)
    """

    space: gymnasium.Space[Any]

    def __post_init__(self) -> None:
        if not _is_fixed(self.space):
            raise ValueError(
                f"The observation space is {self.space}, expected one with a fixed number of numbers: Box, Discrete, "
                "MultiBinary, MultiDiscrete, or a Dict or Tuple of them. Wrap the environment in "
                "gymnasium.wrappers.TransformObservation."
            )

    @cached_property
    def size(self) -> int:
        """D, numbers in a row."""
        return int(gymnasium.spaces.flatdim(self.space))

    def rows(self, batch: Any, count: int) -> Float[np.ndarray, "n D"]:
        """The rows of `count` stacked observations, as in a vector of environments. Numbers may be infinite or NaN.

        Raises:
          ValueError: an observation does not belong to the space.
        """
        if isinstance(self.space, (gymnasium.spaces.Box, gymnasium.spaces.MultiBinary)):
            try:
                with np.errstate(over="ignore"):  # the caller checks that numbers are finite
                    rows = np.array(batch, np.float32)  # a copy: some environments reuse one array
            except (TypeError, ValueError) as error:
                raise self._foreign(batch, str(error)) from None
            if rows.size != count * self.size:
                raise self._foreign(batch, f"{rows.size} numbers, expected {count * self.size}")
            return rows.reshape(count, self.size)
        if isinstance(self.space, gymnasium.spaces.Discrete):
            return np.array([self.row(one) for one in np.ravel(batch)], np.float32).reshape(count, self.size)
        each = [self.row(one) for one in iterate(batch_space(self.space, count), batch)] if count else []
        return np.array(each, np.float32).reshape(count, self.size)

    def row(self, obs: Any) -> Float[np.ndarray, " D"]:
        """The row of one observation.

        Raises:
          ValueError: it does not belong to the space.
        """
        if isinstance(self.space, (gymnasium.spaces.Box, gymnasium.spaces.MultiBinary)):
            first: np.ndarray = self.rows(obs, 1)[0]
            return first
        try:
            if wrong := _outside(self.space, obs):
                raise self._foreign(obs, wrong)
            return np.array(gymnasium.spaces.flatten(self.space, obs), np.float32)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise self._foreign(obs, f"{type(error).__name__}: {error}") from None

    def _foreign(self, obs: Any, why: str) -> ValueError:
        return ValueError(
            f"The environment gave the observation {obs!r:.100}, which is not of its observation_space, {self.space} "
            f"({why}). Correct one of them."
        )


def _outside(space: gymnasium.Space[Any], obs: Any) -> str | None:
    """Says which discrete number of an observation is outside of its space, or which part has another size."""
    kinds = gymnasium.spaces
    if isinstance(space, kinds.Dict):
        parts = [(inner, obs[key]) for key, inner in space.spaces.items()]
    elif isinstance(space, kinds.Tuple):
        parts = list(zip(space.spaces, obs, strict=True))
    elif isinstance(space, (kinds.Discrete, kinds.MultiDiscrete)):
        number = np.asarray(obs) - space.start
        sizes = space.n if isinstance(space, kinds.Discrete) else space.nvec
        if number.shape == np.shape(sizes) and bool(((number >= 0) & (number < sizes)).all()):
            return None
        return f"{obs!r:.100} is not of {space}"
    else:
        size = gymnasium.spaces.flatdim(space)
        return None if np.size(obs) == size else f"{np.size(obs)} numbers, expected {size}"
    return next((wrong for part in parts if (wrong := _outside(*part))), None)


def _is_fixed(space: gymnasium.Space[Any]) -> bool:
    """Whether all observations have the same number of entries, and can be stored in a file."""
    kinds = gymnasium.spaces
    if isinstance(space, kinds.Dict):
        return all(isinstance(key, str) and _is_fixed(inner) for key, inner in space.spaces.items())
    if isinstance(space, kinds.Tuple):
        return all(map(_is_fixed, space.spaces))
    return isinstance(space, (kinds.Box, kinds.Discrete, kinds.MultiBinary, kinds.MultiDiscrete))


class Happened(NamedTuple):
    """The outcome of a row's action.

    Attributes:
      reached: the observation that was reached.
      first: the observation for the next action: the same, or the first one of the next episode; None if not known yet.
    """

    reward: float
    terminated: bool
    truncated: bool
    reached: Float[np.ndarray, " D"]
    first: Float[np.ndarray, " D"] | None


class Began(NamedTuple):
    """A row that was reset and did not act: the first observation of its episode."""

    first: Float[np.ndarray, " D"]


class HostEnv(Protocol):
    """n environments that act together."""

    env: AnyEnv
    count: int
    observations: Observations
    n_actions: int
    start: int
    mode: AutoresetMode | None  # None of a single environment

    def reset(self, seeds: list[int]) -> Float[np.ndarray, "n D"]:
        """Begins an episode in all environments."""

    def step(self, actions: list[int], waiting: list[bool]) -> list[Happened | Began]:
        """Acts, with actions numbered from 0; `waiting` rows have ended, and their next episode has not begun."""

    def behind(self) -> list[Env] | None:
        """The environments of the rows, if they are in this process."""


def host_env(env: AnyEnv) -> HostEnv:
    """Converts an environment to the form that the host loop uses.

    Raises:
      ValueError: its spaces or its autoreset mode are not supported; the message says what to do.
    """
    kinds = 'an environment, such as gymnasium.make("CartPole-v1") or urbe.gym.SimulatorEnv(simulator)'
    checks.kind("env", env, isinstance(env, KINDS), kinds)
    return _Vector(env) if isinstance(env, VectorEnv) else _Single(env)


def step_env(env: Env, action: int) -> tuple[Any, float, bool, bool]:
    """Steps an environment; returns observation, reward, terminated and truncated.

    Environments and their copies receive actions of the same type, since NumPy rounds by the types of numbers.

    Raises:
      ValueError: the result is not what Gymnasium defines, for example that of an environment for Gym.
    """
    names = ("observation", "reward", "terminated", "truncated", "info")
    obs, reward, terminated, truncated, _ = _unpacked(env, "step", env.step(np.int64(action)), names)
    try:
        return obs, float(reward), bool(terminated), bool(truncated)
    except (TypeError, ValueError):
        raise ValueError(
            f"step() of {env} returned the reward {reward!r:.100}, terminated {terminated!r:.100} and truncated "
            f"{truncated!r:.100}, expected a number and two booleans."
        ) from None


def _unpacked(env: Env, method: str, result: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(result, tuple) or len(result) != len(names):
        found = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise ValueError(
            f"{method}() of {env} returned {found}, expected the tuple ({', '.join(names)}), as Gymnasium defines it."
        )
    return result


class _Single:
    """The rows of a single environment."""

    def __init__(self, env: Env) -> None:
        self.env: AnyEnv = env
        self._one, self.count = env, 1
        self.mode: AutoresetMode | None = None
        self.observations = Observations(env.observation_space)
        self.n_actions, self.start = _actions(env.action_space, env)

    def reset(self, seeds: list[int]) -> Float[np.ndarray, "1 D"]:
        return self._first(self._one.reset(seed=seeds[0]))[None]

    def _first(self, result: Any) -> Float[np.ndarray, " D"]:
        obs, _ = _unpacked(self._one, "reset", result, ("observation", "info"))
        return self.observations.row(obs)

    def step(self, actions: list[int], waiting: list[bool]) -> list[Happened | Began]:
        obs, reward, terminated, truncated = step_env(self._one, actions[0] + self.start)
        reached = first = self.observations.row(obs)
        if terminated or truncated:
            first = self._first(self._one.reset())
        return [Happened(reward, terminated, truncated, reached, first)]

    def behind(self) -> list[Env] | None:
        return [self._one]


class _Vector:
    """A vector of environments, in any autoreset mode."""

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        self.env: AnyEnv = env
        self._vector, self.count = env, int(env.num_envs)
        self.observations = Observations(env.single_observation_space)
        self.n_actions, self.start = _actions(env.single_action_space, env)
        self.mode: AutoresetMode | None = autoreset_mode(env)

    def reset(self, seeds: list[int]) -> Float[np.ndarray, "n D"]:
        try:
            return self._rows(self._vector.reset(seed=seeds)[0])  # type: ignore[arg-type]
        except gymnasium.error.Error as error:
            raise ValueError(
                f"{self._vector} does not take one seed for each of its environments ({error}). Make it with "
                'gymnasium.make_vec(..., vectorization_mode="sync").'
            ) from None

    def step(self, actions: list[int], waiting: list[bool]) -> list[Happened | Began]:
        obs, rewards, terminated, truncated, infos = self._vector.step(np.array(actions, np.int64) + self.start)
        reached = self._rows(obs)
        ended = (np.asarray(terminated, bool) | np.asarray(truncated, bool)) & ~np.array(waiting)
        first: list[np.ndarray | None] = list(reached)
        if ended.any():
            if self.mode == AutoresetMode.DISABLED:
                fresh, _ = self._vector.reset(options={"reset_mask": ended.copy()})
                first = [new if end else old for new, old, end in zip(self._rows(fresh), reached, ended, strict=True)]
            for i in np.flatnonzero(ended).tolist():
                if self.mode == AutoresetMode.NEXT_STEP:
                    first[i] = None
                elif self.mode == AutoresetMode.SAME_STEP:
                    reached[i], first[i] = self.observations.row(infos["final_obs"][i]), reached[i].copy()
        steps: list[Happened | Began] = []
        for i, reward in enumerate(np.asarray(rewards, np.float64).tolist()):
            if waiting[i]:
                steps.append(Began(reached[i]))
            else:
                steps.append(Happened(reward, bool(terminated[i]), bool(truncated[i]), reached[i], first[i]))
        return steps

    def _rows(self, batch: Any) -> Float[np.ndarray, "n D"]:
        return self.observations.rows(batch, self.count)

    def behind(self) -> list[Env] | None:
        inner = self._vector
        while isinstance(inner, RecordEpisodeStatistics):
            inner = inner.env
        return list(inner.envs) if isinstance(inner, SyncVectorEnv) else None


def autoreset_mode(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """The autoreset mode of a vector; raises ValueError if it is missing."""
    mode = env.metadata.get("autoreset_mode")
    try:
        return mode if isinstance(mode, AutoresetMode) else AutoresetMode(mode)
    except ValueError:
        modes = ", ".join(each.name for each in AutoresetMode)
        raise ValueError(
            f'env.metadata["autoreset_mode"] is {mode!r}, expected one of gymnasium.vector.AutoresetMode: {modes}. '
            "Without it, transitions and resets cannot be distinguished."
        ) from None


def _actions(space: gymnasium.Space[Any], env: AnyEnv) -> tuple[int, int]:
    """The number of actions, and the number of the first."""
    if (found := numbered(space)) is None:
        advice = (
            "Choose some of its actions: urbe.gym.DiscreteActions(env, values) with one row of values per action."
            if isinstance(space, gymnasium.spaces.Box)
            else "Wrap it so that each combination is one action, see gymnasium.ActionWrapper."
        )
        raise ValueError(
            f"{env} has the action space {space}, expected Discrete: a Q-network has one output per action. {advice}"
        )
    return checks.whole_number("n", found[0], 1), found[1]
