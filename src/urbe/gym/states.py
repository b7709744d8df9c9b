"""Save and restore the complete state of environments, so that a run resumes bit for bit."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from jaxtyping import UInt64

from urbe.gym.adapters import Adapter, adapter_of
from urbe.gym.kinds import Env, innermost
from urbe.gym.rows import HostEnv, autoreset_mode
from urbe.gym.wrapping import keeps_state, randomised, wrappers

_WORD = 2**64 - 1


class EnvStates:
    """Saves the states of n environments; see `env_states`.

    Args:
      env: an environment in the form of the host loop, within an episode.
      adapters: one per environment.
    """

    def __init__(self, env: HostEnv, adapters: list[Adapter]) -> None:
        self._env, self._adapters, self._envs = env, adapters, env.behind() or []
        # placeholder for an environment that has ended and waits for its reset
        self._nothing = [jax.tree.map(np.zeros_like, a.get_state(e)) for a, e in zip(adapters, self._envs, strict=True)]

    def get(self, waiting: list[bool]) -> list[dict[str, Any]]:
        """The state of each environment, with its generator and the clocks of its time limits."""
        return [
            {
                "state": self._nothing[i] if waiting[i] else self._adapters[i].get_state(env),
                "generator": _words(env),
                "elapsed": np.array([limit._elapsed_steps for limit in _limits(env)], np.int64),
                **{f"draws_{k}": each.get_draws() for k, each in enumerate(randomised(env))},
            }
            for i, env in enumerate(self._envs)
        ]

    def set(self, states: list[dict[str, Any]], waiting: list[bool]) -> None:
        """Restores the result of `get`."""
        for i, (env, kept) in enumerate(zip(self._envs, states, strict=True)):
            for k, each in enumerate(randomised(env)):
                each.set_draws(kept[f"draws_{k}"])
            if not waiting[i]:
                self._adapters[i].set_state(env, kept["state"])
            _set_words(env, kept["generator"])
            for limit, elapsed in zip(_limits(env), kept["elapsed"].tolist(), strict=True):
                limit._elapsed_steps = elapsed
        vector = getattr(self._env.env, "unwrapped", None)
        if isinstance(vector, SyncVectorEnv) and autoreset_mode(vector) == AutoresetMode.NEXT_STEP:
            vector._autoreset_envs = np.array(waiting)


def env_states(env: HostEnv) -> EnvStates | None:
    """Returns the `EnvStates` of an environment, or None if its state is not accessible: no adapter, a wrapper with
    a memory, another generator than Gymnasium's, another process."""
    envs = env.behind()
    if envs is None:
        return None
    adapters = [adapter_of(each) for each in envs]
    known = [adapter for adapter in adapters if adapter is not None]
    if len(known) < len(envs) or any(keeps_state(each, across_episodes=True) for each in envs):
        return None
    if any(type(innermost(each).np_random.bit_generator) is not np.random.PCG64 for each in envs):
        return None
    return EnvStates(env, known)


def _limits(env: Env) -> list[gymnasium.wrappers.TimeLimit[Any, Any]]:
    return [each for each in wrappers(env) if isinstance(each, gymnasium.wrappers.TimeLimit)]


def _words(env: Env) -> UInt64[np.ndarray, " 6"]:
    """The state of an environment's generator."""
    generator = innermost(env).np_random.bit_generator.state
    state, step = generator["state"]["state"], generator["state"]["inc"]
    return np.array(
        [state >> 64, state & _WORD, step >> 64, step & _WORD, generator["has_uint32"], generator["uinteger"]],
        np.uint64,
    )


def _set_words(env: Env, words: UInt64[np.ndarray, " 6"]) -> None:
    a, b, c, d, has, integer = (int(word) for word in words)
    innermost(env).np_random.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": (a << 64) | b, "inc": (c << 64) | d},
        "has_uint32": has,
        "uinteger": integer,
    }
