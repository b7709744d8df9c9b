"""A gated recurrent unit: the memory of an agent as a vector of fixed length [Cho2014].

z  = sigmoid(x W_z + h U_z + b_z)              update gate
g  = sigmoid(x W_g + h U_g + b_g)              reset gate
n  = tanh(x W_n + g (h U_n) + b_n)
h' = (1 - z) n + z h
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class GRU(NamedTuple):
    """The three parts side by side, in the order z, g, n."""

    inputs: Float[Array, "I G"]  # G = 3 H
    hidden: Float[Array, "H G"]
    bias: Float[Array, " G"]


def init_gru(key: jax.Array, inputs: int, units: int) -> GRU:
    """Uniform within 1 / sqrt(units), biases zero. The key is consumed."""
    of_inputs, of_hidden = jax.random.split(key)
    largest = float(units) ** -0.5
    return GRU(
        jax.random.uniform(of_inputs, (inputs, 3 * units), jnp.float32, -largest, largest),
        jax.random.uniform(of_hidden, (units, 3 * units), jnp.float32, -largest, largest),
        jnp.zeros(3 * units, jnp.float32),
    )


def gru_step(gru: GRU, h: Float[Array, "*B H"], x: Float[Array, "*B I"]) -> Float[Array, "*B H"]:
    """h', the hidden state after the input x."""
    return gated(h, x @ gru.inputs + gru.bias, h @ gru.hidden)


def gated(h: Float[Array, "*B H"], of_x: Float[Array, "*B G"], of_h: Float[Array, "*B G"]) -> Float[Array, "*B H"]:
    """h' from the two products; products of many inputs can be computed at once, before the first step."""
    x_z, x_g, x_n = jnp.split(of_x, 3, axis=-1)
    h_z, h_g, h_n = jnp.split(of_h, 3, axis=-1)
    z, g = jax.nn.sigmoid(x_z + h_z), jax.nn.sigmoid(x_g + h_g)
    return (1.0 - z) * jnp.tanh(x_n + g * h_n) + z * h
