"""Schedules: how a simulator's parameters change from one episode to the next.

    carry = schedule.begin(key)            before the first episode
    carry = schedule.next(carry, key)      before each of the following ones
    schedule.params(carry)                 the parameters of the episode

All methods are pure and traceable: the carry is a pytree of arrays with the complete memory, so schedules run in
`jax.lax.scan` and under `jax.vmap`, and resume from a saved carry bit for bit. The key is consumed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from urbe import checks
from urbe.simulators.base import Key, Params
from urbe.simulators.distributions import Distribution, between, ordered

Bounds = Mapping[str, tuple[float, float]]
"""Two bounds of each parameter that changes, by name."""

Edge = Callable[[Float[Array, ""], Float[Array, ""], Float[Array, ""]], Float[Array, ""]]
"""Maps a number that may be outside of [low, high] back into it: `edge(x, low, high)`."""


class Carry(NamedTuple):
    """The number of the episode, from 0, and its parameters."""

    episode: Int[Array, ""]
    params: Params


class Schedule(Protocol):
    """A frozen description of how parameters change."""

    def begin(self, key: Key) -> Carry:
        """Before the first episode."""

    def next(self, carry: Carry, key: Key) -> Carry:
        """Before each of the following episodes."""

    def params(self, carry: Carry) -> Params:
        """The parameters of the episode, float32."""
        return carry.params


class OfEpisode(Schedule, Protocol):
    """A deterministic schedule without memory: parameters are a function of the number of the episode."""

    def at(self, episode: Int[Array, ""]) -> Params:
        """The parameters of an episode, float32."""

    def begin(self, key: Key) -> Carry:
        return Carry(jnp.int32(0), self.at(jnp.int32(0)))

    def next(self, carry: Carry, key: Key) -> Carry:
        episode = carry.episode + 1
        return Carry(episode, self.at(episode))


@dataclass(frozen=True, eq=False)
class Constant(OfEpisode):
    """The same parameters in all episodes."""

    base: Params

    def at(self, episode: Int[Array, ""]) -> Params:
        return _float32(self.base)


@dataclass(frozen=True, eq=False)
class StepChange(OfEpisode):
    """Sudden changes: the first parameters for some episodes, then the second, ...

    Args:
      phases: pairs (episodes, params), at least one. The last parameters stay, unless the phases repeat.
      repeat: whether the first phase follows the last.

    >>> import jax.numpy as jnp
    >>> from urbe.simulators import CartPole
    >>> pole = CartPole().nominal()
    >>> change = StepChange(((4000, pole._replace(half_length=0.75)), (1000, pole._replace(half_length=1.25))))
    >>> [float(change.at(jnp.int32(episode)).half_length) for episode in (0, 3999, 4000, 9999)]
    [0.75, 0.75, 1.25, 1.25]
    """

    phases: tuple[tuple[int, Params], ...]
    repeat: bool = False

    def __post_init__(self) -> None:
        checks.sequence("phases", self.phases, "at least one (episodes, params)")
        names = self.phases[0][1]._fields
        for k, (episodes, params) in enumerate(self.phases):
            checks.whole_number(f"phases[{k}][0]", episodes, 1)
            if params._fields != names:
                raise ValueError(
                    f"phases[{k}] has the parameters {', '.join(params._fields)}, expected {', '.join(names)} as in "
                    "phases[0]; to change some and leave the others, use params._replace(...)."
                )

    def at(self, episode: Int[Array, ""]) -> Params:
        until = np.cumsum([episodes for episodes, _ in self.phases])
        within = episode % int(until[-1]) if self.repeat else episode
        phase = jnp.sum(within >= jnp.asarray(until[:-1], jnp.int32))
        return jax.tree.map(lambda *values: jnp.stack(values)[phase], *(_float32(params) for _, params in self.phases))


@dataclass(frozen=True, eq=False)
class Drift(OfEpisode):
    """A slow change: in a straight line from the first bound to the second, where it stays.

    Args:
      base: parameters that do not change.
      bounds: for each parameter that changes, its first and its last value; the last may be the lower one.
      episodes: number of episodes after which the last value is reached.
    """

    base: Params
    bounds: Bounds
    episodes: int

    def __post_init__(self) -> None:
        _known(self.base, self.bounds)
        for name, ends in self.bounds.items():
            ordered(min(ends), max(ends), name=name)
        checks.whole_number("episodes", self.episodes, 1)

    def at(self, episode: Int[Array, ""]) -> Params:
        share = jnp.minimum(episode, self.episodes).astype(jnp.float32) / jnp.float32(self.episodes)
        return _share(self.base, self.bounds, share)


@dataclass(frozen=True, eq=False)
class Cyclic(OfEpisode):
    """A periodic change: from the lower bound to the upper one and back, along a cosine.

    Args:
      base: parameters that do not change.
      bounds: lower and upper bound of each parameter that changes.
      period: episodes from one lowest point to the next, at least 2.
    """

    base: Params
    bounds: Bounds
    period: int

    def __post_init__(self) -> None:
        _within(self.base, self.bounds)
        checks.whole_number("period", self.period, 2)

    def at(self, episode: Int[Array, ""]) -> Params:
        turn = (episode % self.period).astype(jnp.float32) / jnp.float32(self.period)
        return _share(self.base, self.bounds, 0.5 * (1 - jnp.cos(jnp.float32(2 * np.pi) * turn)))


@dataclass(frozen=True, eq=False)
class Sawtooth(OfEpisode):
    """Wear and repair: a linear change from the lower bound to the upper one, then a jump back.

    Args:
      base: parameters that do not change.
      bounds: lower and upper bound of each parameter that changes; both are reached.
      period: episodes from one lower bound to the next, at least 2.
    """

    base: Params
    bounds: Bounds
    period: int

    def __post_init__(self) -> None:
        _within(self.base, self.bounds)
        checks.whole_number("period", self.period, 2)

    def at(self, episode: Int[Array, ""]) -> Params:
        share = (episode % self.period).astype(jnp.float32) / jnp.float32(self.period - 1)
        return _share(self.base, self.bounds, share)


def reflect(x: Float[Array, ""], low: Float[Array, ""], high: Float[Array, ""]) -> Float[Array, ""]:
    """Reflects a number at the bounds as often as needed, which keeps a random walk uniform in the long run."""
    width = high - low
    folded = jnp.mod(x - low, 2 * width)
    return jnp.clip(low + jnp.minimum(folded, 2 * width - folded), low, high)


@dataclass(frozen=True, eq=False)
class RandomWalk(Schedule):
    """Normal steps from one episode to the next, within bounds: x <- edge(x + deviation z).

    Args:
      base: the parameters of the first episode; those without bounds do not change.
      bounds: lower and upper bound of each parameter that changes; they start within.
      deviations: standard deviations of the steps, for each parameter that changes, above 0.
      edge: the behaviour at the bounds: `reflect`, or `jnp.clip` to stay there until the walk turns.
    """

    base: Params
    bounds: Bounds
    deviations: Mapping[str, float]
    edge: Edge = reflect

    def __post_init__(self) -> None:
        _within(self.base, self.bounds)
        if set(self.deviations) != set(self.bounds):
            raise ValueError(f"deviations has {list(self.deviations)}, expected {list(self.bounds)}, as in bounds.")
        for name, (low, high) in self.bounds.items():
            checks.positive(f"deviations[{name!r}]", self.deviations[name])
            at, least, most = (float(np.float32(x)) for x in (self.base._asdict()[name], low, high))
            checks.number(f"base.{name}", at, least, most)

    def begin(self, key: Key) -> Carry:
        return Carry(jnp.int32(0), _float32(self.base))

    def next(self, carry: Carry, key: Key) -> Carry:
        now, moved = carry.params._asdict(), {}
        for name, (low, high) in self.bounds.items():
            z = jax.random.normal(_key_of(name, self.base, key), (), jnp.float32)
            x = now[name] + jnp.float32(self.deviations[name]) * z
            moved[name] = self.edge(x, jnp.float32(low), jnp.float32(high))
        return Carry(carry.episode + 1, carry.params._replace(**moved))


@dataclass(frozen=True, eq=False)
class DomainRandomisation(Schedule):
    """Fresh and independent draws for every episode: domain randomisation.

    Args:
      base: parameters that do not change.
      distributions: distributions of the others, by name: `Uniform`, `Normal`, `LogUniform`.
    """

    base: Params
    distributions: Mapping[str, Distribution]

    def __post_init__(self) -> None:
        _known(self.base, self.distributions)
        for name, law in self.distributions.items():
            if not isinstance(law, Distribution):
                raise ValueError(f"distributions[{name!r}] is {law!r}, expected one such as Uniform(low, high).")

    def begin(self, key: Key) -> Carry:
        return Carry(jnp.int32(0), self._draw(key))

    def next(self, carry: Carry, key: Key) -> Carry:
        return Carry(carry.episode + 1, self._draw(key))

    def _draw(self, key: Key) -> Params:
        drawn = {name: law.sample(_key_of(name, self.base, key)) for name, law in self.distributions.items()}
        return _float32(self.base)._replace(**drawn)


@dataclass(frozen=True, eq=False)
class RandomJumps(Schedule):
    """Sudden changes at random times: before each episode, with probability `hazard`, parameters are drawn afresh.

    A phase lasts 1 / hazard episodes on average. A hazard of 0 keeps the first draw forever, and a hazard of 1 is
    domain randomisation. All parameters that change are drawn together.

    Args:
      base: parameters that do not change.
      distributions: distributions of the others, by name: `Uniform`, `Normal`, `LogUniform`.
      hazard: the probability of a change from one episode to the next.

    >>> import jax
    >>> from urbe.simulators import MarsRover, LogUniform
    >>> jumps = RandomJumps(MarsRover().nominal(), {"failure": LogUniform(0.001, 0.9)}, hazard=0.04)
    >>> carry = jumps.begin(jax.random.key(0))
    >>> bool(0.001 <= jumps.params(carry).failure <= 0.9)
    True
    """

    base: Params
    distributions: Mapping[str, Distribution]
    hazard: float

    def __post_init__(self) -> None:
        DomainRandomisation(self.base, self.distributions)  # has the same requirements
        checks.number("hazard", self.hazard, 0.0, 1.0)

    def begin(self, key: Key) -> Carry:
        return DomainRandomisation(self.base, self.distributions).begin(key)

    def next(self, carry: Carry, key: Key) -> Carry:
        when, what = jax.random.split(key)
        drawn = DomainRandomisation(self.base, self.distributions).next(carry, what)
        jump = jax.random.uniform(when, dtype=jnp.float32) < jnp.float32(self.hazard)
        params = jax.tree.map(lambda new, old: jnp.where(jump, new, old), drawn.params, carry.params)
        return Carry(drawn.episode, params)


def _float32(params: Params) -> Params:
    return jax.tree.map(jnp.float32, params)


def _key_of(name: str, base: Params, key: Key) -> Key:
    """The key of a parameter, which does not depend on the other parameters."""
    return jax.random.fold_in(key, base._fields.index(name))


def _share(base: Params, bounds: Bounds, share: Float[Array, ""]) -> Params:
    """The base with each changing parameter at the same fraction between its bounds."""
    return _float32(base)._replace(**{name: between(share, *ends) for name, ends in bounds.items()})


def _within(base: Params, bounds: Bounds) -> None:
    _known(base, bounds)
    for name, (low, high) in bounds.items():
        ordered(low, high, name=name)


def _known(base: Params, names: Collection[str]) -> None:
    checks.kind("bounds or distributions", names, isinstance(names, Collection), "a mapping from names of parameters")
    if not names:
        raise ValueError(f"No parameter changes, expected some of {', '.join(base._fields)}; or use Constant.")
    unknown = [name for name in names if name not in base._fields]
    if unknown:
        raise ValueError(
            f"{checks.listing([repr(name) for name in unknown])} {'is' if len(unknown) == 1 else 'are'} not among the "
            f"parameters of {type(base).__name__}, which are {', '.join(base._fields)}."
        )
