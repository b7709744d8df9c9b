"""The host loop's program on the device: learn from transitions, choose actions, and request their outcomes.

Transitions come as one array, a row per environment, so that a call has one input and one output array:

    [ present | reward | last | action | obs (D) | next obs to act from (D) | gain (K) | weight (K J) | obs (K J D) ]

Rows that are present come first and are passed to the pure update one after the other, as in the compiled loop; a
vector of n environments has n rows. So any number of rows is allowed, and splitting a run into calls changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32

from urbe.deep.core.finite import FiniteCheck, check_finite, init_finite_check
from urbe.deep.core.keys import as_key, key_data, root_key
from urbe.deep.core.learner import LearnerState, begin, init_learner, observe
from urbe.deep.core.once import jit_once
from urbe.deep.core.precision import double
from urbe.deep.core.replay import Successors, Transition
from urbe.deep.core.settings import Settings
from urbe.deep.loops.host.callback import call_host
from urbe.deep.loops.meters import Meters, add, init_meters

_PRESENT, _REWARD, _LAST, _ACTION, _HEADER = range(5)  # columns; the last is how many there are

NO_ACTION = -1
"""Replaces the action if a number was not finite."""


class ProgramShape(NamedTuple):
    """Sizes: of an observation (D), of the action set, of the uncertainty set (K), of a member's outcomes (J)."""

    obs_size: int
    n_actions: int
    members: int
    outcomes: int

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return _HEADER + 2 * self.obs_size + self.members * (1 + self.outcomes * (1 + self.obs_size))


class ProgramCarry(NamedTuple):
    """The state on the device between calls."""

    learner: LearnerState
    meters: Meters
    finite: FiniteCheck


Leaves = list[Array]
"""The arrays of a carry, with keys as plain words: calls with a flat list take a tenth less time than with a tree."""

Feed = Callable[[Leaves, Float[np.ndarray, "n W"], np.int32], Leaves]
First = Callable[[LearnerState, Float[np.ndarray, "n D"]], Array]


class CarryTree:
    """Flattens a carry into its arrays and restores it, on the device or outside.

    Args:
      settings: settings of the agent.
      shape: sizes.
    """

    def __init__(self, settings: Settings, shape: ProgramShape) -> None:
        with double():
            like = jax.eval_shape(lambda: init_carry(settings, root_key(0), shape))
        leaves, self._tree = jax.tree.flatten(like)
        self._keys = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]

    def flatten(self, carry: ProgramCarry) -> Leaves:
        """The arrays of a carry."""
        return jax.tree.leaves(key_data(carry))

    def unflatten(self, leaves: Leaves) -> ProgramCarry:
        """The carry of these arrays."""
        whole = list(leaves)
        for i in self._keys:
            whole[i] = as_key(whole[i])
        carry: ProgramCarry = jax.tree.unflatten(self._tree, whole)
        return carry


class Columns:
    """Rows under construction; each part is a view.

    Args:
      shape: sizes.
      count: n, the number of rows.
    """

    def __init__(self, shape: ProgramShape, count: int) -> None:
        d, k, j = shape.obs_size, shape.members, shape.outcomes
        self.rows = np.zeros((count, shape.width), np.float32)
        cuts = np.cumsum([_HEADER, d, d, k, k * j])
        _, obs, acting_obs, gain, weight, reached = np.split(self.rows, cuts, axis=1)
        self.present, self.reward = self.rows[:, _PRESENT], self.rows[:, _REWARD]
        self.last, self.action = self.rows[:, _LAST], self.rows[:, _ACTION]
        self.obs, self.acting_obs, self.gain = obs, acting_obs, gain
        self.weight, self.reached = weight.reshape(count, k, j), reached.reshape(count, k, j, d)
        for part in (self.weight, self.reached):
            assert np.shares_memory(part, self.rows)


def init_carry(settings: Settings, key: jax.Array, shape: ProgramShape) -> ProgramCarry:
    """The carry before the first step. The key is consumed."""
    return ProgramCarry(init_learner(settings, key, *shape), init_meters(shape.members), init_finite_check())


@lru_cache(maxsize=32)
def make_start(settings: Settings, shape: ProgramShape) -> Callable[[jax.Array], Leaves]:
    """The compiled function that makes the leaves of the initial carry; it consumes its key."""
    tree = CarryTree(settings, shape)
    return jit_once(lambda key: tree.flatten(init_carry(settings, key, shape)))


@lru_cache(maxsize=32)
def make_first(settings: Settings) -> First:
    """The compiled function that chooses actions at the first observations."""
    return jit_once(partial(begin, settings))


@lru_cache(maxsize=32)
def make_feed(settings: Settings, shape: ProgramShape) -> Feed:
    """`(leaves, rows, ticket) -> leaves`, compiled; it consumes the leaves it is given.

    It learns from the rows, passes the next actions to the session of the ticket, and continues with the rows of the
    reply; it ends if none of them is present, or at the first number that is not finite, with `NO_ACTION` for that row
    and those after it.
    """
    tree = CarryTree(settings, shape)

    def more(carry: tuple[Array, ProgramCarry]) -> Bool[Array, ""]:
        rows, now = carry
        wanted: Array = (rows[0, _PRESENT] > 0.0) & (now.finite.kind == 0)
        return wanted

    @partial(jax.jit, donate_argnums=0)
    def feed(leaves: Leaves, rows: Float[Array, "n W"], ticket: Int32[Array, ""]) -> Leaves:
        def one(carry: tuple[Array, ProgramCarry]) -> tuple[Array, ProgramCarry]:
            after, actions = _take_in(settings, shape, carry[1], carry[0])
            return call_host(ticket, actions, shape.width), after

        return tree.flatten(jax.lax.while_loop(more, one, (rows, tree.unflatten(leaves)))[1])

    return feed


def _take_in(
    settings: Settings, shape: ProgramShape, carry: ProgramCarry, rows: Float[Array, "n W"]
) -> tuple[ProgramCarry, Int32[Array, " n"]]:
    """Learns from the present rows, one after the other, and returns the next action of each."""
    n = len(rows)

    def more(fed: tuple[Array, ProgramCarry, Array]) -> Bool[Array, ""]:
        at, now, _ = fed
        wanted: Array = (at < n) & (rows[jnp.minimum(at, n - 1), _PRESENT] > 0.0) & (now.finite.kind == 0)
        return wanted

    def one(fed: tuple[Array, ProgramCarry, Array]) -> tuple[Array, ProgramCarry, Array]:
        at, now, actions = fed
        transition, acting_obs, reward = _transition(shape, rows[at])
        learner, action, progress = observe(settings, now.learner, transition, acting_obs)
        finite = check_finite(
            now.finite, learner.step, acting_obs, reward, transition.successors, progress.loss, progress.w
        )
        chosen = jnp.where(finite.kind == 0, action[0], jnp.int32(NO_ACTION))
        return at + 1, ProgramCarry(learner, add(now.meters, progress), finite), actions.at[at].set(chosen)

    nothing = jnp.full(n, NO_ACTION, jnp.int32)
    _, after, actions = jax.lax.while_loop(more, one, (jnp.int32(0), carry, nothing))
    return after, actions


def _transition(
    shape: ProgramShape, row: Float[Array, " W"]
) -> tuple[Transition, Float[Array, "1 D"], Float[Array, ""]]:
    d, k, j = shape.obs_size, shape.members, shape.outcomes
    obs, acting_obs, gain, weight, reached = jnp.split(row[_HEADER:], np.cumsum([d, d, k, k * j]).tolist())
    successors = Successors(gain[None], weight.reshape(1, k, j), reached.reshape(1, k, j, d))
    action: Int[Array, " 1"] = row[_ACTION].astype(jnp.int32)[None]
    last = (row[_LAST] > 0.0)[None]
    return Transition(obs[None], action, successors, last), acting_obs[None], row[_REWARD]
