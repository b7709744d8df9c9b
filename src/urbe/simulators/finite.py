"""Convert simulators with numbered states to exact tabular models.

`to_mdp` evaluates all outcomes of all pairs and returns P(s, a, s') and r(s, a, s') in float64. Over a set of
parameters, `scenarios` gives the robust problem

    V(s) = max_a min_k sum_s' P_k(s, a, s') [r(s, a, s') + gamma V(s')]

with exact expectations within a member, and a worst member for each pair: the problem that a robust deep agent
approximates, solved by `urbe.solve` with certified bounds.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from urbe import checks
from urbe.simulators.base import Outcomes, Params, Simulator
from urbe.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:  # compiled code, loaded only when a model is built
    from urbe.ambiguity.scenarios import Scenarios
    from urbe.mdp.model import MDP
    from urbe.simulators.uncertainty import UncertaintySet

ROW_TOLERANCE = 1e-5
"""Tolerance for sums of float32 probabilities, which are rescaled."""


class FiniteSimulator(Simulator, Protocol):
    """A simulator whose state is an int32 number below `n_states`.

    A terminal state is always entered with `terminated` and never left. `outcomes` and `start_distribution` should
    return float64 if the parameters are float64, that is, `jnp.result_type(*params, jnp.float32)`: models are then
    exact.
    """

    @property
    def n_states(self) -> int:
        """The number of states, including terminal ones."""

    def available(self) -> BoolArray:
        """`(S, A)` the available actions; terminal states are ignored."""

    def start_distribution(self, params: Params) -> Float[Array, " S"]:
        """The distribution of `start`."""


class RobustModel(NamedTuple):
    """A model and the choices of nature: `urbe.solve(*robust_model)`.

    Attributes:
      mdp: the first member, or the nominal one if it is a member; lists every successor possible under some member.
      nature: the members, as scenarios.
    """

    mdp: MDP
    nature: Scenarios


def to_mdp(simulator: FiniteSimulator, params: Params, *, discount: float) -> MDP:
    """Builds the model of a finite simulator under given parameters, without successors of probability zero.

    Args:
      simulator: the simulator. Its time limit is not part of the model.
      params: its parameters; plain numbers are taken at full precision.
      discount: in [0, 1].

    Raises:
      ValueError: probabilities are not a distribution, or a state is terminal only sometimes.

    >>> from urbe.simulators import MarsRover, MarsRoverParams
    >>> to_mdp(MarsRover(), MarsRoverParams(failure=0.2), discount=0.9)
    MDP(101 states (2 terminal), 396 rows, 576 entries, discount 0.9)
    """
    one = jax.tree.map(lambda leaf: np.reshape(leaf, 1), params)
    entries = _entries(simulator, one)
    return _model(simulator, entries, 0, discount)


def scenarios(simulator: FiniteSimulator, members: UncertaintySet, *, discount: float) -> RobustModel:
    """Builds the robust problem of a finite simulator over a set of parameters, for `urbe.solve`.

    Args:
      simulator: the simulator.
      members: the set of K members.
      discount: in [0, 1].

    Returns:
      the model and its scenarios; `urbe.solve(*scenarios(...))` is the exact robust optimum.

    Raises:
      ValueError: as for `to_mdp`, or rewards r(s, a, s') that differ between members.

    >>> import urbe
    >>> from urbe.simulators import MarsRover, UncertaintySet
    >>> rover = MarsRover()
    >>> wary = urbe.solve(*scenarios(rover, UncertaintySet.grid(rover, failure=(0.5, 1.0)), discount=0.9))
    >>> round(float(wary.value[0]), 6)
    -0.048
    """
    from urbe.ambiguity.scenarios import Scenarios

    entries = _entries(simulator, members.params)
    varies = entries.least_reward != entries.most_reward
    if varies.any():
        at = int(np.argmax(varies))
        raise ValueError(
            f"The reward of state {entries.state[at]}, action {entries.action[at]}, next state {entries.successor[at]} "
            f"is between {entries.least_reward[at]:g} and {entries.most_reward[at]:g}, depending on the member or the "
            "outcome, expected one number: nature chooses among transition rows, not among rewards. Keep parameters "
            "that change rewards at one value, or let outcomes of different rewards lead to different states."
        )
    mdp = _model(simulator, entries, members.nominal or 0, discount)
    return RobustModel(mdp, Scenarios(entries.probability))


class _Entries(NamedTuple):
    """Every transition possible under some member, by state, action and successor."""

    state: IntArray
    action: IntArray
    successor: IntArray
    probability: FloatArray  # (E, K)
    reward: FloatArray  # (E, K), average over a member's outcomes
    least_reward: FloatArray
    most_reward: FloatArray
    ends: IntArray
    start: FloatArray  # (K, S)


@partial(jax.jit, static_argnums=0)
def _ask(simulator: FiniteSimulator, params: Params) -> tuple[Outcomes, Array]:
    """All outcomes, leaves `(K, S, A, J)`, and the starts, `(K, S)`."""
    state = jnp.arange(simulator.n_states, dtype=jnp.int32)
    action = jnp.arange(simulator.n_actions, dtype=jnp.int32)
    over_actions = jax.vmap(simulator.outcomes, in_axes=(None, 0, None))
    over_states = jax.vmap(over_actions, in_axes=(0, None, None))
    over_members: Any = jax.vmap(over_states, in_axes=(None, None, 0))
    return over_members(state, action, params), jax.vmap(simulator.start_distribution)(params)


def _entries(simulator: FiniteSimulator, params: Params) -> _Entries:
    n_states, n_actions = simulator.n_states, simulator.n_actions
    with jax.enable_x64(True):
        exact = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), params)
        found, start = jax.tree.map(np.asarray, _ask(simulator, exact))
    available = checks.mask("available()", simulator.available(), (n_states, n_actions))
    checks.int_array("outcomes.state", found.state.ravel(), 0, n_states, "state")
    ends = np.unique(found.state[found.terminated])
    live = available & ~np.isin(np.arange(n_states), ends)[:, None]
    chance = _distributions(found.probability.astype(np.float64), live)
    goes_on = live[..., None] & (chance > 0.0) & ~found.terminated
    _ends_are_ends(found.state, goes_on & np.isin(found.state, ends))

    k, s, a, j = np.nonzero(live[..., None] & (chance > 0.0))
    t, p, r = (leaf[k, s, a, j] for leaf in (found.state.astype(np.int64), chance, found.reward.astype(np.float64)))
    key, entry = np.unique((s * n_actions + a) * n_states + t, return_inverse=True)
    shape = (len(key), len(start))
    probability, weighted = np.zeros(shape), np.zeros(shape)
    np.add.at(probability, (entry, k), p)
    np.add.at(weighted, (entry, k), p * r)
    least, most = np.full(len(key), np.inf), np.full(len(key), -np.inf)
    np.minimum.at(least, entry, r)
    np.maximum.at(most, entry, r)
    mean = weighted / np.where(probability == 0.0, 1.0, probability)
    row, successor = np.divmod(key, n_states)
    return _Entries(
        row // n_actions,
        row % n_actions,
        successor,
        probability,
        np.where((least == most)[:, None], least[:, None], mean),
        least,
        most,
        ends,
        start.astype(np.float64),
    )


def _model(simulator: FiniteSimulator, entries: _Entries, k: int, discount: float) -> MDP:
    from urbe.mdp.build import from_transitions

    start = entries.start[k]
    return from_transitions(
        entries.state,
        entries.action,
        entries.successor,
        entries.probability[:, k],
        entries.reward[:, k],
        discount=discount,
        n_states=simulator.n_states,
        terminal=entries.ends,
        initial=start / start.sum() if abs(start.sum() - 1.0) < ROW_TOLERANCE else start,
    )


def _distributions(probability: FloatArray, live: BoolArray) -> FloatArray:
    """`(K, S, A, J)` probabilities, rescaled for live pairs so that they sum to one despite float32 rounding."""
    total = probability.sum(axis=-1, keepdims=True)
    wrong = live & ~((np.abs(total[..., 0] - 1.0) <= ROW_TOLERANCE) & (probability >= 0.0).all(axis=-1))
    if wrong.any():
        k, s, a = (int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"The outcomes of state {s}, action {a} have the probabilities {probability[k, s, a].tolist()} under "
            f"member {k}, expected a distribution. {checks.some(int(wrong.sum()), wrong.size, 'pair', 'pairs')} wrong; "
            "check that the parameters are in their range."
        )
    off = live[..., None] & (np.abs(total - 1.0) > 1e-12)
    scaled: FloatArray = probability / np.where(off, total, 1.0)
    return scaled


def _ends_are_ends(successor: IntArray, wrong: BoolArray) -> None:
    if wrong.any():
        k, s, a, j = np.argwhere(wrong)[0]
        raise ValueError(
            f"State {successor[k, s, a, j]} is terminal elsewhere, but is entered from state {s} by action {a} without "
            "`terminated`; expected a state to be terminal always or never. Give terminal states numbers of their own."
        )
