"""Mini-batches in columns have the values and gradients of the same mini-batches in rows."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.deep.core.networks import Layer, q_values
from urbe.deep.settings import Network

# narrow and wide layers, whose gradients are computed in different ways
SIZES = [(1, 1, 1), (3, 15, 16, 4), (40, 17, 5), (2, 16, 16, 20), (9, 9, 9), (8, 30, 8), (40, 3, 12, 20)]


def normal(rng, *shape):
    return jnp.asarray(rng.normal(size=shape), jnp.float32)


@pytest.mark.parametrize(("rows", "sizes"), [(1, SIZES[0]), (1, SIZES[1]), *((33, sizes) for sizes in SIZES)])
def test_values_and_gradients_are_those_of_rows(rows, sizes):
    rng = np.random.default_rng(rows)
    network = Network(hidden=sizes[1:-1], scale=(2.0,))
    layers = tuple(Layer(normal(rng, i, o), normal(rng, o)) for i, o in pairwise(sizes))
    obs, slope = normal(rng, rows, sizes[0]), normal(rng, rows, sizes[-1])

    def found(values):
        return jax.jit(jax.value_and_grad(lambda *at: (jnp.tanh(values(*at) / 50) * slope).sum(), argnums=(0, 1)))(
            layers, obs
        )

    ours = found(lambda layers, obs: network.training_values(layers, obs))
    theirs = found(lambda layers, obs: q_values(network, layers, obs))
    for mine, plain in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert mine.shape == plain.shape
        scale = max(1.0, float(jnp.abs(plain).max()))
        np.testing.assert_allclose(mine / scale, plain / scale, atol=1e-5)  # sums of 40 float32 products


def test_a_unit_at_rest_passes_nothing_back():
    """Where a unit is exactly zero, its slope is zero, as in JAX."""
    layers = (Layer(jnp.zeros((1, 2), jnp.float32), jnp.asarray([0.0, 1.0])), Layer(jnp.ones((2, 1)), jnp.zeros(1)))
    slopes = jax.grad(lambda layers: Network(hidden=(2,)).training_values(layers, jnp.ones((3, 1), jnp.float32)).sum())(
        layers
    )
    assert slopes[0].weight.tolist() == [[0.0, 3.0]]
    assert slopes[0].bias.tolist() == [0.0, 3.0]
