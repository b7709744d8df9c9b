"""Test episodes: their random numbers, and their outcomes.

Episode e has its own seed, which depends only on the root seed and on e: it begins in the same way under all
parameters and for all policies, so that comparisons are paired. A simulator's episode has
the random numbers that `SimulatorEnv.reset(seed=...)` with that seed would give it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from urbe.rng import stream
from urbe.types import BoolArray, FloatArray, IntArray

Words = UInt32[np.ndarray, "E 2"]
"""The raw data of keys."""


class Episodes(NamedTuple):
    """Outcomes of E episodes under each of P parameters; all arrays are `(P, E)`.

    Attributes:
      returns: undiscounted sums of rewards, float64.
      lengths: steps.
      terminated: whether an episode terminated, rather than being truncated.
    """

    returns: FloatArray
    lengths: IntArray
    terminated: BoolArray


class EpisodeDraws(NamedTuple):
    """Random numbers of E episodes: seeds of their environments, keys of the simulator and of the policy's noise."""

    seeds: IntArray
    world: Words
    noise: Words

    def part(self, begin: int, end: int) -> EpisodeDraws:
        """The draws of the episodes from `begin` up to, but not including, `end`."""
        return EpisodeDraws(*(each[begin:end] for each in self))


def draws(seed: int, episodes: int) -> EpisodeDraws:
    """The seeds and keys of the first episodes; asking for more does not change the first ones."""
    seeds = stream(seed, "evaluation").integers(2**31, size=episodes)
    # as Gymnasium makes generators of seeds, and SimulatorEnv keys of generators
    generators = [np.random.Generator(np.random.PCG64(np.random.SeedSequence(int(each)))) for each in seeds]
    world = np.stack([rng.integers(2**32, size=2, dtype=np.uint32) for rng in generators])
    noise = stream(seed, "evaluation", "noise").integers(2**32, size=(episodes, 2), dtype=np.uint32)
    return EpisodeDraws(seeds, world, noise)


def keys(words: UInt32[Array, "B 2"], index: Int[Array, ""] | int) -> Any:
    """The keys of number `index` of each episode; the algorithm is named, so as not to follow JAX's settings."""
    return jax.vmap(lambda w: jax.random.fold_in(jax.random.wrap_key_data(w, impl="threefry2x32"), index))(words)


def normal(words: UInt32[Array, "B 2"], step: Int[Array, ""], n_actions: int) -> Float[Array, "B A"]:
    """Standard normal noise of every action in step `step` of each episode."""
    return jax.vmap(lambda key: jax.random.normal(key, (n_actions,), jnp.float32))(keys(words, step))
