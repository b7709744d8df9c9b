"""Simulate a Gymnasium environment: compiled programs call copies of the environment.

A state of the simulator consists of the bytes of the environment's state, as its adapter returns it, and the
observation there. For each request, a copy with the requested parameters is set to the state and steps. Agents that
learn in simulated lives can thus learn in any environment whose state can be set, at the speed of that environment.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from urbe.gym.adapters import Adapter
from urbe.gym.kinds import AnyEnv, Env, innermost
from urbe.gym.members.copies import EnvMembers, copy_of, model_behind, renew
from urbe.gym.rows import host_env
from urbe.gym.wrapping import wrappers
from urbe.simulators.base import Key, Outcomes, Params
from urbe.simulators.limits import param_dict
from urbe.simulators.uncertainty import UncertaintySet

COPIES = 256
"""The largest number of copies, one for each of the most recent parameters."""

TRIED = 50
"""Number of steps that are checked for random numbers."""


class EnvState(NamedTuple):
    """The state of the environment, and the observation there."""

    words: UInt32[Array, " W"]
    seen: Float[Array, " D"]


class EnvSimulator:
    """Simulates a Gymnasium environment whose state and parameters can be set; starts are random, steps are not.

    The environment itself is copied and never touched. Its parameters become float32 numbers.

    Args:
      env: the environment, with its wrappers and a time limit (`gymnasium.wrappers.TimeLimit`).
      adapter: how its state and parameters are set; None for those that `EnvMembers` knows, and for environments
        with the methods get_state, set_state, get_params and set_params.
      place: sets an environment to the state that an observation, a row of numbers, determines. With it, agents can be
        deployed where only observations are available.

    Raises:
      ValueError: it has no adapter, no time limit, a state other than numbers, or random steps or parameters.

    >>> import gymnasium
    >>> from urbe.simulators import UncertaintySet
    >>> simulator = EnvSimulator(gymnasium.make("CartPole-v1"))
    >>> simulator.n_actions, simulator.time_limit, float(simulator.nominal().length)
    (2, 500, 0.5)
    >>> len(UncertaintySet.grid(simulator, length=(0.25, 1.0)))
    3
    """

    def __init__(
        self,
        env: AnyEnv,
        adapter: Adapter | None = None,
        place: Callable[[Env, Float[np.ndarray, " D"]], object] | None = None,
    ) -> None:
        model, self.adapter = model_behind(env, adapter)
        self.place = place
        host = host_env(model)
        self.n_actions, self._first, self._observations = host.n_actions, host.start, host.observations
        self.time_limit = _time_limit(model)
        self._model, self._copies, self._turn = copy_of(model), dict[bytes, Env](), Lock()
        own = self.adapter.get_params(model)
        if self.adapter.get_params(self._model) != own:
            raise ValueError(f"{model} draws parameters when it is reset, expected them to stay as they are set.")
        self._params = _params_type(f"{type(innermost(model)).__name__}Params", own)
        self._nominal = self._params(**{name: np.float32(value) for name, value in own.items()})
        self._layout = _Layout.of(self.adapter.get_state(self._model), type(innermost(model)).__name__)
        self._refuse_random_steps()

    def nominal(self) -> Params:
        """Returns the parameters that the environment had when the simulator was made."""
        return jax.tree.map(jnp.float32, self._nominal)

    def start(self, key: Key, params: Params) -> EnvState:
        """Returns the state after a reset with a random seed."""
        seed = jax.random.bits(key, (), jnp.uint32)
        words, seen = self._ask(self._reset, self._shapes[:2], seed, self._row(params))
        return EnvState(words, seen)

    def outcomes(self, state: EnvState, action: Int[Array, ""], params: Params) -> Outcomes:
        """Returns the only outcome of a step."""
        words, seen, reward, terminated = self._ask(self._act, self._shapes, state.words, action, self._row(params))
        return Outcomes(jnp.ones(1, jnp.float32), EnvState(words[None], seen[None]), reward[None], terminated[None])

    def observe(self, state: EnvState) -> Float[Array, " D"]:
        """Returns the observation in a state."""
        return state.seen

    def state_of(self, obs: Float[Array, " D"]) -> EnvState:
        """Returns the state that `place` sets for an observation.

        Raises:
          ValueError: `place` is None.
        """
        if self.place is None:
            raise ValueError(
                f"The state of {self} is not known to follow from an observation, expected "
                "EnvSimulator(env, place=function), or deployments in an environment whose state can be read: "
                "agent.deploy(env)."
            )
        return EnvState(self._ask(self._place, self._shapes[0], obs, self._row(self._nominal)), obs)

    def check_params(self, params: Mapping[str, float]) -> None:
        """Raises the environment's own error for invalid parameters."""
        self.adapter.set_params(copy_of(self._model), params)

    def members_of(self, env: Env, uncertainty_set: UncertaintySet) -> EnvMembers:
        """Makes copies of another environment of this kind, with the parameters of each member."""
        each = [param_dict(member) for member in uncertainty_set.members()]
        return EnvMembers(env, each, include_nominal=False, adapter=self.adapter)

    def __str__(self) -> str:
        return str(self._model)

    @property
    def _shapes(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        struct: Any = jax.ShapeDtypeStruct
        return (
            struct((self._layout.words,), np.uint32),
            struct((self._observations.size,), np.float32),
            struct((), np.float32),
            struct((), np.bool_),
        )

    @staticmethod
    def _ask(function: Any, shapes: Any, *args: Any) -> Any:
        return jax.pure_callback(function, shapes, *args, vmap_method="broadcast_all")

    @staticmethod
    def _row(params: Params) -> Float[Array, " P"]:
        return jnp.stack([jnp.asarray(each, jnp.float32) for each in params])

    def _reset(self, seeds: Any, params: Any) -> tuple[np.ndarray, ...]:
        """Resets copies, any number at once."""
        return self._each(2, lambda env, seed: (env.reset(seed=int(seed))[0],), params, np.asarray(seeds).reshape(-1))

    def _place(self, obs: Any, params: Any) -> np.ndarray:
        """Places copies by observations, any number at once."""

        def stand(env: Env, seen: np.ndarray) -> tuple[object]:
            assert self.place is not None
            return (self.place(env, seen),)

        rows = np.asarray(obs)
        return self._each(1, stand, params, rows.reshape(-1, rows.shape[-1]))[0]

    def _act(self, words: Any, actions: Any, params: Any) -> tuple[np.ndarray, ...]:
        """Steps copies, any number at once."""
        states = np.asarray(words)

        def step(env: Env, action: Any, state: np.ndarray) -> tuple[Any, ...]:
            self.adapter.set_state(env, self._layout.unpack(state))
            try:
                return env.step(np.int64(action) + self._first)[:3]
            except Exception:  # some refuse steps after the end of their own episode
                renew(env, self.adapter)
                self.adapter.set_state(env, self._layout.unpack(state))
                return env.step(np.int64(action) + self._first)[:3]

        return self._each(4, step, params, np.asarray(actions).reshape(-1), states.reshape(-1, states.shape[-1]))

    def _each(self, n: int, does: Any, params: Any, *args: np.ndarray) -> tuple[np.ndarray, ...]:
        rows = np.asarray(params)  # one for each of the others
        batch = rows.shape[:-1]
        found = [np.empty((int(np.prod(batch)), *shape.shape), shape.dtype) for shape in self._shapes[:n]]
        with self._turn:  # programs may ask from several threads
            for i, row in enumerate(rows.reshape(-1, rows.shape[-1])):
                env = self._copy(row)
                seen, *rest = does(env, *(each[i] for each in args))
                found[0][i] = self._layout.pack(self.adapter.get_state(env))
                if n > 1:
                    found[1][i] = self._observations.row(seen)
                for values, value in zip(found[2:], rest, strict=True):
                    values[i] = value
        return tuple(values.reshape((*batch, *values.shape[1:])) for values in found)

    def _copy(self, row: np.ndarray) -> Env:
        """Returns the copy with these parameters, which no other call changes."""
        key = row.tobytes()
        if key not in self._copies:
            if len(self._copies) >= COPIES:
                del self._copies[next(iter(self._copies))]
            self._copies[key] = copy_of(self._model)
            named = {name: float(str(value)) for name, value in zip(self._params._fields, row, strict=True)}
            self.adapter.set_params(self._copies[key], named)
        return self._copies[key]

    def _refuse_random_steps(self) -> None:
        env = copy_of(self._model)
        generator = innermost(env).np_random.bit_generator
        for t in range(TRIED):
            before = generator.state
            ended = any(env.step(np.int64(t // 3 % self.n_actions + self._first))[2:4])
            if generator.state != before:
                raise ValueError(
                    f"{env} draws random numbers in its steps, expected steps that follow from state, action and "
                    "parameters: beliefs compare predictions of members. Learn in an environment without noise; a "
                    "deployment may be noisy, and estimates the noise itself."
                )
            if ended:
                env.reset()


def _params_type(name: str, fields: Mapping[str, float]) -> Any:
    return namedtuple(name, fields)


def _time_limit(env: Env) -> int:
    for each in wrappers(env):
        if isinstance(each, gymnasium.wrappers.TimeLimit):
            return int(each._max_episode_steps)
    raise ValueError(
        f"{env} has no time limit, expected one, after which an episode of a simulated life is truncated: "
        "gymnasium.wrappers.TimeLimit(env, steps)."
    )


@dataclass(frozen=True)
class _Layout:
    """Converts a state, nested containers of numbers and arrays, to a row of words and back."""

    tree: Any
    parts: tuple[tuple[np.dtype[Any], tuple[int, ...], type | None], ...]  # the type of a number that is no array

    @staticmethod
    def of(state: Any, name: str) -> _Layout:
        leaves, tree = jax.tree.flatten(state)
        for leaf in leaves:
            if np.asarray(leaf).dtype.kind not in "biuf":
                raise ValueError(
                    f"The state of {name} holds {leaf!r:.60}, a {type(leaf).__name__}, expected numbers and arrays of "
                    "them in dicts, lists and tuples: get and set it as such, in an adapter if needed."
                )
        arrays = [np.asarray(leaf) for leaf in leaves]
        kinds = [None if isinstance(leaf, np.ndarray) else type(leaf) for leaf in leaves]
        return _Layout(tree, tuple((a.dtype, a.shape, kind) for a, kind in zip(arrays, kinds, strict=True)))

    @property
    def words(self) -> int:
        return -(-sum(dtype.itemsize * int(np.prod(shape)) for dtype, shape, _ in self.parts) // 4)

    def pack(self, state: Any) -> np.ndarray:
        leaves, tree = jax.tree.flatten(state)
        if tree != self.tree:
            raise ValueError(f"get_state() gave {tree}, expected {self.tree} as at first: the same parts at all times.")
        data = b""
        for leaf, (dtype, shape, _) in zip(leaves, self.parts, strict=True):
            part = np.asarray(leaf)
            if part.shape != shape or not np.can_cast(part.dtype, dtype):
                raise ValueError(
                    f"get_state() gave {leaf!r:.60} of shape {part.shape} and type {part.dtype}, expected {shape} and "
                    f"{dtype} as at first: numbers must not change their type, nor arrays their shape."
                )
            data += part.astype(dtype).tobytes()
        return np.frombuffer(data.ljust(4 * self.words, b"\0"), np.uint32)

    def unpack(self, words: np.ndarray) -> Any:
        data, leaves, start = np.ascontiguousarray(words).tobytes(), [], 0
        for dtype, shape, kind in self.parts:
            count = int(np.prod(shape))
            part = np.frombuffer(data, dtype, count, start).reshape(shape).copy()
            leaves.append(part if kind is None else kind(part.item()))
            start += dtype.itemsize * count
        return jax.tree.unflatten(self.tree, leaves)
