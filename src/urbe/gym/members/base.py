"""Members of an uncertainty set over a Gymnasium environment: the outcome of an action under each of them.

A robust target needs the outcome of the current state and action under every member of the set. It comes from copies of
the environment (`urbe.gym.members.copies`), a simulator of urbe, or a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from urbe import checks
from urbe.gym.kinds import Env, innermost
from urbe.gym.simulator_env import SimulatorEnv
from urbe.simulators import Simulator, UncertaintySet
from urbe.simulators.base import Params, State
from urbe.simulators.limits import param_dict

NOBODY = -1
"""The current member is unknown."""


class MemberOutcomes(NamedTuple):
    """The outcomes of an action under each of K members, J for each.

    Attributes:
      in_force: the member with the environment's own parameters, if it is known and deterministic: its outcome is
        replaced by the observed one, bit for bit.
    """

    probability: Float[np.ndarray, "K J"]
    obs: Float[np.ndarray, "K J D"]
    reward: Float[np.ndarray, "K J"]
    terminated: Bool[np.ndarray, "K J"]
    in_force: int = NOBODY


@runtime_checkable
class Members(Protocol):
    """K ways in which an environment may behave.

    Attributes:
      nominal: index of the member that is the unchanged environment, or None.
    """

    nominal: int | None

    def in_force(self, env: Env) -> int | None:
        """Index of the member with the environment's current parameters; None if it is unknown."""

    @property
    def outcomes(self) -> int:
        """J, the number of outcomes of each member; 1 if it is sampled."""

    def successors(self, env: Env | None, obs: Float[np.ndarray, " D"], action: int) -> MemberOutcomes:
        """Returns the outcomes under each member.

        Args:
          env: the environment before the action; None if it runs in another process.
          obs: its observation, as a row of numbers.
          action: the action, in the numbering of the environment.
        """

    def only(self, places: Sequence[int]) -> Members:
        """Selects some members, in the given order."""

    def describe(self) -> dict[str, Any]:
        """Describes the members, as plain data."""

    def __len__(self) -> int: ...


Function = Callable[[Float[np.ndarray, " D"], int], tuple[Any, Any, Any]]


class FunctionMembers:
    """Members by a function `(obs (D,), action) -> (obs (K, D), reward (K,), terminated (K,))`.

    For environments whose observation is the state, or whose dynamics are known otherwise.

    Args:
      function: a function of an observation as a row of numbers, and an action in the environment's numbering.
      count: K.
      nominal: index of the member that is the unchanged environment, if there is one; this is tested.
    """

    def __init__(self, function: Function, count: int, nominal: int | None = None) -> None:
        self.function, self.count = function, checks.whole_number("count", count, 1)
        if nominal is not None and not 0 <= nominal < count:
            raise ValueError(f"nominal is {nominal}, expected the place of a member, from 0 to {count - 1}, or None.")
        self.nominal = nominal
        self._places = list(range(count))

    def in_force(self, env: Env) -> int | None:
        """Returns the nominal member."""
        return self.nominal

    @property
    def outcomes(self) -> int:
        """The number of outcomes of each member, 1."""
        return 1

    def successors(self, env: Env | None, obs: Float[np.ndarray, " D"], action: int) -> MemberOutcomes:
        """Returns the outcomes that the function computes."""
        parts = self.function(np.array(obs), action)
        found = []
        for name, part, shape in zip(
            ("obs", "reward", "terminated"), parts, ((self.count, len(obs)), (self.count,), (self.count,)), strict=True
        ):
            array = np.asarray(part)
            if array.shape != shape:
                raise ValueError(f"function gave {name} of shape {array.shape}, expected {shape}.")
            found.append(array[self._places])
        reached, reward, terminated = found
        return MemberOutcomes(
            np.ones((len(self), 1), np.float32),
            reached.astype(np.float32)[:, None],
            reward.astype(np.float32)[:, None],
            terminated.astype(bool)[:, None],
        )

    def only(self, places: Sequence[int]) -> FunctionMembers:
        """Selects some members; the function still computes all."""
        some = FunctionMembers(self.function, self.count)
        some._places = [self._places[k] for k in places]
        some.nominal = next((k for k, place in enumerate(places) if place == self.nominal), None)
        return some

    def describe(self) -> dict[str, Any]:
        """Describes the members by the name of the function."""
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return {"kind": "function", "function": name, "members": self._places}

    def __len__(self) -> int:
        return len(self._places)


class SimulatorMembers:
    """Members of a simulator of urbe behind Gymnasium's interface: all outcomes of each, by `jax.vmap`.

    Args:
      simulator: the simulator of the environment.
      uncertainty: the set of its parameters.
    """

    def __init__(self, simulator: Simulator, uncertainty: UncertaintySet) -> None:
        expected = simulator.nominal()._fields
        if uncertainty.names != expected:
            raise ValueError(
                f"The uncertainty set has the parameters {', '.join(uncertainty.names)}, expected those of "
                f"{type(simulator).__name__}: {', '.join(expected)}."
            )
        self.simulator, self.uncertainty, self.nominal = simulator, uncertainty, uncertainty.nominal
        self._place = {tuple(param_dict(each).values()): k for k, each in enumerate(uncertainty.members())}
        state = jax.eval_shape(simulator.start, jax.random.key(0), simulator.nominal())
        found = jax.eval_shape(simulator.outcomes, state, np.int32(0), simulator.nominal())
        self._outcomes = int(found.probability.shape[0])

    def in_force(self, env: Env) -> int | None:
        """Finds the member with the environment's parameters."""
        return self._place.get(tuple(innermost(env).get_params().values()))

    @property
    def outcomes(self) -> int:
        """The number of outcomes of the simulator."""
        return self._outcomes

    def successors(self, env: Env | None, obs: Float[np.ndarray, " D"], action: int) -> MemberOutcomes:
        """The outcomes from the environment's own state."""
        assert env is not None
        inner = innermost(env)
        assert isinstance(inner, SimulatorEnv)
        found = _member_outcomes(self.simulator, self.uncertainty.params, inner.get_state(), np.int32(action))
        probability, seen, reward, terminated = jax.device_get(found)
        now = self.in_force(env) if self._outcomes == 1 else None
        return MemberOutcomes(probability, seen, reward, terminated, NOBODY if now is None else now)

    def only(self, places: Sequence[int]) -> SimulatorMembers:
        """Selects some members."""
        return SimulatorMembers(self.simulator, self.uncertainty.only(list(places)))

    def describe(self) -> dict[str, Any]:
        """The parameters of the members."""
        return {"kind": "simulator", **self.uncertainty.describe()}

    def __len__(self) -> int:
        return len(self.uncertainty)


@partial(jax.jit, static_argnums=0)
def _member_outcomes(
    simulator: Simulator, params: Params, state: State, action: Int[Array, ""]
) -> tuple[Array, Array, Array, Array]:
    found = jax.vmap(lambda one: simulator.outcomes(state, action, one))(params)
    return found.probability, jax.vmap(jax.vmap(simulator.observe))(found.state), found.reward, found.terminated
