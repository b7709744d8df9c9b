"""Optional protocols of simulators on limits and states, and changes of parameters by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from urbe import checks
from urbe.simulators.base import Key, Params, Simulator, State

Number = Float[Array, "..."] | float
"""A parameter; in a set of simulators, one for each member."""


@runtime_checkable
class Bounded(Protocol):
    """A simulator whose observations stay within limits, for all parameters and states."""

    def observation_bounds(self) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " D"]]:
        """The lowest and the highest observation, float32, both included."""


@runtime_checkable
class Checked(Protocol):
    """A simulator that checks the range of its parameters."""

    def check_params(self, params: Mapping[str, float]) -> None:
        """Raises ValueError if one of the parameters, finite numbers by name, is out of its range."""


@runtime_checkable
class Numbered(Protocol):
    """A simulator whose state is a whole number."""

    @property
    def n_states(self) -> int:
        """States are numbered from 0 to n_states - 1."""


@runtime_checkable
class Recoverable(Protocol):
    """A simulator whose state follows from its observation."""

    def state_of(self, obs: Float[Array, " D"]) -> State:
        """The state with this observation; traceable."""


def recover_state(simulator: Simulator, obs: Float[Array, " D"]) -> State:
    """The state with this observation: the simulator's own answer or, if states are numbered, the nearest one.

    Raises:
      ValueError: the simulator can do neither.
    """
    if isinstance(simulator, Recoverable):
        return simulator.state_of(obs)
    if isinstance(simulator, Numbered):
        each = jax.vmap(simulator.observe)(jnp.arange(simulator.n_states, dtype=jnp.int32))
        middle = each.mean(axis=0)  # |o_s - o|^2 = |o_s|^2 - 2 o_s . o + |o|^2, centred to avoid cancellation
        near = (each - middle) @ (obs - middle) - 0.5 * ((each - middle) ** 2).sum(axis=-1)
        return near.argmax().astype(jnp.int32)
    raise ValueError(unrecoverable(simulator))


def unrecoverable(simulator: Simulator) -> str | None:
    """Why states cannot be recovered from observations; None if they can."""
    if isinstance(simulator, Recoverable | Numbered):
        return None
    return (
        f"{type(simulator).__name__} cannot recover a state from an observation, expected a method state_of(obs), "
        "or states that are numbered (n_states)."
    )


@runtime_checkable
class Continuing(Protocol):
    """A simulator whose states remember something beyond the end of an episode, such as `Stacked`."""

    def restart(self, key: Key, params: Params, state: State) -> State:
        """Draws the first state of the episode after one that ended in `state`. The key is consumed."""


def restart(simulator: Simulator, key: Key, params: Params, state: State) -> State:
    """Draws the first state of the next episode: by `simulator.restart` if it exists, else by `simulator.start`."""
    if isinstance(simulator, Continuing):
        return simulator.restart(key, params, state)
    return simulator.start(key, params)


def observation_bounds(simulator: Simulator, size: int) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " D"]]:
    """The simulator's own limits, or those of float32, since Gymnasium warns of infinite ones."""
    if isinstance(simulator, Bounded):
        return simulator.observation_bounds()
    most = np.full(size, np.finfo(np.float32).max, dtype=np.float32)
    return -most, most


def param_dict(params: Params) -> dict[str, float]:
    """The parameters of one simulator by name, as the shortest decimals that round to these float32 numbers.

    >>> from urbe.simulators import CartPole
    >>> param_dict(CartPole().nominal())["masspole"]
    0.1
    """
    return {name: float(str(np.float32(value))) for name, value in params._asdict().items()}


def check_nominal_params(simulator: Checked, nominal_params: Params) -> None:
    """Raises ValueError if the nominal parameters do not belong to the simulator."""
    for name, value in nominal_params._asdict().items():
        checks.finite_number(f"nominal_params.{name}", value)
    simulator.check_params(param_dict(nominal_params))


def check_schedule(simulator: Simulator, schedule: Any) -> None:
    """Raises unless a schedule begins with parameters of the simulator, in their range if it checks that."""
    fits = all(callable(getattr(schedule, name, None)) for name in ("begin", "next", "params"))
    checks.kind("schedule", schedule, fits, "a schedule such as StepChange(((100, params), (100, others)))")
    first, expected = schedule.params(schedule.begin(jax.random.key(0))), simulator.nominal()._fields
    found = getattr(first, "_fields", ("none",))
    if found != expected:
        raise ValueError(
            f"schedule has the parameters {checks.listing(found, 20)}, expected those of {type(simulator).__name__}: "
            f"{checks.listing(expected, 20)}."
        )
    try:
        for name, value in first._asdict().items():
            checks.finite_number(name, np.asarray(value))
        if isinstance(simulator, Checked):
            simulator.check_params(param_dict(first))
    except ValueError as error:
        raise ValueError(f"The first parameters of schedule: {error}") from None


def with_params(simulator: Simulator, params: Params, named: Mapping[str, Any]) -> Params:
    """Returns `params` with some of them changed, float32; raises ValueError for an invalid name or number.

    >>> from urbe.simulators import CartPole
    >>> float(with_params(CartPole(), CartPole().nominal(), {"half_length": 0.75}).half_length)
    0.75
    """
    unknown = [name for name in named if name not in params._fields]
    if unknown:
        raise ValueError(
            f"{checks.listing([repr(name) for name in unknown])} {'is' if len(unknown) == 1 else 'are'} not among the "
            f"parameters of {type(simulator).__name__}, which are {checks.listing(params._fields, 20)}."
        )
    most = float(np.finfo(np.float32).max)
    numbers = {
        name: checks.number(name, checks.finite_number(name, value), -most, most) for name, value in named.items()
    }
    changed = params._replace(**{name: np.float32(number) for name, number in numbers.items()})
    if isinstance(simulator, Checked):
        simulator.check_params(param_dict(changed))
    return jax.tree.map(jnp.float32, changed)
