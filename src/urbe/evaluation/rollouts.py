"""Play many episodes of a traceable policy in a simulator in one compiled computation.

A block of episodes of one parameter runs until all of them have ended. Its shape does not depend on the grid, and the
place of an episode depends only on its number, so that results of a parameter are the same bits for every grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32, UInt32

from urbe.evaluation.adaptation import MemoryPolicy, Step
from urbe.evaluation.episodes import EpisodeDraws, keys, normal
from urbe.evaluation.policies import ActingRule, Traceable
from urbe.simulators import Arrival, Simulator, step
from urbe.simulators.base import Params, State

MOST = 256
"""Episodes that are played in parallel."""

FINE, BAD_REWARD, BAD_OBSERVATION = range(3)


class RolloutOutcome(NamedTuple):
    """The outcome of a block of B episodes: JAX arrays during computation, NumPy arrays afterwards.

    Attributes:
      episode_return: `(B,)` float64 sums of rewards.
      length: `(B,)` int32 steps.
      terminated: `(B,)` whether an episode terminated.
      fault: `(B,)` int32, `FINE` or a code for the array that was not finite in the last step.
    """

    episode_return: Any
    length: Any
    terminated: Any
    fault: Any

    def first(self, count: int) -> RolloutOutcome:
        """The outcome of the first `count` episodes."""
        return RolloutOutcome(*(part[:count] for part in self))


class _Block(NamedTuple):
    state: State
    obs: Float[Array, "B D"]
    alive: Bool[Array, " B"]
    outcome: RolloutOutcome
    step: Int32[Array, ""]


class _Remembered(NamedTuple):
    block: _Block
    memory: Any


def blocks(episodes: int, most: int = MOST) -> Iterator[tuple[int, int]]:
    """Yields (begin, end) of equal blocks, as few and as large as allowed; the last may extend beyond the end.

    >>> list(blocks(300))
    [(0, 150), (150, 300)]
    """
    count = -(-episodes // most)
    size = -(-episodes // count)
    return ((begin, begin + size) for begin in range(0, episodes, size))


def roll_out(
    policy: Traceable, simulator: Simulator, params: Params, drawn: EpisodeDraws, time_limit: int, *, noisy: bool
) -> RolloutOutcome:
    """Plays a block of episodes; returns NumPy arrays."""
    with jax.enable_x64(True):  # returns are summed in float64; all other arrays state their type
        found: RolloutOutcome = jax.device_get(
            _roll_out(policy.rule, simulator, noisy, policy.weights, params, drawn.world, drawn.noise,
                      np.int32(time_limit))
        )  # fmt: skip
    return found


@partial(jax.jit, static_argnums=(0, 1, 2))
def _roll_out(
    rule: ActingRule,
    simulator: Simulator,
    noisy: bool,
    weights: Any,
    params: Params,
    world: UInt32[Array, "B 2"],
    noise: UInt32[Array, "B 2"],
    time_limit: Int32[Array, ""],
) -> RolloutOutcome:
    def goes_on(block: _Block) -> Bool[Array, ""]:
        return block.alive.any() & (block.step < time_limit)

    def one(block: _Block) -> _Block:
        action = rule(weights, block.obs, normal(noise, block.step, simulator.n_actions) if noisy else None)
        return _moved(simulator, world, params, block, action)[0]

    return jax.lax.while_loop(goes_on, one, _first_block(simulator, world, params)).outcome


def _first_block(simulator: Simulator, world: UInt32[Array, "B 2"], params: Params) -> _Block:
    size = world.shape[0]
    no = jnp.zeros(size, jnp.bool_)
    nothing = RolloutOutcome(
        jnp.zeros(size, jnp.float64), jnp.zeros(size, jnp.int32), no, jnp.full(size, FINE, jnp.int32)
    )
    state = begin(simulator, world, params)
    return _Block(state, jax.vmap(simulator.observe)(state), ~no, nothing, jnp.int32(0))


def _moved(
    simulator: Simulator, world: UInt32[Array, "B 2"], params: Params, block: _Block, action: Int32[Array, " B"]
) -> tuple[_Block, Arrival]:
    """The block after a step, and what arrived."""
    so_far, alive = block.outcome, block.alive
    arrived = advance(simulator, world, block.step, block.state, action, params, alive)
    obs = jax.vmap(simulator.observe)(arrived.state)
    fault = _fault(obs, arrived.reward)
    outcome = RolloutOutcome(
        so_far.episode_return + jnp.where(alive, arrived.reward.astype(jnp.float64), 0.0),
        so_far.length + alive.astype(jnp.int32),
        so_far.terminated | (alive & arrived.terminated),
        jnp.where(alive, fault, so_far.fault),
    )
    goes = alive & ~arrived.terminated & (fault == FINE)
    return _Block(arrived.state, obs, goes, outcome, block.step + 1), arrived


def roll_out_with_memory(
    policy: MemoryPolicy[Any], simulator: Simulator, params: Params, drawn: EpisodeDraws, time_limit: int
) -> RolloutOutcome:
    """Plays a block of episodes, each with a memory that is empty at first; returns NumPy arrays."""
    with jax.enable_x64(True):  # as in `roll_out`
        found: RolloutOutcome = jax.device_get(
            _roll_out_with_memory(simulator, policy, params, drawn.world, drawn.noise, np.int32(time_limit))
        )
    return found


@partial(jax.jit, static_argnums=0)
def _roll_out_with_memory(
    simulator: Simulator,
    policy: MemoryPolicy[Any],
    params: Params,
    world: UInt32[Array, "B 2"],
    noise: UInt32[Array, "B 2"],
    time_limit: Int32[Array, ""],
) -> RolloutOutcome:
    def goes_on(now: _Remembered) -> Bool[Array, ""]:
        return now.block.alive.any() & (now.block.step < time_limit)

    def one(now: _Remembered) -> _Remembered:
        block = now.block
        action, memory = jax.vmap(policy.act)(now.memory, block.obs)
        after, arrived = _moved(simulator, world, params, block, action)
        cut = jnp.full(len(action), after.step >= time_limit)
        taken = Step(block.obs, action, arrived.reward, after.obs, arrived.terminated, cut & ~arrived.terminated)
        return _Remembered(after, jax.vmap(policy.observe)(memory, taken))

    first = _Remembered(_first_block(simulator, world, params), jax.vmap(policy.start)(keys(noise, 0)))
    return jax.lax.while_loop(goes_on, one, first).block.outcome


def begin(simulator: Simulator, world: UInt32[Array, "B 2"], params: Params) -> State:
    """The first states of episodes under the same parameters."""
    return jax.vmap(lambda key: simulator.start(key, params))(keys(world, 0))


def advance(
    simulator: Simulator,
    world: UInt32[Array, "B 2"],
    elapsed: Int32[Array, ""],
    state: State,
    action: Int32[Array, " B"],
    params: Params,
    alive: Bool[Array, " B"],
) -> Arrival:
    """Advances each episode by one step, after `elapsed` steps; ended episodes keep their state."""
    each: Any = jax.vmap(lambda key, s, a: step(simulator, key, s, a, params))
    arrived: Arrival = each(keys(world, elapsed + 1), state, action)
    return arrived._replace(state=jax.tree.map(partial(_where, alive), arrived.state, state))


def _fault(obs: Float[Array, "B D"], reward: Float[Array, " B"]) -> Int32[Array, " B"]:
    seen = jnp.where(jnp.isfinite(obs).all(axis=-1), FINE, BAD_OBSERVATION)
    return jnp.where(jnp.isfinite(reward), seen, BAD_REWARD).astype(jnp.int32)


def _where(alive: Bool[Array, " B"], new: Array, old: Array) -> Array:
    return jnp.where(alive.reshape(-1, *[1] * (new.ndim - 1)), new, old)
