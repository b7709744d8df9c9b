"""Q-networks: the protocol, and fully connected ReLU layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from urbe import checks
from urbe.deep.core import tricks


@runtime_checkable
class QNetwork(Protocol):
    """Q(s, .) as a function, often linear, of features phi(s). Networks must be hashable; see `check_network`."""

    @property
    def n_features(self) -> int:
        """F, the length of phi."""

    def init(self, key: jax.Array, obs_size: int, n_actions: int) -> Any:
        """Random weights: float32 arrays in nested tuples, named tuples, lists or dicts. The key is consumed."""

    def inputs(self, obs: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        """Converts observations to inputs of the first layer."""

    def features(self, weights: Any, obs: Float[Array, "*B D"]) -> Float[Array, "*B F"]:
        """phi(s), the inputs of the last layer."""

    def values(self, weights: Any, phi: Float[Array, "*B F"]) -> Float[Array, "*B A"]:
        """Q(s, .)."""

    def training_values(self, weights: Any, obs: Float[Array, "B D"]) -> Float[Array, "B A"]:
        """Q(s, .) of a minibatch for its gradient: `values(features(obs))`, possibly computed faster."""

    def sizes(self, weights: Any) -> tuple[int, int]:
        """D and A, from the shapes of the weights."""


class Layer(NamedTuple):
    """x -> x weight + bias."""

    weight: Float[Array, "I O"]
    bias: Float[Array, " O"]


Layers = tuple[Layer, ...]


@dataclass(frozen=True)
class Network:
    """The Q-network: ReLU layers, then one linear output per action; its last hidden layer gives the features.

    Args:
      hidden: units of each hidden layer.
      scale: divisor of observations before the first layer, one number per entry or one for all. The paper does not
        state it; raw observations (1) and scaled ones behave differently on CartPole.
      initial: distribution of weights. "he": uniform with variance 2 / inputs, biases zero [He2015]. "torch": weights
        and biases uniform within 1 / sqrt(inputs), PyTorch's default, for which learning rates of other libraries were
        tuned. Not in the paper.
    """

    hidden: tuple[int, ...] = (128, 128, 128)
    scale: tuple[float, ...] = (1.0,)
    initial: Literal["he", "torch"] = "he"

    def __post_init__(self) -> None:
        for name in ("hidden", "scale"):  # settings are hashed, but lists cannot be
            fits = isinstance(getattr(self, name), Iterable)
            checks.kind(name, getattr(self, name), fits, "a tuple of numbers, such as (64, 64) or (1.0,)")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.hidden:
            raise ValueError("hidden is empty, expected at least one layer: its units are the features.")
        for i, units in enumerate(self.hidden):
            checks.whole_number(f"hidden[{i}]", units, 1)
        if not self.scale:
            raise ValueError("scale is empty, expected one number, or one per entry of an observation.")
        for i, divisor in enumerate(self.scale):
            checks.positive(f"scale[{i}]", divisor)
        checks.one_of("initial", self.initial, ("he", "torch"))

    @property
    def n_features(self) -> int:
        """The units of the last hidden layer."""
        return self.hidden[-1]

    def init(self, key: jax.Array, obs_size: int, n_actions: int) -> Layers:
        """Random layers; see `initial`. The key is consumed."""
        return init_layers(key, (obs_size, *self.hidden, n_actions), self.initial)

    def inputs(self, obs: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        """Observations divided by `scale`."""
        if self.scale == (1.0,):
            return obs
        if len(self.scale) not in (1, obs.shape[-1]):
            raise ValueError(
                f"scale has {len(self.scale)} entries, expected 1 or {obs.shape[-1]}, one per entry of an observation."
            )
        return obs / jnp.asarray(self.scale, jnp.float32)

    def features(self, weights: Layers, obs: Float[Array, "*B D"]) -> Float[Array, "*B F"]:
        """The activations of the last hidden layer."""
        return hidden(weights, self.inputs(obs))

    def values(self, weights: Layers, phi: Float[Array, "*B F"]) -> Float[Array, "*B A"]:
        """Q(s, .), by the last layer."""
        return output(weights, phi)

    def training_values(self, weights: Layers, obs: Float[Array, "B D"]) -> Float[Array, "B A"]:
        """Applies the same layers to a minibatch in columns."""
        dense = tricks.dense_columns
        return output(weights, hidden(weights, self.inputs(obs).T, dense), dense).T

    def sizes(self, weights: Layers) -> tuple[int, int]:
        """Inputs of the first layer, outputs of the last."""
        return int(weights[0].weight.shape[0]), int(weights[-1].bias.shape[0])


def init_layers(key: jax.Array, sizes: tuple[int, ...], initial: Literal["he", "torch"] = "he") -> Layers:
    """Random weights; see `Network.initial`. The key is consumed."""
    keys = jax.random.split(key, len(sizes) - 1)
    return tuple(_LAYERS[initial](k, i, o) for k, i, o in zip(keys, sizes[:-1], sizes[1:], strict=True))


def _he(key: jax.Array, inputs: int, outputs: int) -> Layer:
    return Layer(_uniform(key, (inputs, outputs), (6.0 / inputs) ** 0.5), jnp.zeros(outputs, jnp.float32))


def _torch(key: jax.Array, inputs: int, outputs: int) -> Layer:
    weight, bias = jax.random.split(key)
    largest = (1.0 / inputs) ** 0.5
    return Layer(_uniform(weight, (inputs, outputs), largest), _uniform(bias, (outputs,), largest))


def _uniform(key: jax.Array, shape: tuple[int, ...], largest: float) -> Array:
    drawn: Array = jax.random.uniform(key, shape, jnp.float32, -1.0, 1.0) * jnp.float32(largest)
    return drawn


_LAYERS = {"he": _he, "torch": _torch}


def dense_rows(
    rectified: bool, x: Float[Array, "*B I"], weight: Float[Array, "I O"], bias: Float[Array, " O"]
) -> Float[Array, "*B O"]:
    """max(x W + b, 0), or without the maximum."""
    y = (x.reshape(-1, x.shape[-1]) @ weight + bias).reshape(*x.shape[:-1], -1)
    return jax.nn.relu(y) if rectified else y


Dense = Callable[[bool, Array, Array, Array], Array]
"""One layer: `(rectified, x, weight, bias) -> y`, on rows or on columns."""


def hidden(layers: Layers, x: Array, dense: Dense = dense_rows) -> Array:
    """The activations before the last layer, `(*B, F)`; in columns, `(F, B)`."""
    for layer in layers[:-1]:
        x = dense(True, x, *layer)
    return x


def output(layers: Layers, x: Array, dense: Dense = dense_rows) -> Array:
    """Only the last layer, `(*B, O)`; in columns, `(O, B)`."""
    return dense(False, x, *layers[-1])


def q_values(network: QNetwork, weights: Any, obs: Float[Array, "*B D"]) -> Float[Array, "*B A"]:
    """Q(s, .), the values of all actions."""
    return network.values(weights, network.features(weights, obs))
