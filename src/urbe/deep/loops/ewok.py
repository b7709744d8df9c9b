"""EWoK: an ordinary agent learns in the worst kernel near the nominal one, which its own values estimate [Gadot2024].

The kernel of a ball of KL divergence around P that is worst for the values V reweights P exponentially,

    P_worst(s' | s, a)  proportional to  P(s' | s, a) exp(-V(s') / kappa),

and is sampled without knowing P: draw n successors from P, keep the i-th with probability proportional to
exp(-V(s'_i) / kappa). A kappa of infinity is P itself; as kappa tends to 0 the worst of the n draws is kept.

Departure: V(s') is replaced by r + gamma (not terminated) V(s'), since rewards of urbe's simulators may depend on the
successor: a failure that costs 1 and ends the episode has V = 0 and would seem harmless. If rewards depend only on
(s, a), this is the rule above with kappa / gamma.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int32

from urbe import checks
from urbe.deep.core.networks import q_values
from urbe.deep.core.settings import Settings
from urbe.deep.loops.compiled import Begin, Loop, make_advance, make_begin
from urbe.simulators.base import Arrival, Key, Params, Simulator, State, members, step
from urbe.simulators.schedules import Schedule

_WHICH, _MEMBER = range(2)  # streams besides the draws themselves


@dataclass(frozen=True)
class WorstKernel:
    """EWoK's distribution of the outcomes of an action.

    Args:
      kappa: the temperature, above 0, in units of the return; infinity leaves the dynamics as they are.
      draws: n, the number of successors per step. One does not change the dynamics either.

    The paper has no default for all problems: kappa should have the size of the differences in value between
    successors.
    """

    kappa: float = 1.0
    draws: int = 5

    def __post_init__(self) -> None:
        checks.number("kappa", self.kappa, 0.0, float("inf"))
        if self.kappa == 0.0:
            raise ValueError("kappa is 0, expected a positive number. A tiny one, such as 1e-9, keeps the worst draw.")
        checks.whole_number("draws", self.draws, 1)

    def programs(
        self, settings: Settings, simulator: Simulator, schedule: Schedule | None, record_every: int
    ) -> tuple[Begin, Loop]:
        """The programs of DQN with these dynamics: members are drawn, and targets use the observed successor."""
        begin = make_begin(settings, simulator, schedule, record_every)
        return (lambda key, uncertain: begin(key, None)), make_advance(settings, simulator, schedule, self)

    def arrive(
        self,
        settings: Settings,
        q: Any,
        simulator: Simulator,
        key: Key,
        state: State,
        action: Int32[Array, ""],
        params: Params,
        uncertain: Params | None,
    ) -> Arrival:
        """Keeps one of `draws` successors, drawn under the current parameters or, with members, each under one."""
        if self.draws == 1 and uncertain is None:
            return step(simulator, key, state, action, params)
        found = _drawn(simulator, key, state, action, params, uncertain, self.draws)
        v = q_values(settings.network, q, jax.vmap(simulator.observe)(found.state)).max(axis=-1)
        worth = found.reward + jnp.float32(settings.discount) * jnp.where(found.terminated, 0.0, v)
        kept = keep(jax.random.fold_in(key, _WHICH), worth, self.kappa)
        arrival: Arrival = jax.tree.map(lambda leaf: leaf[kept], found)
        return arrival


def keep(key: Key, worth: Float[Array, " n"], kappa: float) -> Int[Array, ""]:
    """Chooses one draw with probability proportional to exp(-worth / kappa). The key is consumed."""
    smallest = float(np.finfo(np.float32).tiny)
    return jax.random.categorical(key, (worth.min() - worth) / jnp.float32(max(kappa, smallest)))


def _drawn(
    simulator: Simulator,
    key: Key,
    state: State,
    action: Int32[Array, ""],
    params: Params,
    uncertain: Params | None,
    count: int,
) -> Arrival:
    """Makes independent draws in parallel."""

    def one(i: Array) -> Arrival:
        own = jax.random.fold_in(jax.random.fold_in(key, _MEMBER), i)
        theta = params
        if uncertain is not None:
            which, own = jax.random.split(own)
            k = jax.random.randint(which, (), 0, members(uncertain), jnp.int32)
            theta = jax.tree.map(lambda leaf: leaf[k], uncertain)
        return step(simulator, own, state, action, theta)

    found: Arrival = jax.vmap(one)(jnp.arange(count, dtype=jnp.uint32))
    return found
