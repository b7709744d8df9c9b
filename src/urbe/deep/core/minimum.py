"""The minimum of several Q-functions, as one Q-network: for a policy that must serve several problems.

    Q(s, a) = min over active k of Q_k(s, a)

All Q_k have the same layers; their weights are stacked, `(K, ...)` in each array.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from urbe import checks
from urbe.deep.core.networks import Network, QNetwork


class MinimumWeights(NamedTuple):
    """Stacked weights of K networks, and which of them are active (at least one), as ones and zeros."""

    each: Any
    counts: Float[Array, " K"]


@dataclass(frozen=True)
class Minimum:
    """The minimum of K networks of the same kind.

    Args:
      members: K.
      network: the kind of network.
    """

    members: int
    network: QNetwork = field(default_factory=Network)

    def __post_init__(self) -> None:
        checks.whole_number("members", self.members, 1)
        if isinstance(self.network, type) or not isinstance(self.network, QNetwork):
            raise ValueError(f"network is {self.network!r}, expected a Network(...).")

    @property
    def n_features(self) -> int:
        """The features of all networks together."""
        return self.members * self.network.n_features

    def init(self, key: jax.Array, obs_size: int, n_actions: int) -> MinimumWeights:
        """Independent random networks, all active. The key is consumed."""
        keys = jax.random.split(key, self.members)
        return MinimumWeights(
            jax.vmap(lambda own: self.network.init(own, obs_size, n_actions))(keys), jnp.ones(self.members, jnp.float32)
        )

    def inputs(self, obs: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        """The inputs of each network."""
        return self.network.inputs(obs)

    def features(self, weights: MinimumWeights, obs: Float[Array, "*B D"]) -> Float[Array, "*B F"]:
        """The features of all networks."""
        phi = jax.vmap(lambda own: self.network.features(own, obs), out_axes=-2)(weights.each)
        return phi.reshape(*phi.shape[:-2], -1)

    def values(self, weights: MinimumWeights, phi: Float[Array, "*B F"]) -> Float[Array, "*B A"]:
        """The lowest value of each action."""
        apart = phi.reshape(*phi.shape[:-1], self.members, -1)
        q = jax.vmap(self.network.values, in_axes=(0, -2), out_axes=-1)(weights.each, apart)
        return jnp.where(weights.counts > 0.0, q, jnp.inf).min(axis=-1)

    def training_values(self, weights: MinimumWeights, obs: Float[Array, "B D"]) -> Float[Array, "B A"]:
        """Q(s, .), the values of the features."""
        return self.values(weights, self.features(weights, obs))

    def sizes(self, weights: MinimumWeights) -> tuple[int, int]:
        """D and A, the same for each network."""
        return self.network.sizes(jax.tree.map(lambda leaf: leaf[0], weights.each))


def placed(stack: Any, place: Array, one: Any) -> Any:
    """Replaces one network's weights in the stack."""
    return jax.tree.map(lambda many, new: jax.lax.dynamic_update_index_in_dim(many, new, place, 0), stack, one)


def at_place(stack: Any, place: Array) -> Any:
    """Returns the weights of the network at that place."""
    return jax.tree.map(lambda many: jax.lax.dynamic_index_in_dim(many, place, 0, keepdims=False), stack)
