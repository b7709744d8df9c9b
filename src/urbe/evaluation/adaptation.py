"""Deployment under changing dynamics: policies with a memory, many lives in parallel, without gradient steps.

A *life* is a sequence of episodes whose parameters may change from one to the next. The memory of a policy (a belief, a
history, a hidden state) survives the end of an episode; its weights never change.

Random numbers of the environment depend only on the seed, the life, the episode and the step, so that all policies
meet the same initial states and the same noise.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32

from urbe import checks
from urbe.simulators.base import Key, Params, Simulator, State, step
from urbe.simulators.schedules import Schedule
from urbe.types import BoolArray, FloatArray, IntArray

Memory = TypeVar("Memory")
"""The memory of a policy: a pytree of arrays."""

_PATH, _POLICY, _WORLD = range(3)  # streams of random numbers
_START, _STEP, _NOISE = range(3)  # streams of an episode

_BLOCK = 10
"""Episodes per call of the compiled program, which lives of any length share."""


class Step(NamedTuple):
    """One transition as a policy sees it."""

    observation: Float[Array, " D"]
    action: Int32[Array, ""]
    reward: Float[Array, ""]
    next_observation: Float[Array, " D"]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@runtime_checkable
class MemoryPolicy(Protocol[Memory]):
    """A policy whose memory survives the episode.

    A policy is a pytree whose leaves are its weights, so that policies of one kind share a compiled program. All
    methods are pure, unbatched and traceable.
    """

    def start(self, key: Key) -> Memory:
        """The memory before the first episode. The key is consumed."""

    def act(self, memory: Memory, observation: Float[Array, " D"]) -> tuple[Int32[Array, ""], Memory]:
        """Returns the action, and the memory after choosing it."""

    def observe(self, memory: Memory, step: Step) -> Memory:
        """Returns the memory after a transition, including the last one of an episode."""

    def report(self, memory: Memory) -> dict[str, Array]:
        """Returns arrays to record at the end of every episode, by name: the belief, for example."""


class Deployments(NamedTuple):
    """The outcome of N lives of E episodes each.

    Attributes:
      episode_return: `(N, E)` sums of rewards.
      length: `(N, E)` steps.
      terminated: `(N, E)` whether the episode terminated, rather than being truncated by its time limit.
      params: the parameters of each episode, with `(N, E)` leaves.
      reports: the reports of the policy at the end of each episode; leaves are `(N, E, ...)`.
    """

    episode_return: FloatArray
    length: IntArray
    terminated: BoolArray
    params: Params
    reports: dict[str, np.ndarray]

    def __repr__(self) -> str:
        lives, episodes = self.length.shape
        parts = [
            f"{lives} x {episodes} episodes",
            f"mean return {self.episode_return.mean():.4g}",
            f"{self.length.mean():.4g} steps",
            f"{self.terminated.mean():.0%} terminated",
        ]
        return f"Deployments({', '.join(parts)}; reports: {', '.join(self.reports) or 'none'})"


class _Episode(NamedTuple):
    state: State
    observation: Float[Array, " D"]
    memory: Any
    total: Float[Array, ""]
    elapsed: Int32[Array, ""]
    terminated: Bool[Array, ""]
    finite: Bool[Array, ""]


class _Record(NamedTuple):
    """The record of every episode: JAX arrays during computation, NumPy arrays afterwards."""

    total: Any
    length: Any
    terminated: Any
    finite: Any
    reports: Any


def parameter_paths(schedule: Schedule, *, lives: int, episodes: int, seed: int) -> Params:
    """Returns the parameters of N lives of E episodes under a schedule, with `(N, E)` leaves.

    Lives differ if the schedule is random.
    """
    checks.whole_number("lives", lives, 1)
    checks.whole_number("episodes", episodes, 1)

    def life(key: Key) -> Params:
        begin, follow = jax.random.split(key)

        def one(carry: Any, episode_key: Key) -> tuple[Any, Params]:
            return schedule.next(carry, episode_key), schedule.params(carry)

        return jax.lax.scan(one, schedule.begin(begin), jax.random.split(follow, episodes))[1]

    root = jax.random.fold_in(jax.random.key(checks.whole_number("seed", seed, 0)), _PATH)
    paths: Params = jax.device_get(jax.jit(jax.vmap(life))(jax.random.split(root, lives)))
    return paths


def deploy_lives(
    policy: MemoryPolicy[Any],
    simulator: Simulator,
    params: Params,
    *,
    seed: int,
    time_limit: int | None = None,
    observation_noise: float = 0.0,
    in_turn: bool = False,
) -> Deployments:
    """Plays N lives of E episodes with one policy.

    Args:
      policy: a pytree.
      simulator: the environment.
      params: the parameters of every episode, `(N, E)` leaves; see `parameter_paths`.
      seed: seed of all random numbers.
      time_limit: steps after which an episode is truncated; None for the simulator's limit.
      observation_noise: standard deviation of normal noise on the observations.
      in_turn: play one life after the other, with the same random numbers and with 64-bit types: for policies that
        keep on learning, whose memory is large.

    Raises:
      ValueError: an observation or a reward is not finite; the message names the life and the episode.
    """
    shapes = {np.shape(leaf) for leaf in jax.tree.leaves(params)}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2:
        raise ValueError(
            f"params has leaves of the shapes {sorted(shapes)}, expected one shape (lives, episodes) for all; build "
            "them with parameter_paths(schedule, lives=..., episodes=..., seed=...)."
        )
    limit = simulator.time_limit if time_limit is None else checks.whole_number("time_limit", time_limit, 1)
    noise = checks.number("observation_noise", observation_noise, 0.0, np.inf)
    lives, episodes = next(iter(shapes))
    blocks = []
    with jax.enable_x64(checks.flag("in_turn", in_turn)):
        key = jax.random.key(checks.whole_number("seed", seed, 0))
        keys, memory = _begin(policy, key, lives, episodes)
        for first in range(0, episodes, _BLOCK):
            block = slice(first, first + _BLOCK)
            held = jax.tree.map(lambda leaf, block=block: jnp.asarray(leaf)[:, block], params)
            memory, record = _play(
                simulator,
                noise > 0.0,
                in_turn,
                policy,
                memory,
                keys[:, block],
                held,
                jnp.int32(limit),
                jnp.float32(noise),
            )
            blocks.append(record)
    found: _Record = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *jax.device_get(blocks))
    if not found.finite.all():
        life, episode = np.argwhere(~found.finite)[0]
        raise ValueError(
            f"An observation or a reward is not finite in episode {episode} of life {life}, at step "
            f"{found.length[life, episode]}; the parameters were "
            f"{jax.tree.map(lambda leaf: float(leaf[life, episode]), params)}."
        )
    return Deployments(found.total.astype(np.float64), found.length, found.terminated, params, found.reports)


@partial(jax.jit, static_argnums=(2, 3))
def _begin(policy: MemoryPolicy[Any], key: Key, lives: int, episodes: int) -> tuple[Key, Any]:
    """The keys of all episodes, `(N, E)`, and the memory of each life before its first episode."""
    world, thoughts = jax.random.fold_in(key, _WORLD), jax.random.fold_in(key, _POLICY)
    keys = jax.vmap(lambda one: jax.random.split(one, episodes))(jax.random.split(world, lives))
    return keys, jax.vmap(policy.start)(jax.random.split(thoughts, lives))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _play(
    simulator: Simulator,
    noisy: bool,
    in_turn: bool,
    policy: MemoryPolicy[Any],
    memory: Any,
    keys: Key,
    params: Params,
    limit: Int32[Array, ""],
    noise: Float[Array, ""],
) -> tuple[Any, _Record]:
    """Plays some episodes of all lives; returns their records and the memory after them."""
    life = partial(_life, simulator, policy, limit, noise if noisy else None)
    if in_turn:
        in_order: tuple[Any, _Record] = jax.lax.map(lambda each: life(*each), (memory, keys, params))
        return in_order
    played: tuple[Any, _Record] = jax.vmap(life)(memory, keys, params)
    return played


def _life(
    simulator: Simulator,
    policy: MemoryPolicy[Any],
    limit: Int32[Array, ""],
    noise: Float[Array, ""] | None,
    memory: Any,
    keys: Key,
    params: Params,
) -> tuple[Any, _Record]:
    def seen(state: State, key: Key) -> Float[Array, " D"]:
        exact = simulator.observe(state)
        return exact if noise is None else exact + noise * jax.random.normal(key, exact.shape, exact.dtype)

    def episode(memory: Any, drawn: tuple[Key, Params]) -> tuple[Any, _Record]:
        key, held = drawn
        draws = [jax.random.fold_in(key, stream) for stream in (_START, _STEP, _NOISE)]

        def goes_on(now: _Episode) -> Bool[Array, ""]:
            return ~now.terminated & now.finite & (now.elapsed < limit)

        def one(now: _Episode) -> _Episode:
            action, memory = policy.act(now.memory, now.observation)
            arrived = step(simulator, jax.random.fold_in(draws[1], now.elapsed), now.state, action, held)
            elapsed = now.elapsed + 1
            observation = seen(arrived.state, jax.random.fold_in(draws[2], elapsed))
            truncated = ~arrived.terminated & (elapsed >= limit)
            memory = policy.observe(
                memory, Step(now.observation, action, arrived.reward, observation, arrived.terminated, truncated)
            )
            total = now.total + arrived.reward
            finite = jnp.isfinite(observation).all() & jnp.isfinite(arrived.reward)
            return _Episode(arrived.state, observation, memory, total, elapsed, arrived.terminated, finite)

        state = simulator.start(draws[0], held)
        observation = seen(state, jax.random.fold_in(draws[2], 0))
        yes, no = jnp.bool_(True), jnp.bool_(False)
        first = _Episode(state, observation, memory, jnp.float32(0.0), jnp.int32(0), no, yes)
        last = jax.lax.while_loop(goes_on, one, first)
        return last.memory, _Record(last.total, last.elapsed, last.terminated, last.finite, policy.report(last.memory))

    played: tuple[Any, _Record] = jax.lax.scan(episode, memory, (keys, params))
    return played
