"""Schedules of changing parameters, for Gymnasium environments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from urbe.rng import stream
from urbe.simulators.base import Key
from urbe.simulators.limits import param_dict
from urbe.simulators.schedules import Carry, Schedule


class ChangingParams(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose parameters follow a schedule: every reset begins the schedule's next episode.

    The schedule sets all parameters, whatever the environment was made with. It has a seed of its own, and
    `reset(seed=...)` does not restart it, since a user who seeds every episode would never see a change. Parameters in
    `reset(options=...)` are rejected, as the schedule sets them; other options are passed on.

    Args:
      env: an environment with `get_params() -> dict` that takes parameters in `reset(options=...)`, such as
        `SimulatorEnv`.
      schedule: schedule of the parameters that `get_params` names; hashable, like a frozen dataclass.
      seed: seed of the schedule, a whole number of at least 0.

    >>> import gymnasium
    >>> from urbe.gym import ChangingParams
    >>> from urbe.simulators import CartPole, Drift
    >>> drift = Drift(CartPole().nominal(), {"half_length": (0.5, 1.0)}, episodes=2)
    >>> env = ChangingParams(gymnasium.make("urbe/CartPole-v0"), drift, seed=0)
    >>> [env.reset(seed=0)[1]["params"]["half_length"] for _ in range(4)]
    [0.5, 0.75, 1.0, 1.0]
    """

    def __init__(self, env: gymnasium.Env[Any, Any], schedule: Schedule, seed: int) -> None:
        super().__init__(env)
        self.schedule = schedule
        self._rng = stream(seed, "schedule")
        self._carry: Carry | None = None
        if not env.has_wrapper_attr("get_params"):
            raise ValueError(
                f"env is {env}, which has no get_params(), expected an environment with named parameters, such as "
                "urbe.gym.SimulatorEnv."
            )
        scheduled = jax.eval_shape(schedule.begin, _key(np.zeros(2, dtype=np.uint32)))
        self._names = schedule.params(scheduled)._fields
        known = tuple(env.get_wrapper_attr("get_params")())
        if set(self._names) != set(known):
            raise ValueError(
                f"schedule has the parameters {', '.join(self._names)}, expected those of the environment: "
                f"{', '.join(known)}."
            )

    @property
    def episode(self) -> int | None:
        """The number of the episode, from 0; None before the first."""
        return None if self._carry is None else int(self._carry.episode)

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins the next episode of the schedule."""
        given = dict(options or {})
        taken = [name for name in given if name in self._names]
        if taken:
            raise ValueError(
                f"options has {', '.join(map(repr, taken))}, which the schedule sets; expected other keys."
            )
        key = _key(self._rng.integers(2**32, size=2, dtype=np.uint32))
        self._carry = _begin(self.schedule, key) if self._carry is None else _next(self.schedule, self._carry, key)
        named = param_dict(self.schedule.params(self._carry))
        observation, info = self.env.reset(seed=seed, options={**given, **named})
        return observation, info


@partial(jax.jit, static_argnums=0)
def _begin(schedule: Schedule, key: Key) -> Carry:
    return schedule.begin(key)


@partial(jax.jit, static_argnums=0)
def _next(schedule: Schedule, carry: Carry, key: Key) -> Carry:
    return schedule.next(carry, key)


def _key(words: np.ndarray) -> Key:
    key: Key = jax.random.wrap_key_data(jnp.asarray(words, jnp.uint32), impl="threefry2x32")
    return key
