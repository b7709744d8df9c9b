"""Fully connected ReLU networks, as tuples of layers."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from urbe.deep.settings import Network
from urbe.deep.variances import LastLayer

FEW = 4
"""Outputs of a layer up to which its gradient is a few sums instead of a product."""

LARGE = 3e38
"""Times any positive activation it is above 1, but for denormal numbers."""


class Layer(NamedTuple):
    """x -> x weight + bias."""

    weight: Float[Array, "I O"]
    bias: Float[Array, " O"]


Layers = tuple[Layer, ...]


def init_layers(key: jax.Array, sizes: tuple[int, ...]) -> Layers:
    """Weights uniform with variance 2 / inputs [He2015], biases zero. The key is consumed."""
    keys = jax.random.split(key, len(sizes) - 1)
    return tuple(
        Layer(
            jax.random.uniform(k, (i, o), jnp.float32, -1.0, 1.0) * jnp.float32((6.0 / i) ** 0.5),
            jnp.zeros(o, jnp.float32),
        )
        for k, i, o in zip(keys, sizes[:-1], sizes[1:], strict=True)
    )


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def dense(
    rectified: bool, x: Float[Array, "B I"], weight: Float[Array, "I O"], bias: Float[Array, " O"]
) -> Float[Array, "B O"]:
    """max(x weight + bias, 0), or without the maximum; its gradient is written out for speed.

    x' dy has its first factor transposed, which XLA's product on a CPU takes 1.7x as long for; laid out first, it
    costs a tenth of that. A test holds the gradient against JAX's own.
    """
    y = x @ weight + bias
    return jax.nn.relu(y) if rectified else y


def _dense_forward(rectified: bool, x: Array, weight: Array, bias: Array) -> tuple[Array, tuple[Array, ...]]:
    y = dense(rectified, x, weight, bias)
    return y, (x, weight, y)


def _dense_backward(rectified: bool, kept: tuple[Array, ...], dy: Array) -> tuple[Array, Array, Array]:
    x, weight, y = kept
    if rectified:  # no selection: it becomes a branch for each entry, mispredicted every other time
        dy = dy * jnp.minimum(y * LARGE, 1.0)
    n_out = weight.shape[1]
    if n_out <= FEW:  # sums are faster than so narrow a product
        gradient = jnp.stack([(x * dy[:, o : o + 1]).sum(axis=0) for o in range(n_out)], axis=1)
    else:
        gradient = jax.lax.optimization_barrier(x.T) @ dy  # type: ignore[no-untyped-call]
    return dy @ weight.T, gradient, dy.sum(axis=0)


dense.defvjp(_dense_forward, _dense_backward)


def hidden(layers: Layers, x: Float[Array, "*B I"]) -> Float[Array, "*B F"]:
    """The activations before the last layer."""
    for layer in layers[:-1]:
        x = _rows(True, x, layer)
    return x


def output(layers: Layers, x: Float[Array, "*B F"]) -> Float[Array, "*B O"]:
    """The last layer alone."""
    return _rows(False, x, layers[-1])


def _rows(rectified: bool, x: Float[Array, "*B I"], layer: Layer) -> Float[Array, "*B O"]:
    return dense(rectified, x.reshape(-1, x.shape[-1]), *layer).reshape(*x.shape[:-1], -1)


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
