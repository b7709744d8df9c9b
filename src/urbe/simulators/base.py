"""The protocol of simulators: pure functions of a state, an action and named parameters.

Parameters are a NamedTuple of numbers, so a set of simulators is the same NamedTuple with an array in each place, and
`jax.vmap` runs all of them. Randomness is a choice among J outcomes whose probabilities are known:

    outcomes(s, a, theta) = ((p_1, s'_1, r_1, end_1), ..., (p_J, s'_J, r_J, end_J)),   J fixed per simulator

so that the same code lets a step draw an outcome, a robust target take the exact expectation under each member, and a
finite simulator give its transition kernel.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

State = Any
"""A pytree of arrays: the complete state of a simulator, except the time."""

Params = Any
"""A NamedTuple of numbers; each member of an uncertainty set is one."""

Key = jax.Array


class Outcomes(NamedTuple):
    """The possible outcomes of an action, along the first axis of every leaf."""

    probability: Float[Array, " J"]
    state: State
    reward: Float[Array, " J"]
    terminated: Bool[Array, " J"]


class Arrival(NamedTuple):
    """The outcome of an action."""

    state: State
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]


@runtime_checkable
class Simulator(Protocol):
    """A frozen dataclass of fixed settings (rewards, sizes, time limit); `Params` may be perturbed.

    All methods are pure, unbatched and traceable. `terminated` means that nothing follows; the time limit truncates
    episodes and is handled by the code that runs the simulator.
    """

    @property
    def n_actions(self) -> int:
        """The number of actions, which are numbered from 0."""

    @property
    def time_limit(self) -> int:
        """Steps after which an episode is truncated."""

    def nominal(self) -> Params:
        """The nominal parameters, float32 numbers."""

    def start(self, key: Key, params: Params) -> State:
        """Draws the first state of an episode."""

    def outcomes(self, state: State, action: Int[Array, ""], params: Params) -> Outcomes:
        """All possible outcomes of an action."""

    def observe(self, state: State) -> Float[Array, " D"]:
        """The observation of a state: float32 numbers."""


def step(simulator: Simulator, key: Key, state: State, action: Int[Array, ""], params: Params) -> Arrival:
    """Takes one step: draws one of the outcomes with its probability.

    The key is consumed. A simulator with a single outcome needs none and ignores it.
    """
    found = simulator.outcomes(state, action, params)
    if found.probability.shape[0] == 1:
        chosen: Any = 0
    else:
        # inversion: outcomes of probability zero are never drawn, and all parameters use a key in the same way
        below = jnp.cumsum(found.probability)[:-1]
        chosen = jnp.sum(jax.random.uniform(key, dtype=jnp.float32) >= below)
    return Arrival(jax.tree.map(lambda leaf: leaf[chosen], found.state), found.reward[chosen], found.terminated[chosen])


def observation_size(simulator: Simulator) -> int:
    """D, the length of an observation."""
    (size,) = jax.eval_shape(
        lambda key: simulator.observe(simulator.start(key, simulator.nominal())), jax.random.key(0)
    ).shape
    return int(size)


def members(params: Params) -> int:
    """K, the number of simulators in a batch of parameters."""
    return int(jax.tree.leaves(params)[0].shape[0])
