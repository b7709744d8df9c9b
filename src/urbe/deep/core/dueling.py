"""A dueling Q-network with normalised layers: it learns small differences between actions of nearly equal value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from urbe import checks
from urbe.deep.core.networks import Layer, Layers, init_layers

STEADY = 1e-5
"""Added to the variance of a layer's units, so that equal ones are not divided by zero."""


class Norm(NamedTuple):
    """Scale and offset of each unit after a layer is normalised."""

    scale: Float[Array, " F"]
    offset: Float[Array, " F"]


class DuelingWeights(NamedTuple):
    """Hidden layers with their norms, and the two outputs."""

    hidden: Layers
    norms: tuple[Norm, ...]
    value: Layer
    advantage: Layer


@dataclass(frozen=True)
class DuelingNetwork:
    """The value of a state and the advantages of its actions, from common features [Wang2016].

        Q(s, a) = V(s) + A(s, a) - mean_b A(s, b)

    Hidden layers are linear, then normalised over their units [Ba2016], then ReLU. The common part of all actions is
    learned once, so that small differences between them are learned, too.

    Args:
      hidden: units of each hidden layer; the last gives the features.
    """

    hidden: tuple[int, ...] = (64, 64)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))  # settings are hashed, but lists cannot be
        if not self.hidden:
            raise ValueError("hidden is empty, expected at least one layer: its units are the features.")
        for i, units in enumerate(self.hidden):
            checks.whole_number(f"hidden[{i}]", units, 1)

    @property
    def n_features(self) -> int:
        """The units of the last hidden layer."""
        return self.hidden[-1]

    def init(self, key: jax.Array, obs_size: int, n_actions: int) -> DuelingWeights:
        """Layers as `Network` draws them, neutral norms, and outputs near zero. The key is consumed."""
        for_hidden, for_value, for_advantage = jax.random.split(key, 3)
        norms = tuple(Norm(jnp.ones(n, jnp.float32), jnp.zeros(n, jnp.float32)) for n in self.hidden)

        def small(key: jax.Array, outputs: int) -> Layer:
            (layer,) = init_layers(key, (self.n_features, outputs))
            return layer._replace(weight=jnp.float32(0.1) * layer.weight)

        hidden = init_layers(for_hidden, (obs_size, *self.hidden))
        return DuelingWeights(hidden, norms, small(for_value, 1), small(for_advantage, n_actions))

    def inputs(self, obs: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        """Returns observations unchanged."""
        return obs

    def features(self, weights: DuelingWeights, obs: Float[Array, "*B D"]) -> Float[Array, "*B F"]:
        """The activations of the last hidden layer."""
        x = obs
        for layer, norm in zip(weights.hidden, weights.norms, strict=True):
            x = jax.nn.relu(_normalised(x @ layer.weight + layer.bias, norm))
        return x

    def values(self, weights: DuelingWeights, phi: Float[Array, "*B F"]) -> Float[Array, "*B A"]:
        """V + A - mean A."""
        value = phi @ weights.value.weight + weights.value.bias
        advantage = phi @ weights.advantage.weight + weights.advantage.bias
        return value + advantage - advantage.mean(axis=-1, keepdims=True)

    def training_values(self, weights: DuelingWeights, obs: Float[Array, "B D"]) -> Float[Array, "B A"]:
        """Q(s, .), the values of the features."""
        return self.values(weights, self.features(weights, obs))

    def sizes(self, weights: DuelingWeights) -> tuple[int, int]:
        """D and A, from the first layer and the advantages."""
        return int(weights.hidden[0].weight.shape[0]), int(weights.advantage.bias.shape[0])


def _normalised(x: Float[Array, "*B F"], norm: Norm) -> Float[Array, "*B F"]:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + jnp.float32(STEADY)) * norm.scale + norm.offset
