"""Distributions of one number, to draw parameters from; samples are float32."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from urbe import checks
from urbe.simulators.base import Key


@runtime_checkable
class Distribution(Protocol):
    """A frozen dataclass; `sample` is pure and traceable."""

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Float[Array, ...]:
        """Draws independent float32 numbers. The key is consumed."""


@dataclass(frozen=True)
class Uniform:
    """Uniform on [low, high]."""

    low: float
    high: float

    def __post_init__(self) -> None:
        ordered(self.low, self.high)

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Float[Array, ...]:
        return between(jax.random.uniform(key, shape, jnp.float32), self.low, self.high)


@dataclass(frozen=True)
class LogUniform:
    """Log-uniform on [low, high]: the logarithm is uniform."""

    low: float
    high: float

    def __post_init__(self) -> None:
        checks.positive("low", self.low)
        ordered(self.low, self.high)

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Float[Array, ...]:
        exponent = between(jax.random.uniform(key, shape, jnp.float32), math.log(self.low), math.log(self.high))
        return jnp.clip(jnp.exp(exponent), jnp.float32(self.low), jnp.float32(self.high))


@dataclass(frozen=True)
class Normal:
    """Normal, truncated to [low, high]: as if draws outside were rejected.

    Args:
      mean, deviation: mean and standard deviation before truncation.
      low, high: the range; at least a thousandth of the draws must fall into it.
    """

    mean: float
    deviation: float
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        checks.finite_number("mean", self.mean)
        checks.positive("deviation", self.deviation)
        ordered(self.low, self.high, infinite=True)
        left, right = self._standard()
        kept = 0.5 * (math.erf(right / math.sqrt(2.0)) - math.erf(left / math.sqrt(2.0)))
        if kept < 1e-3:
            raise ValueError(
                f"low is {self.low:g} and high {self.high:g}, a range into which only {kept:.1g} of the draws of mean "
                f"{self.mean:g} and deviation {self.deviation:g} fall, expected at least 0.001. Move the range or the "
                "mean, or use Uniform."
            )

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Float[Array, ...]:
        """Samples by inversion."""
        left, right = (jnp.float32(x) for x in self._standard())
        draw = jax.random.truncated_normal(key, left, right, shape, jnp.float32)
        kept = jnp.float32(self.mean) + jnp.float32(self.deviation) * draw
        return jnp.clip(kept, jnp.float32(self.low), jnp.float32(self.high))  # scaling back may round past a bound

    def _standard(self) -> tuple[float, float]:
        return (self.low - self.mean) / self.deviation, (self.high - self.mean) / self.deviation


def ordered(low: float, high: float, *, infinite: bool = False, name: str = "") -> None:
    """Raises unless low is below high, both numbers, and finite unless `infinite`.

    Args:
      name: name of the bounded quantity, for the error.
    """
    of = f" of {name}" if name else ""
    for end, value in (("low", low), ("high", high)):
        if infinite:
            checks.number(f"{end}{of}", value, -math.inf, math.inf)
        else:
            checks.finite_number(f"{end}{of}", value)
    if not low < high:
        raise ValueError(f"The bounds{of} are {low:g} and {high:g}, expected the lower one first and below the other.")


def between(share: Float[Array, ...], low: float, high: float) -> Float[Array, ...]:
    """low + share (high - low) in float32, exactly `low` and `high` at the shares 0 and 1, never beyond."""
    a, b = jnp.float32(low), jnp.float32(high)
    return jnp.clip(a * (1 - share) + b * share, jnp.minimum(a, b), jnp.maximum(a, b))
