"""The seven states of [Derman2019] Fig. 2a as a simulator: a small safe reward, or one of three gambles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from urbe import checks
from urbe.simulators.base import Key, Outcomes
from urbe.simulators.limits import Number, check_nominal_params
from urbe.types import BoolArray

ODDS = (0.001, 0.8, 0.1, 0.9)
"""The probability that a gamble succeeds in each of the paper's four phases."""

SUCCESS = ((1, 2, 4, 5), (1,) * 4, (3,) * 4, (3,) * 4, (3,) * 4, (3,) * 4, (6,) * 4)
"""The successor of each action along solid edges; terminal states lead to themselves."""

FAILURE = {
    "direct": ((1, 2, 4, 5), (1,) * 4, (6,) * 4, (3,) * 4, (6,) * 4, (6,) * 4, (6,) * 4),
    "chain": ((1, 2, 4, 5), (1,) * 4, (4,) * 4, (3,) * 4, (5,) * 4, (6,) * 4, (6,) * 4),
}
"""The successor along dashed edges."""

PAYS = (0.0, 0.14, 0.0, 1.0, 0.0, 0.0, 0.0)
"""The reward of reaching each state."""

ENDS = (1, 3, 6)


class SevenStatesParams(NamedTuple):
    """The probability that each gamble succeeds, by the solid edges of states 2, 4 and 5."""

    success_2: Number = 0.8
    success_4: Number = 0.8
    success_5: Number = 0.8

    @staticmethod
    def alike(success: Number) -> SevenStatesParams:
        """The same probability for all three, as in the phases of the paper.

        >>> SevenStatesParams.alike(0.1)
        SevenStatesParams(success_2=0.1, success_4=0.1, success_5=0.1)
        """
        return SevenStatesParams(success, success, success)


@dataclass(frozen=True)
class SevenStates:
    """The same model as `urbe.library.seven_states`, which explains the two readings; the state is its number.

    In state 0 action 0 leads to state 1, and actions 1, 2, 3 to states 2, 4, 5, where all actions do the same.
    Observations are one-hot.

    Args:
      reading: meaning of the dashed edges: "direct" to state 6, or the "chain" 2 -> 4 -> 5 -> 6.
      time_limit: steps after which an episode is truncated; all end within four.
      nominal_params: the nominal parameters.

    >>> import jax.numpy as jnp
    >>> gamble = SevenStates("chain").outcomes(jnp.int32(4), jnp.int32(0), SevenStatesParams.alike(0.25))
    >>> gamble.probability.tolist(), gamble.state.tolist(), gamble.reward.tolist(), gamble.terminated.tolist()
    ([0.25, 0.75], [3, 5], [1.0, 0.0], [True, False])
    """

    reading: Literal["direct", "chain"] = "direct"
    time_limit: int = 4
    nominal_params: SevenStatesParams = SevenStatesParams()

    def __post_init__(self) -> None:
        checks.one_of("reading", self.reading, tuple(FAILURE))
        checks.whole_number("time_limit", self.time_limit, 1)
        check_nominal_params(self, self.nominal_params)

    @property
    def n_states(self) -> int:
        """Seven."""
        return 7

    @property
    def n_actions(self) -> int:
        """The number of actions in state 0; in other states all do the same."""
        return 4

    def nominal(self) -> SevenStatesParams:
        """`nominal_params`, as float32 numbers."""
        return SevenStatesParams(*map(jnp.float32, self.nominal_params))

    def check_params(self, params: Mapping[str, float]) -> None:
        """All are probabilities."""
        for name, value in params.items():
            checks.number(name, value, 0.0, 1.0)

    def observation_bounds(self) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " D"]]:
        """Zeros and ones."""
        return np.zeros(7, dtype=np.float32), np.ones(7, dtype=np.float32)

    def available(self) -> BoolArray:
        """Only state 0 has a choice."""
        actions = np.zeros((7, 4), dtype=np.bool_)
        actions[0], actions[:, 0] = True, True
        return actions

    def start_distribution(self, params: SevenStatesParams) -> Float[Array, " S"]:
        return jnp.zeros(7, jnp.result_type(*params, jnp.float32)).at[0].set(1)

    def start(self, key: Key, params: SevenStatesParams) -> Int[Array, ""]:
        """Starts in state 0."""
        return jnp.asarray(0, jnp.int32)

    def outcomes(self, state: Int[Array, ""], action: Int[Array, ""], params: SevenStatesParams) -> Outcomes:
        """Two outcomes: along the solid edge, or the dashed one. Terminal states are never left and pay nothing."""
        number = jnp.result_type(*params, jnp.float32)  # float64 where parameters are, so that models are exact
        sure, (p2, p4, p5) = jnp.asarray(1.0, number), (jnp.asarray(p, number) for p in params)
        success = jnp.stack((sure, sure, p2, sure, p4, p5, sure))[state]
        follow = jnp.asarray((SUCCESS, FAILURE[self.reading]), jnp.int32)[:, state, action]
        ended = jnp.asarray([s in ENDS for s in range(7)])
        return Outcomes(
            probability=jnp.stack((success, 1 - success)),
            state=follow,
            reward=jnp.where(ended[state], 0, jnp.asarray(PAYS, number)[follow]),
            terminated=ended[follow],
        )

    def observe(self, state: Int[Array, ""]) -> Float[Array, " D"]:
        """One-hot."""
        return (jnp.arange(7, dtype=jnp.int32) == state).astype(jnp.float32)
