"""Domain randomisation over a finite set of members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from urbe import checks
from urbe.simulators.base import Key, Params
from urbe.simulators.schedules import Carry, Schedule


@dataclass(frozen=True)
class RandomMember(Schedule):
    """One of finitely many parameters, all equally likely, drawn afresh with probability `hazard` before each episode.

    A draw lasts 1 / hazard episodes on average; with a hazard of 1 every episode has a new draw, which may be the same
    member. Schedules with equal members are equal, so that agents with other seeds share a compiled loop.

    Args:
      members: the parameters, at least one; `UncertaintySet.members()` gives those of a set.
      hazard: the probability of a new draw from one episode to the next.

    >>> import jax
    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0), include_nominal=False)
    >>> drawn = RandomMember(poles.members()).begin(jax.random.key(0)).params
    >>> float(drawn.half_length) in (0.25, 1.0)
    True
    """

    members: Sequence[Params]
    hazard: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if not self.members:
            raise ValueError("members is empty, expected at least one set of parameters.")
        names = self.members[0]._fields
        for k, member in enumerate(self.members):
            if member._fields != names:
                raise ValueError(
                    f"members[{k}] has the parameters {', '.join(member._fields)}, expected {', '.join(names)} as in "
                    "members[0]."
                )
        checks.number("hazard", self.hazard, 0.0, 1.0)

    def begin(self, key: Key) -> Carry:
        return Carry(jnp.int32(0), self._draw(key))

    def next(self, carry: Carry, key: Key) -> Carry:
        when, what = jax.random.split(key)
        jump = jax.random.uniform(when, dtype=jnp.float32) < jnp.float32(self.hazard)
        params = jax.tree.map(lambda new, old: jnp.where(jump, new, old), self._draw(what), carry.params)
        return Carry(carry.episode + 1, params)

    def _draw(self, key: Key) -> Params:
        k = jax.random.randint(key, (), 0, len(self.members), jnp.int32)
        return jax.tree.map(lambda *values: jnp.stack([jnp.float32(value) for value in values])[k], *self.members)
