"""Estimate the usual magnitude of each entry of an observation: the unit of network inputs and tolerated errors.

Positions may have magnitude 1 and velocities 0.01, and both matter. So every entry is divided by the root mean square
of its nonzero values in random play under all members, rounded to a power of two: division is then exact, and entries
that are 0 or 1, such as indicators, do not change.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32

from urbe.simulators import Simulator
from urbe.simulators.base import Params, State, step
from urbe.simulators.base import members as count

COPIES = 8
"""Number of random players of every member."""

STEPS = 500

CHANGE = 0.1
"""The probability per step that a player draws a new action: repeated actions reach more states."""


def observation_magnitude(simulator: Simulator, params: Params) -> Float[np.ndarray, " D"]:
    """`(D,)` powers of two; 1 for entries that are always 0, or whose squares over- or underflow.

    Args:
      simulator: the simulator.
      params: parameters of the members, a `(K,)` array in each place.
    """
    with jax.ensure_compile_time_eval():
        square, times = np.asarray(_met(simulator, params, jax.random.key(0)), np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.sqrt(square / times)
    usable = np.isfinite(size) & (size > 0.0)
    return np.exp2(np.log2(np.where(usable, size, 1.0)).round()).astype(np.float32)


@partial(jax.jit, static_argnums=0)
def _met(simulator: Simulator, params: Params, key: jax.Array) -> Float[Array, "2 D"]:
    """Sums of squares, and the numbers of nonzero values."""

    def play(params: Params, key: jax.Array) -> Float[Array, "2 D"]:
        for_start, for_steps = jax.random.split(key)
        state = simulator.start(for_start, params)
        nothing = jnp.zeros((2, *simulator.observe(state).shape), jnp.float32)
        begun = (state, jnp.int32(0), jnp.bool_(True), nothing)
        (_, _, _, met), _ = jax.lax.scan(partial(_step, simulator, params), begun, jax.random.split(for_steps, STEPS))
        return met

    keys = jax.random.split(key, (count(params), COPIES))
    return jax.vmap(jax.vmap(play, in_axes=(None, 0)))(params, keys).sum(axis=(0, 1))


def _step(
    simulator: Simulator,
    params: Params,
    at: tuple[State, Int32[Array, ""], Bool[Array, ""], Float[Array, "2 D"]],
    key: jax.Array,
) -> tuple[Any, None]:
    """Takes a random step, or restarts if the episode has ended."""
    state, held, draws_action, met = at
    for_action, for_step, for_start, for_change = jax.random.split(key, 4)
    drawn = jax.random.randint(for_action, (), 0, simulator.n_actions, jnp.int32)
    action = jnp.where(draws_action, drawn, held)
    found = step(simulator, for_step, state, action, params)
    seen = simulator.observe(found.state)
    met = met + jnp.stack([seen * seen, (seen != 0.0).astype(jnp.float32)])
    first = simulator.start(for_start, params)
    state = jax.tree.map(lambda begins, goes_on: jnp.where(found.terminated, begins, goes_on), first, found.state)
    return (state, action, jax.random.uniform(for_change) < CHANGE, met), None
