"""Natures combine the values of an action under the members of an uncertainty set.

    y = sum_k weights(y_1, ..., y_K)_k y_k

Each nature is a value; `weights` maps `(..., K)` targets to `(..., K)` weights that sum to one. With one member all of
them are ordinary Q-learning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from urbe import checks


@runtime_checkable
class MemberNature(Protocol):
    """Weights the members of an uncertainty set by their values."""

    def weights(self, values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        """The weight of each member, given the value of the action under each."""


@dataclass(frozen=True)
class Average:
    """Equal weights: soft-robust, or plain Q-learning with one member."""

    def weights(self, values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        return jnp.full_like(values, 1.0 / values.shape[-1])


@dataclass(frozen=True)
class Worst:
    """The minimum over members, min_k y_k; the first one of equal values."""

    def weights(self, values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        return jax.nn.one_hot(values.argmin(axis=-1), values.shape[-1], dtype=values.dtype)


@dataclass(frozen=True)
class Soft:
    """Fixed weights, one per member of the set, in its order [Derman2018].

    Args:
      shares: at least 0, summing to one.
    """

    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        checks.distribution("shares", self.shares, len(self.shares))
        object.__setattr__(self, "shares", tuple(float(share) for share in self.shares))

    def weights(self, values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        if values.shape[-1] != len(self.shares):
            raise ValueError(
                f"shares has {len(self.shares)} entries, expected {values.shape[-1]}, one per member of the set."
            )
        return jnp.broadcast_to(jnp.asarray(self.shares, values.dtype), values.shape)


@dataclass(frozen=True)
class CVaR:
    """The mean of the lowest values, all members being equally likely.

        CVaR_level(y) = max_c c - mean_k (c - y_k)^+ / level

    A level of 1 is the average, one of 1/K or less the worst case.

    Args:
      level: the share of the members in the mean, above 0 and at most 1.
    """

    level: float

    def __post_init__(self) -> None:
        checks.number("level", checks.positive("level", self.level), 0.0, 1.0)

    def weights(self, values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        n = values.shape[-1]
        rank = values.argsort(axis=-1, stable=True).argsort(axis=-1, stable=True)
        # the k-th lowest holds the part of [k/n, (k+1)/n) below the level
        return jnp.clip(self.level * n - rank.astype(values.dtype), 0.0, 1.0) / (self.level * n)
