"""Compile the rounds of learning, and forecast their memory: the compiler states what a program will allocate.

Nearly all of it depends on the settings: predictions of K members are compared with the outcomes of all K, in every
life, and a gradient step keeps the activations of its share of `lives` x `length` steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from urbe import memory
from urbe.deep.adaptive.learner import AdaptiveRun, RoundMeans, init_run, one_round
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.settings import AdaptiveSettings

ROUNDS = 50
"""The largest number of rounds of one call."""

Rounds = Callable[[BeliefModel, AdaptiveRun, Int32[Array, ""]], tuple[AdaptiveRun, Float[Array, "R M"]]]
"""Computes several rounds, at most `ROUNDS`, and a row of means for each. The run is consumed."""


@partial(jax.jit, static_argnums=0)
def begin(settings: AdaptiveSettings, model: BeliefModel, key: jax.Array) -> AdaptiveRun:
    """A run before its first step; the key is consumed."""
    return init_run(settings, model, key)


def compiled_rounds(settings: AdaptiveSettings, model: BeliefModel, run: AdaptiveRun) -> Rounds:
    """Compiles rounds of learning once for agents of the same kinds.

    Raises:
      NotEnoughMemory: they need more memory than is available.
    """
    leaves, tree = jax.tree.flatten((model, run))
    kinds = tuple((jnp.shape(leaf), leaf.dtype) for leaf in leaves)
    parts = {f"learning from {settings.length} steps of {settings.lives} lives": _bytes(settings, tree, kinds)}
    advice = (
        "Use fewer lives (lives=...), shorter rounds (length=...), more minibatches, or fewer members of the "
        "uncertainty set."
    )
    try:
        memory.require(parts, advice)
    except memory.NotEnoughMemory:
        one = _bytes(replace(settings, length=1), tree, kinds)
        (name,), (whole,) = parts, parts.values()
        outcomes = f"the outcomes of an action under {model.n_members} members in {settings.lives} lives"
        memory.require({name: max(whole - one, 0.0), outcomes: min(one, whole)}, advice)
    return _program(settings, tree, kinds)  # type: ignore[no-any-return]


def _bytes(settings: AdaptiveSettings, tree: Any, kinds: Any) -> float:
    """Bytes that a call allocates, as the compiler states; 0 where it does not."""
    found = _program(settings, tree, kinds).memory_analysis()
    return 0.0 if found is None else float(found.temp_size_in_bytes + found.output_size_in_bytes)


@cache
def _program(settings: AdaptiveSettings, tree: Any, kinds: Any) -> Any:
    struct: Any = jax.ShapeDtypeStruct
    model, run = jax.tree.unflatten(tree, [struct(*kind) for kind in kinds])
    return _advance.lower(settings, model, run, struct((), jnp.int32)).compile()


@partial(jax.jit, static_argnums=0, donate_argnums=2)
def _advance(
    settings: AdaptiveSettings, model: BeliefModel, run: AdaptiveRun, count: Int32[Array, ""]
) -> tuple[AdaptiveRun, Float[Array, "R M"]]:
    def body(i: Array, carry: tuple[AdaptiveRun, Array]) -> tuple[AdaptiveRun, Array]:
        run, rows = carry
        run, means = one_round(settings, model, run)
        return run, rows.at[i].set(jnp.stack(means))

    empty = jnp.zeros((ROUNDS, len(RoundMeans._fields)), jnp.float32)
    done: tuple[AdaptiveRun, Array] = jax.lax.fori_loop(0, count, body, (run, empty))
    return done
