"""Wrap any simulator as a Gymnasium environment whose parameters can be read and changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from importlib import import_module
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from urbe import checks
from urbe.simulators import base
from urbe.simulators.base import Key, Params, Simulator, State
from urbe.simulators.limits import Numbered, observation_bounds, param_dict, with_params

Observation = Float[np.ndarray, " D"]
Words = UInt32[np.ndarray, " 2"]
"""The raw data of a key."""

ROUNDING = 1e-5
"""Tolerance for the sum of float32 probabilities of outcomes."""


class SimulatorEnv(gymnasium.Env[np.ndarray, np.integer[Any]]):
    """A simulator behind Gymnasium's interface, compiled and run on the CPU.

    Parameters are given at construction, changed by `set_params` at any time (from the next step on) or by
    `reset(options={"half_length": 3.0})` (from that reset on), and reported in `info["params"]` by every reset and
    step. `reset(options={"state": ...})` starts from any state.

    All randomness comes from the environment's own generator: `reset(seed=...)` with the same seed and the same actions
    gives the same bits. The environment never truncates an episode; `gymnasium.make` does so by `max_episode_steps`.

    Args:
      simulator: the simulator; hashable, like a frozen dataclass, so that equal ones are compiled once.
      params: parameters that differ from the nominal ones, by name.

    >>> from urbe.simulators import CartPole
    >>> env = SimulatorEnv(CartPole(), half_length=1.25)
    >>> observation, info = env.reset(seed=0)
    >>> info["params"]["half_length"], env.step(1)[1:4]
    (1.25, (1.0, False, False))
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, simulator: Simulator, **params: float) -> None:
        self.simulator = simulator
        self.action_space = gymnasium.spaces.Discrete(simulator.n_actions)
        bounds = observation_bounds(simulator, base.observation_size(simulator))
        self.observation_space = gymnasium.spaces.Box(*bounds, dtype=np.float32)
        self._take(with_params(simulator, simulator.nominal(), params))
        self._form: State = jax.eval_shape(partial(_start, simulator), np.zeros(2, np.uint32), self._params)[0]
        self._state: State = None
        self._words: Any = None
        self._count = 0

    def set_params(self, **named: float) -> None:
        """Changes some parameters and leaves the others.

        Raises:
          ValueError: a name is unknown or a number invalid; nothing is changed.
        """
        if named:
            self._take(with_params(self.simulator, self._params, named))

    def _take(self, params: Params) -> None:
        self._params, self._shown = jax.device_put(params, _cpu()), param_dict(params)

    def get_params(self) -> dict[str, float]:
        """All parameters by name, as the simulator has them: rounded to float32."""
        return dict(self._shown)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode.

        Args:
          seed: seed of all randomness from here on; None continues with the current generator.
          options: parameters to change, by name; and "state", the initial state, as from `get_state`.
        """
        super().reset(seed=seed)
        named = dict(options or {})
        given = named.pop("state", None)
        state = None if given is None else self._as_state(given)
        self.set_params(**named)
        self._words = jax.device_put(self.np_random.integers(2**32, size=2, dtype=np.uint32), _cpu())
        self._count = 0
        if state is None:
            self._state, seen = _start(self.simulator, self._words, self._params)
        else:
            self._state, seen = state, _observe(self.simulator, state)
        return np.array(seen), {"params": self.get_params()}

    def step(self, action: int | np.integer[Any]) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Acts once; `truncated` is always False here."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("There is no episode, or it has terminated: call reset before step.")
        if not self.action_space.contains(action):
            raise ValueError(f"action is {action!r}, expected one of {self.simulator.n_actions} from 0.")
        self._count += 1
        arrived, packed = _step(
            self.simulator, self._words, np.uint32(self._count), self._state, np.int32(action), self._params
        )
        numbers = np.array(packed)
        reward, terminated, sound = numbers[-3:].tolist()
        if not (sound and np.isfinite(numbers).all()):
            self._fail(numbers, int(action))
        self._state = None if terminated else arrived
        return numbers[:-3], reward, bool(terminated), False, {"params": self.get_params()}

    def get_state(self) -> State:
        """The state of the simulator as NumPy arrays, for `set_state`."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("There is no episode, or it has terminated: call reset first.")
        return jax.tree.map(np.array, self._state)

    def set_state(self, state: State) -> np.ndarray:
        """Sets the state within an episode, or after its end, and returns the observation.

        Later random steps are drawn again, even after a return to the same state.
        """
        if self._words is None:
            raise gymnasium.error.ResetNeeded('There is no episode: call reset, or reset(options={"state": ...}).')
        self._state = self._as_state(state)
        return np.array(_observe(self.simulator, self._state))

    def get_noise(self) -> np.ndarray:
        """The state of the episode's random numbers: the key of all its steps, and the number of steps."""
        if self._words is None:
            raise gymnasium.error.ResetNeeded("There is no episode: call reset first.")
        return np.array([*np.asarray(self._words), self._count], np.uint32)

    def set_noise(self, noise: np.ndarray) -> None:
        """Restores the random numbers from the result of `get_noise`."""
        words = np.asarray(noise, np.uint32)
        if words.shape != (3,):
            raise ValueError(f"noise has shape {words.shape}, expected (3,), as get_noise gives it.")
        self._words, self._count = jax.device_put(words[:2], _cpu()), int(words[2])

    def _as_state(self, state: State) -> State:
        """Converts a given state to the simulator's own form; raises naming the part that does not fit."""
        leaves, _ = jax.tree.flatten_with_path(self._form)
        form: Any = jax.tree.structure(self._form)
        try:
            given = form.flatten_up_to(state)  # a list may represent an array
        except ValueError as error:
            raise ValueError(f"state has another form than the simulator's, {form}: {error}") from None
        fitted = []
        for (path, leaf), value in zip(leaves, given, strict=True):
            name = f"state{jax.tree_util.keystr(path)}"
            array = checks.float_array(name, value)
            if array.shape != leaf.shape:
                raise ValueError(f"{name} has shape {array.shape}, expected {leaf.shape}, as get_state gives it.")
            cast = array.astype(leaf.dtype)
            if not jnp.issubdtype(leaf.dtype, jnp.floating) and (cast != array).any():
                raise ValueError(f"{name} is {value!r}, expected {leaf.dtype} numbers, as get_state gives them.")
            if isinstance(self.simulator, Numbered) and not 0 <= cast < self.simulator.n_states:
                raise ValueError(f"{name} is {value!r}, expected a number from 0 to {self.simulator.n_states - 1}.")
            fitted.append(cast)
        return jax.device_put(jax.tree.unflatten(form, fitted), _cpu())

    def _fail(self, numbers: Observation, action: int) -> None:
        self._state = None
        shown = ", ".join(f"{name}={value:g}" for name, value in self._shown.items())
        if not numbers[-1]:
            raise ValueError(
                f"The outcome probabilities of action {action} are not a distribution. The parameters were {shown}; "
                "expected some for which they are at least 0 and sum to 1."
            )
        raise ValueError(
            f"Action {action} led to an observation {numbers[:-3]} and a reward {numbers[-3]}, expected finite ones. "
            f"The parameters were {shown}; use parameters for which the dynamics stay finite."
        )


def make(simulator: str, **named: Any) -> SimulatorEnv:
    """The entry point of registered environments.

    Args:
      simulator: its address, `module:Class`; imported only now.
      named: fields of the simulator's dataclass, and parameters, by name.
    """
    module, _, name = simulator.partition(":")
    kind = getattr(import_module(module), name)
    elsewhere = ("time_limit", "nominal_params")  # kept by Gymnasium; given parameter by parameter
    choices = [field.name for field in fields(kind) if field.init and field.name not in elsewhere]
    if "time_limit" in named:
        raise ValueError(
            "time_limit is kept by Gymnasium: "
            f"gymnasium.make(..., max_episode_steps={named['time_limit']!r}) instead of time_limit."
        )
    chosen = kind(**{key: value for key, value in named.items() if key in choices})
    params = {key: value for key, value in named.items() if key not in choices}
    known = chosen.nominal()._fields
    unknown = [key for key in params if key not in known]
    if unknown:
        raise ValueError(
            f"{name} has no {checks.listing([repr(key) for key in unknown])}, expected one of its parameters "
            f"({checks.listing(known, 20)}) or of its fields ({checks.listing(choices, 20) or 'none'})."
        )
    return SimulatorEnv(chosen, **params)


@partial(jax.jit, static_argnums=0)
def _start(simulator: Simulator, words: Words, params: Params) -> tuple[State, Float[Array, " D"]]:
    state = simulator.start(_key(words, 0), params)
    return state, simulator.observe(state)


@partial(jax.jit, static_argnums=0)
def _observe(simulator: Simulator, state: State) -> Float[Array, " D"]:
    return simulator.observe(state)


@partial(jax.jit, static_argnums=0)
def _step(
    simulator: Simulator, words: Words, count: Int[Array, ""], state: State, action: Int[Array, ""], params: Params
) -> tuple[State, Float[Array, " D+3"]]:
    """The next state, and in one array (one transfer): observation, reward, terminated, and whether all is valid."""
    chances = simulator.outcomes(state, action, params).probability  # the compiler computes them once
    sound = jnp.all(chances >= 0.0) & (jnp.abs(jnp.sum(chances) - 1.0) <= ROUNDING)
    arrival = base.step(simulator, _key(words, count), state, action, params)
    packed = jnp.stack([arrival.reward, arrival.terminated.astype(jnp.float32), sound.astype(jnp.float32)])
    return arrival.state, jnp.concatenate([simulator.observe(arrival.state), packed])


def _cpu() -> jax.Device:
    return jax.local_devices(backend="cpu")[0]


def _key(words: Any, count: Any) -> Key:
    """The key of the episode's start (0) or of a step (1, 2, ...); named, so as not to follow JAX's settings."""
    return jax.random.fold_in(jax.random.wrap_key_data(words, impl="threefry2x32"), count)
