"""Fully connected ReLU networks, as tuples of layers."""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from urbe.deep.core.settings import Network
from urbe.deep.core.variances import LastLayer


class Layer(NamedTuple):
    """x -> x weight + bias."""

    weight: Float[Array, "I O"]
    bias: Float[Array, " O"]


Layers = tuple[Layer, ...]


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


def hidden(layers: Layers, x: Float[Array, "*B I"]) -> Float[Array, "*B F"]:
    """The activations before the last layer."""
    for layer in layers[:-1]:
        x = jax.nn.relu(_affine(x, layer))
    return x


def output(layers: Layers, x: Float[Array, "*B F"]) -> Float[Array, "*B O"]:
    """The last layer alone."""
    return _affine(x, layers[-1])


def _affine(x: Float[Array, "*B I"], layer: Layer) -> Float[Array, "*B O"]:
    rows = x.reshape(-1, x.shape[-1]) @ layer.weight + layer.bias
    return rows.reshape(*x.shape[:-1], -1)


def scaled(network: Network, obs: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
    """Observations as the first layer gets them."""
    if network.scale == (1.0,):
        return obs
    if len(network.scale) not in (1, obs.shape[-1]):
        raise ValueError(
            f"scale has {len(network.scale)} entries, expected 1 or {obs.shape[-1]}, one per entry of an observation."
        )
    return obs / jnp.asarray(network.scale, jnp.float32)


def q_values(network: Network, layers: Layers, obs: Float[Array, "*B D"]) -> Float[Array, "*B A"]:
    """Q(s, .)."""
    return output(layers, hidden(layers, scaled(network, obs)))


def head_values(variance: LastLayer, layers: Layers, x: Float[Array, "*B I"]) -> Float[Array, "*B A"]:
    """w(s, .), from phi or, with `raw_input`, from the scaled observation."""
    w = output(layers, hidden(layers, x))
    return jax.nn.softplus(w) if variance.non_negative else w


def features(variance: LastLayer, phi: Float[Array, "*B F"]) -> Float[Array, "*B G"]:
    """phi as Sigma sees it: normalised and with a constant where wanted."""
    if variance.normalise:
        phi = phi * jax.lax.rsqrt(jnp.mean(phi * phi, axis=-1, keepdims=True) + jnp.float32(1e-8))
    if variance.constant:
        phi = jnp.concatenate([phi, jnp.ones((*phi.shape[:-1], 1), jnp.float32)], axis=-1)
    return phi


def n_features(network: Network, variance: LastLayer) -> int:
    """G, the length of `features`."""
    return network.hidden[-1] + int(variance.constant)
