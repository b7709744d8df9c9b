"""Optimisers turn a gradient into a change of the weights.

An optimiser is a value with two pure functions, as in Optax, and gets the current learning rate:

    state            = init(weights)
    changes, state   = update(gradient, state, weights, rate)
    weights         <- weights + changes

Gradients are clipped before, in the same way for all optimisers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from urbe import checks
from urbe.deep.core import tricks


@runtime_checkable
class Optimiser(Protocol):
    """Updates weights by gradients. Optimisers must be hashable dataclasses; see `urbe.testing.check_optimiser`."""

    def init(self, weights: Any) -> Any:
        """The initial state: arrays in nested containers."""

    def update(self, gradient: Any, state: Any, weights: Any, rate: Float[Array, ""]) -> tuple[Any, Any]:
        """The change of the weights, in containers like theirs, and the new state."""


class AdamMoments(NamedTuple):
    """Running means of gradients and of their squares, shaped like the weights."""

    first: Any
    second: Any
    steps: Int32[Array, ""]


@dataclass(frozen=True)
class Adam:
    """Adam [Kingma2015]. The paper does not name an optimiser.

        theta <- theta - rate m / (sqrt(v) + offset)

    m and v are running means of the gradient and of its square, with bias correction.
    """

    first_decay: float = 0.9
    second_decay: float = 0.999
    offset: float = 1e-8

    def __post_init__(self) -> None:
        checks.number("first_decay", self.first_decay, 0.0, 1.0, closed=False)
        checks.number("second_decay", self.second_decay, 0.0, 1.0, closed=False)
        checks.positive("offset", self.offset)

    def init(self, weights: Any) -> AdamMoments:
        """Returns moments of zero."""
        return AdamMoments(jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights), jnp.int32(0))

    def update(
        self, gradient: Any, state: AdamMoments, weights: Any, rate: Float[Array, ""]
    ) -> tuple[Any, AdamMoments]:
        """- rate m / (sqrt(v) + offset)."""
        steps = state.steps + 1
        t = steps.astype(jnp.float32)
        b1, b2 = jnp.float32(self.first_decay), jnp.float32(self.second_decay)
        # bias corrections enter by the rate and the offset: one division per weight
        root = jnp.sqrt(1.0 - b2**t)
        size, offset = rate * root / (1.0 - b1**t), jnp.float32(self.offset) * root
        first = jax.tree.map(lambda m, g: b1 * m + (1.0 - b1) * g, state.first, gradient)
        second = jax.tree.map(lambda v, g: b2 * v + (1.0 - b2) * (g * g), state.second, gradient)
        changes = jax.tree.map(lambda m, v: -(size * m / (jnp.sqrt(v) + offset)), first, second)
        return changes, AdamMoments(first, second, steps)


@dataclass(frozen=True)
class Transformation:
    """A gradient transformation of Optax, or any pair `init(weights)` and `update(gradient, state, weights)`.

        theta <- theta + rate update

    The rate comes from the settings, so the pair's own learning rate should be one: `Transformation(optax.lion(1.0))`.
    A file cannot describe functions: load such an agent with `load(path, settings=...)`. A dataclass of
    your own that calls the pair is saved by its name and fields.

    Args:
      pair: an object with these two functions.
    """

    pair: Any

    def init(self, weights: Any) -> Any:
        """The state of the pair."""
        return self.pair.init(weights)

    def update(self, gradient: Any, state: Any, weights: Any, rate: Float[Array, ""]) -> tuple[Any, Any]:
        """The update of the pair, times the rate."""
        changes, state = self.pair.update(gradient, state, weights)
        return jax.tree.map(lambda change: rate * change, changes), state


def optimise(
    optimiser: Optimiser, rate: Float[Array, ""], weights: Any, state: Any, gradient: Any, clip_norm: float | None
) -> tuple[Any, Any]:
    """Takes one step; a gradient with a norm above `clip_norm` is scaled down to that norm first."""
    if clip_norm is None:
        rate = tricks.after(rate, jax.tree.leaves(gradient)[0].ravel()[0])
    else:
        shrink = jnp.float32(clip_norm) / jnp.maximum(global_norm(gradient), jnp.float32(clip_norm))
        gradient = jax.tree.map(lambda g: shrink * g, gradient)
    changes, state = optimiser.update(gradient, state, weights, rate)
    return jax.tree.map(jnp.add, weights, changes), state


def global_norm(gradient: Any) -> Float[Array, ""]:
    """sqrt(sum g^2) over all entries of all arrays."""
    return jnp.sqrt(sum((jnp.vdot(g, g) for g in jax.tree.leaves(gradient)), jnp.float32(0.0)))
