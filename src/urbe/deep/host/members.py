"""Members of an uncertainty set, seen from a Gymnasium environment: where each would have led instead.

A robust target needs, for the state the environment is in and the action it is about to take, what every member of the
set would lead to. Copies of the environment can tell (`urbe.deep.host.member_envs`), a simulator of ours, or a
function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from urbe import checks
from urbe.deep.host.env import Env, host_env, innermost
from urbe.simulators import Simulator, SimulatorEnv, UncertaintySet
from urbe.simulators.base import Params, State
from urbe.simulators.limits import param_dict

NOBODY = -1
"""No member is known to be the one in force."""


class Outlook(NamedTuple):
    """What an action leads to under each of K members, with J outcomes each.

    Attributes:
      in_force: the member that the environment itself is, where that is known and nothing is random: for it, what is
        observed is taken, to the last bit.
    """

    probability: Float[np.ndarray, "K J"]
    obs: Float[np.ndarray, "K J D"]
    reward: Float[np.ndarray, "K J"]
    terminated: Bool[np.ndarray, "K J"]
    in_force: int = NOBODY


@runtime_checkable
class Members(Protocol):
    """K ways in which an environment may behave."""

    @property
    def outcomes(self) -> int:
        """J, how many outcomes each member lists; 1 where it acts and sees."""

    def successors(self, env: Env | None, obs: Float[np.ndarray, " D"], action: int) -> Outlook:
        """What each leads to.

        Args:
          env: the environment, about to take the action; None where it runs out of reach, in another process.
          obs: what is seen of it, as a row of numbers.
          action: as the environment counts.
        """

    def only(self, places: Sequence[int]) -> Members:
        """Some of the members, in the order given."""

    def describe(self) -> dict[str, Any]:
        """What they are, in plain data."""

    def __len__(self) -> int: ...


Function = Callable[[Float[np.ndarray, " D"], int], tuple[Any, Any, Any]]


class FunctionMembers:
    """Members by a function `(obs (D,), action) -> (obs (K, D), reward (K,), terminated (K,))`.

    For environments whose state is what is seen of it, or whose dynamics are known in another way.

    Args:
      function: takes an observation as a row of numbers and an action as the environment counts it.
      count: K.
    """

    def __init__(self, function: Function, count: int) -> None:
        self.function, self.count = function, checks.whole_number("count", count, 1)
        self._places = list(range(count))

    @property
    def outcomes(self) -> int:
        """One each."""
        return 1

    def successors(self, env: Env | None, obs: Float[np.ndarray, " D"], action: int) -> Outlook:  # noqa: ARG002
        """What the function says."""
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
        return Outlook(
            np.ones((len(self), 1), np.float32),
            reached.astype(np.float32)[:, None],
            reward.astype(np.float32)[:, None],
            terminated.astype(bool)[:, None],
        )

    def only(self, places: Sequence[int]) -> FunctionMembers:
        """Some of them; the function still computes all."""
        some = FunctionMembers(self.function, self.count)
        some._places = [self._places[k] for k in places]
        return some

    def describe(self) -> dict[str, Any]:
        """The function's name."""
        told = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return {"kind": "function", "function": told, "members": self._places}

    def __len__(self) -> int:
        return len(self._places)


class SimulatorMembers:
    """Members of one of our simulators behind Gymnasium's interface: all outcomes of each, by `jax.vmap`.

    Args:
      simulator: of the environment.
      uncertainty: its parameters.
    """

    def __init__(self, simulator: Simulator, uncertainty: UncertaintySet) -> None:
        expected = simulator.nominal()._fields
        if uncertainty.names != expected:
            raise ValueError(
                f"The uncertainty set has the parameters {', '.join(uncertainty.names)}, expected those of "
                f"{type(simulator).__name__}: {', '.join(expected)}."
            )
        self.simulator, self.uncertainty = simulator, uncertainty
        self._place = {tuple(param_dict(each).values()): k for k, each in enumerate(uncertainty.members())}
        state = jax.eval_shape(simulator.start, jax.random.key(0), simulator.nominal())
        found = jax.eval_shape(simulator.outcomes, state, np.int32(0), simulator.nominal())
        self._outcomes = int(found.probability.shape[0])

    @property
    def outcomes(self) -> int:
        """As many as the simulator has."""
        return self._outcomes

    def successors(self, env: Env | None, obs: Float[np.ndarray, " D"], action: int) -> Outlook:  # noqa: ARG002
        """From the environment's own state."""
        assert env is not None
        inner = innermost(env)
        assert isinstance(inner, SimulatorEnv)
        found = _outlook(self.simulator, self.uncertainty.params, inner.get_state(), np.int32(action))
        probability, seen, reward, terminated = jax.device_get(found)
        now = self._place.get(tuple(inner.get_params().values()), NOBODY) if self._outcomes == 1 else NOBODY
        return Outlook(probability, seen, reward, terminated, now)

    def only(self, places: Sequence[int]) -> SimulatorMembers:
        """Some of them."""
        return SimulatorMembers(self.simulator, self.uncertainty.only(list(places)))

    def describe(self) -> dict[str, Any]:
        """Their parameters."""
        return {"kind": "simulator", **self.uncertainty.describe()}

    def __len__(self) -> int:
        return len(self.uncertainty)


@partial(jax.jit, static_argnums=0)
def _outlook(
    simulator: Simulator, params: Params, state: State, action: Int[Array, ""]
) -> tuple[Array, Array, Array, Array]:
    found = jax.vmap(lambda one: simulator.outcomes(state, action, one))(params)
    return found.probability, jax.vmap(jax.vmap(simulator.observe))(found.state), found.reward, found.terminated


def check_members(
    env: Env, members: Members, rng: np.random.Generator, *, steps: int = 256, tolerance: float = 0.0
) -> Float[np.ndarray, "K K"]:
    """Holds members to their purpose: every two lead somewhere else from some state.

    Args:
      env: one to walk through by random actions; it is reset, so give one that nobody is using.
      members: of it.
      rng: of the random actions.
      steps: how many states to try.
      tolerance: differences up to this do not count.

    Returns:
      the largest difference in probability, observation, reward or termination found between every two.

    Raises:
      ValueError: naming members that never differ.
    """
    checks.whole_number("steps", steps, 1)
    checks.number("tolerance", tolerance, 0.0, np.inf, closed=False)
    one = host_env(env)
    if one.count != 1:
        raise ValueError(f"env is a vector of {one.count} environments, expected a single one.")
    obs, apart = one.reset([int(rng.integers(2**31))])[0], np.zeros((len(members), len(members)))
    for _ in range(steps):
        action = int(rng.integers(one.n_actions))
        outlook = members.successors(env, obs, action + one.start)
        for part in outlook[:4]:
            flat = np.asarray(part, np.float64).reshape(len(members), -1)
            apart = np.maximum(apart, np.abs(flat[:, None] - flat[None]).max(axis=-1))
        first = one.step([action], [False])[0].first
        assert first is not None  # a single environment always knows
        obs = first
    alike = [(i, j) for i in range(len(members)) for j in range(i) if not apart[i, j] > tolerance]
    if alike:
        raise ValueError(_complaint(members, sorted((j, i) for i, j in alike), steps))
    return apart


def _complaint(members: Members, pairs: list[tuple[int, int]], steps: int) -> str:
    columns: dict[str, list[float]] = members.describe().get("parameters", {})

    def told(i: int, j: int) -> str:
        names = [name for name, column in columns.items() if column[i] != column[j]]
        if not names:
            return f"{i} and {j}"
        return " and ".join(f"{k} ({', '.join(f'{name} {columns[name][k]}' for name in names)})" for k in (i, j))

    total = len(members) * (len(members) - 1) // 2
    return (
        f"{len(pairs)} of {total} pairs of members lead to the same in all of {steps} states, expected every two to "
        f"differ somewhere: {checks.listing([told(i, j) for i, j in pairs])}. Either they are duplicates, or what "
        "differs between them never reaches the environment (or only its start, or only states not tried)."
    )
