"""Natures over a belief: combine the values of an action under the members, given the belief in them.

    y = sum_k weights(b, y_1, ..., y_K)_k y_k

Each nature is a value; `weights` maps beliefs and values, both `(..., K)`, to weights that sum to one. If the belief is
certain of a member, all of them give the value under that member.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float

from urbe import checks
from urbe.belief.credible import credible_set, tail_weights


@runtime_checkable
class BeliefNature(Protocol):
    """Weights members by a belief and by their values."""

    def weights(self, belief: Float[Array, "*B K"], values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        """The weight of each member, given the value of the action under each."""


@runtime_checkable
class EpisodeNature(BeliefNature, Protocol):
    """A nature that also reweights the belief once, at the start of each episode.

    Within the episode, members are weighted by this belief, updated by observations.
    """

    def begin_episode(self, belief: Float[Array, "*B K"], values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        """The belief of the episode, given the value of the episode under each member."""


@dataclass(frozen=True)
class BeliefMean:
    """Weights are the belief: the Bayes-adaptive agent, optimal in expectation if the belief is right."""

    def weights(self, belief: Float[Array, "*B K"], values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        return jnp.broadcast_to(belief, values.shape)


@dataclass(frozen=True)
class BeliefCVaR:
    """The mean of the lowest `level` of the values, at every step.

    Levels compound along a path: a level of 0.8 is cautious, one of 0.6 often avoids all risk.

    Args:
      level: in [0, 1]. 1 is the mean; 0 the worst of the members with a positive belief.
    """

    level: float

    def __post_init__(self) -> None:
        checks.number("level", self.level, 0.0, 1.0)

    def weights(self, belief: Float[Array, "*B K"], values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        return jnp.broadcast_to(tail_weights(belief, values, self.level), values.shape)


@dataclass(frozen=True)
class EpisodeCVaR:
    """The mean of the lowest `level` of the values, chosen once, at the start of each episode.

    The belief is reweighted there towards the members with the lowest episode values, as the network estimates them for
    a certain member.

    Args:
      level: above 0 and at most 1.
    """

    level: float

    def __post_init__(self) -> None:
        checks.number("level", checks.positive("level", self.level), 0.0, 1.0)

    def weights(self, belief: Float[Array, "*B K"], values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        return jnp.broadcast_to(belief, values.shape)

    def begin_episode(self, belief: Float[Array, "*B K"], values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        return jnp.broadcast_to(tail_weights(belief, values, self.level), values.shape)


@dataclass(frozen=True)
class CredibleWorst:
    """The worst member of the credible set: the fewest members that hold a belief of 1 - alpha.

    Args:
      alpha: in [0, 1). 0 is the worst member with a positive belief.
    """

    alpha: float = 0.1

    def __post_init__(self) -> None:
        if checks.number("alpha", self.alpha, 0.0, 1.0) == 1.0:
            raise ValueError("alpha is 1, expected a number below 1: the set would be empty.")

    def weights(self, belief: Float[Array, "*B K"], values: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
        inside = credible_set(belief, self.alpha)
        lowest = jnp.where(inside, values, jnp.inf).argmin(axis=-1, keepdims=True)
        return (jnp.arange(values.shape[-1]) == lowest).astype(values.dtype)
