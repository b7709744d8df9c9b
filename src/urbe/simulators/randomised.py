"""Schedules for domain randomisation over a finite set: which member is in force, and for how long.

Those of equal members are equal, so that agents with other seeds share their compiled loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from urbe import checks
from urbe.simulators.base import Key, Params
from urbe.simulators.schedules import Carry, Schedule

_WHETHER, _WHAT = range(2)  # streams of `Lasting`


@dataclass(frozen=True)
class RandomMember(Schedule):
    """One of finitely many parameters for every episode, all equally likely and drawn independently.

    Args:
      members: the parameters, at least one; `UncertaintySet.members()` gives those of a set.

    >>> import jax
    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0), include_nominal=False)
    >>> drawn = RandomMember(poles.members()).begin(jax.random.key(0)).params
    >>> float(drawn.half_length) in (0.25, 1.0)
    True
    """

    members: Sequence[Params]

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

    def begin(self, key: Key) -> Carry:
        return Carry(jnp.int32(0), self._draw(key))

    def next(self, carry: Carry, key: Key) -> Carry:
        return Carry(carry.episode + 1, self._draw(key))

    def _draw(self, key: Key) -> Params:
        k = jax.random.randint(key, (), 0, len(self.members), jnp.int32)
        return jax.tree.map(lambda *values: jnp.stack([jnp.float32(value) for value in values])[k], *self.members)


@dataclass(frozen=True)
class Lasting(Schedule):
    """Another schedule whose parameters outlast the episode: each episode changes them with a fixed probability.

        theta <- the inner schedule's next parameters    with probability `change`
        theta <- theta                                   otherwise

    so that parameters stay for 1 / change episodes on average. An agent that remembers earlier episodes learns to use
    them only where they say something about the present one.

    Args:
      inner: where new parameters come from, such as `RandomMember` or `DomainRandomisation`.
      change: the probability, above 0 and at most 1.
    """

    inner: Schedule
    change: float

    def __post_init__(self) -> None:
        checks.number("change", checks.positive("change", self.change), 0.0, 1.0)

    def begin(self, key: Key) -> Carry:
        return self.inner.begin(jax.random.fold_in(key, _WHAT))

    def next(self, carry: Carry, key: Key) -> Carry:
        changes = jax.random.uniform(jax.random.fold_in(key, _WHETHER), dtype=jnp.float32) < jnp.float32(self.change)
        new = self.inner.next(carry, jax.random.fold_in(key, _WHAT))
        kept = jax.tree.map(lambda a, b: jnp.where(changes, a, b), new.params, carry.params)
        return Carry(carry.episode + 1, kept)

    def params(self, carry: Carry) -> Params:
        return self.inner.params(carry)
