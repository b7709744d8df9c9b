"""Domain randomisation of Gymnasium environments: an adapter sets new parameters from episode to episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from urbe import checks
from urbe.gym.adapters import Adapter, adapter_of, no_members
from urbe.gym.kinds import AnyEnv, single
from urbe.gym.members.copies import EnvMembers
from urbe.rng import stream
from urbe.simulators.distributions import Distribution

Parameters = EnvMembers | Sequence[Mapping[str, float]] | Mapping[str, Distribution]
"""The source of parameters: members, a list of values by name, or a distribution for each name."""


class RandomisedParams(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that draws new parameters at the beginning of every episode.

    The parameters of an episode depend only on the seed and the number of the episode; `reset(seed=...)` seeds the
    environment but not the parameters. Parameters that are not named keep their current values.

    Args:
      env: a single environment with its wrappers.
      parameters: `EnvMembers` or a list of parameters by name, all equally likely; or a distribution for each name.
      seed: seed of the parameters, a whole number of at least 0.
      hazard: probability that an episode has new parameters; otherwise it keeps the previous ones.
      adapter: sets the parameters; None for known environments.

    >>> import gymnasium
    >>> env = RandomisedParams(gymnasium.make("CartPole-v1"), [{"length": 0.25}, {"length": 1.0}], seed=0)
    >>> lengths = set()
    >>> for _ in range(20):
    ...     _ = env.reset()
    ...     lengths.add(env.unwrapped.length)
    >>> sorted(lengths)
    [0.25, 1.0]
    """

    def __init__(
        self, env: AnyEnv, parameters: Parameters, seed: int, *, hazard: float = 1.0, adapter: Adapter | None = None
    ) -> None:
        super().__init__(single(env))
        self.seed = checks.whole_number("seed", seed, 0)
        self.hazard = checks.number("hazard", hazard, 0.0, 1.0)
        found = parameters.adapter if isinstance(parameters, EnvMembers) and adapter is None else adapter
        known = adapter_of(self.env) if found is None else found
        if known is None:
            raise ValueError(no_members(env))
        self.adapter: Adapter = known
        self._own = self.adapter.get_params(self.env)
        self._laws = _laws(parameters, self._own)
        self._points = [] if self._laws else _points(parameters, self._own)
        self._episode = self._drawn = -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode, under parameters that may be new."""
        self._episode += 1
        if self._episode == 0 or stream(self.seed, "hazard", self._episode).random() < self.hazard:
            self._drawn = self._episode
        self._set()
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info

    def get_draws(self) -> np.ndarray:
        """The number of the episode, and of the episode for which its parameters were drawn."""
        return np.array([self._episode, self._drawn], np.int64)

    def set_draws(self, draws: np.ndarray) -> None:
        """Restores the result of `get_draws`, and the parameters."""
        self._episode, self._drawn = (int(number) for number in draws)
        self._set()

    def describe_draws(self) -> dict[str, Any]:
        """The distribution of the parameters, as plain data."""
        laws = {name: repr(law) for name, law in self._laws.items()}
        return {"drawn from": laws or [dict(point) for point in self._points], "hazard": self.hazard, "seed": self.seed}

    def _set(self) -> None:
        rng = stream(self.seed, "parameters", self._drawn)
        if self._laws:
            point = {name: _sample(law, rng) for name, law in self._laws.items()}
        else:
            point = self._points[int(rng.integers(len(self._points)))]
        self.adapter.set_params(self.env, {**self._own, **point})


def _laws(parameters: Parameters, own: Mapping[str, float]) -> dict[str, Distribution]:
    if not isinstance(parameters, Mapping):
        return {}
    if not parameters:
        raise ValueError(f"parameters is empty, expected distributions of some of {', '.join(own)}.")
    checks.known_names(parameters, tuple(own), "the environment")
    for name, law in parameters.items():
        if not isinstance(law, Distribution):
            raise ValueError(
                f"parameters[{name!r}] is {law!r}, expected a distribution such as Uniform(low, high); for a list of "
                'values give a list of parameters, [{"length": 0.5}, {"length": 1.0}].'
            )
    return dict(parameters)


def _points(parameters: Parameters, own: Mapping[str, float]) -> list[dict[str, float]]:
    if isinstance(parameters, EnvMembers):
        columns = parameters.describe()["parameters"]
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    points = [dict(point) for point in parameters]  # type: ignore[arg-type]
    if not points:
        raise ValueError("parameters is empty, expected at least one set of parameters by name.")
    for point in points:
        checks.known_names(point, tuple(own), "the environment")
    return points


def _sample(law: Distribution, rng: np.random.Generator) -> float:
    words = rng.integers(2**32, size=2, dtype=np.uint32)
    return float(law.sample(jax.random.wrap_key_data(jnp.asarray(words, jnp.uint32), impl="threefry2x32")))
