"""Schedules over steps: random actions, learning rates, the target network."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Int32

from urbe import checks


@dataclass(frozen=True)
class Epsilon:
    """The probability of random actions: linear from `first` to `last` over `steps` steps, then constant.

    The paper states only the last value.
    """

    first: float = 1.0
    last: float = 1e-5
    steps: int = 20_000

    def __post_init__(self) -> None:
        checks.number("first", self.first, 0.0, 1.0)
        checks.number("last", self.last, 0.0, 1.0)
        checks.whole_number("steps", self.steps, 1)


@dataclass(frozen=True)
class CopyEvery:
    """Updates of the target network after a number of episodes or of gradient steps,

        target <- (1 - tau) target + tau weights

    The paper says 10 without a unit; episodes are assumed, since a copy every ten gradient steps is close to none.

    Args:
      episodes: episodes between updates of the target network.
      updates: gradient steps between updates; exactly one of the two is given.
      tau: above 0 and at most 1. 1 copies the weights; `CopyEvery(updates=1, tau=0.005)` is Polyak averaging.
    """

    episodes: int | None = None
    updates: int | None = None
    tau: float = 1.0

    def __post_init__(self) -> None:
        given = [name for name in ("episodes", "updates") if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) if given else "neither"
            raise ValueError(f"CopyEvery was given {found}, expected exactly one of episodes and updates.")
        checks.whole_number(given[0], getattr(self, given[0]), 1)
        checks.number("tau", checks.positive("tau", self.tau), 0.0, 1.0)


@dataclass(frozen=True)
class Decay:
    """A factor of the learning rates: 1 at the first step, `last` after `steps` steps and from then on.

        1 + (last - 1) part                        linear, part = min(step / steps, 1)
        1 + (last - 1) (1 - cos(pi part)) / 2      cosine

    The default is constant.

    Args:
      last: the factor at the end, from 0 to 1.
      steps: environment steps until then, usually all of a run.
      cosine: a cosine in place of a linear decay.
    """

    last: float = 1.0
    steps: int = 100_000
    cosine: bool = False

    def __post_init__(self) -> None:
        checks.number("last", self.last, 0.0, 1.0)
        checks.whole_number("steps", self.steps, 1)
        if not isinstance(self.cosine, bool):
            raise ValueError(f"cosine is {self.cosine!r}, expected True or False.")


def epsilon_at(epsilon: Epsilon, step: Int[Array, ""]) -> Float[Array, ""]:
    """The probability of a random action after `step` transitions."""
    part = jnp.minimum(step.astype(jnp.float32) / epsilon.steps, 1.0)
    share: Array = jnp.float32(epsilon.first) + part * jnp.float32(epsilon.last - epsilon.first)
    return share


def rate_at(decay: Decay, rate: float, step: Int[Array, ""]) -> Float[Array, ""]:
    """A learning rate after `step` transitions, times its decay."""
    if decay.last == 1.0:
        return jnp.asarray(rate, jnp.float32)
    part = jnp.minimum(step.astype(jnp.float32) / decay.steps, 1.0)
    if decay.cosine:
        part = 0.5 * (1.0 - jnp.cos(jnp.float32(jnp.pi) * part))
    left: Array = jnp.float32(rate) * (1.0 + jnp.float32(decay.last - 1.0) * part)
    return left


def due(now: Int[Array, ""], before: Int[Array, ""], every: int) -> Int32[Array, ""]:
    """How many multiples of `every` lie in (before, now]."""
    return (now // every - before // every).astype(jnp.int32)
