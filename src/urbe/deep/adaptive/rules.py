"""Acting rules: choose an action from a network over pairs of observation and belief, and the current belief.

    OnBelief     argmax_a Q(s, b, a)                        the network has learned the value of information
    Thompson     argmax_a Q(s, e_k, a)                      k drawn from the belief once per episode [Thompson1933]
    OnMembers    argmax_a nature over k under b of Q(s, e_k, a)    the set adapts, the values of members do not

e_k is the certainty of member k. The last two need a network that learned with the true member given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from urbe.deep.adaptive.natures import BeliefMean, BeliefNature


@runtime_checkable
class BeliefRule(Protocol):
    """Computes values of actions from a belief. Rules must be hashable."""

    def values(self, evaluate: Any, belief: Float[Array, " K"], drawn: Int32[Array, ""]) -> Float[Array, " A"]:
        """The values for greedy action.

        Args:
          evaluate: maps beliefs `(N, K)` to Q(s, b_n, .), `(N, A)`.
          belief: the current belief.
          drawn: a member drawn from the belief at the start of the episode.
        """


@dataclass(frozen=True)
class OnBelief:
    """Acts on the belief itself."""

    def values(self, evaluate: Any, belief: Float[Array, " K"], drawn: Int32[Array, ""]) -> Float[Array, " A"]:
        values: Array = evaluate(belief[None])[0]
        return values


@dataclass(frozen=True)
class Thompson:
    """Acts, for a whole episode, as if a member drawn from the belief were the true one."""

    def values(self, evaluate: Any, belief: Float[Array, " K"], drawn: Int32[Array, ""]) -> Float[Array, " A"]:
        certain = (jnp.arange(len(belief)) == drawn).astype(belief.dtype)
        values: Array = evaluate(certain[None])[0]
        return values


@dataclass(frozen=True)
class OnMembers:
    """Acts on nature's mixture of the values under each member, as if the truth were revealed after the next step.

    Args:
      nature: a nature over the belief: its mean, its tail, or the worst of the credible set.
    """

    nature: BeliefNature = field(default_factory=BeliefMean)

    def values(self, evaluate: Any, belief: Float[Array, " K"], drawn: Int32[Array, ""]) -> Float[Array, " A"]:
        of_members = evaluate(jnp.eye(len(belief), dtype=belief.dtype)).T
        weights = self.nature.weights(jnp.broadcast_to(belief, of_members.shape), of_members)
        mixed: Array = (weights * of_members).sum(axis=-1)
        return mixed
