"""Networks: values against plain formulas, initial weights against their distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles.paper_agent import as_lists, forward
from urbe.deep.core.last_layer import LastLayer, features, head_values
from urbe.deep.core.networks import (
    hidden,
    init_layers,
    output,
    q_values,
)
from urbe.deep.settings import Network


def normal(rng, *shape):
    return jnp.asarray(rng.normal(size=shape), jnp.float32)


def test_values_are_those_of_numpy():
    layers = init_layers(jax.random.key(0), (3, 20, 18, 4))
    layers = tuple(layer._replace(bias=layer.bias + 0.1) for layer in layers)
    obs = normal(np.random.default_rng(0), 2, 5, 3)
    expected = forward(as_lists(layers), np.asarray(obs))
    np.testing.assert_allclose(hidden(layers, obs), expected[-2], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(q_values(Network((20, 18)), layers, obs), expected[-1], rtol=1e-4, atol=1e-5)
    assert jnp.array_equal(output(layers, hidden(layers, obs)), q_values(Network((20, 18)), layers, obs))
    head = head_values(LastLayer(), layers, obs)
    assert jnp.array_equal(head, q_values(Network((20, 18)), layers, obs))
    np.testing.assert_allclose(
        head_values(LastLayer(non_negative=True), layers, obs), np.log1p(np.exp(expected[-1])), rtol=1e-4, atol=1e-5
    )


def test_observations_are_divided_by_the_scale():
    obs = jnp.asarray([[1.0, 2.0, 3.0]], jnp.float32)
    assert jnp.array_equal(Network().inputs(obs), obs)
    assert Network(scale=(2.0,)).inputs(obs).tolist() == [[0.5, 1.0, 1.5]]
    assert Network(scale=(1.0, 2.0, 4.0)).inputs(obs).tolist() == [[1.0, 1.0, 0.75]]
    with jax.enable_x64(True):
        assert Network(scale=(2.0,)).inputs(obs).dtype == jnp.float32


def test_first_weights_are_uniform_with_variance_two_over_inputs():
    layers = init_layers(jax.random.key(3), (50, 400, 100))
    for layer, inputs in zip(layers, (50, 400), strict=True):
        weight = np.asarray(layer.weight, float)
        limit = np.sqrt(6.0 / inputs)
        assert np.abs(weight).max() <= limit * (1 + 1e-6)
        assert np.abs(weight).max() > 0.99 * limit
        # the mean of n squares of uniforms has the relative deviation sqrt(4 / 5n): five of them, one in 2e6 seeds
        assert weight.var() == pytest.approx(2.0 / inputs, rel=5 * np.sqrt(0.8 / weight.size))
        assert not np.asarray(layer.bias).any()
        assert layer.weight.dtype == jnp.float32
    assert len(np.unique(np.concatenate([layer.weight.ravel()[:100] for layer in layers]))) == 200  # no key twice
    with jax.enable_x64(True):
        again = init_layers(jax.random.key(3), (50, 400, 100))
    for a, b in zip(jax.tree.leaves(layers), jax.tree.leaves(again), strict=True):
        assert b.dtype == jnp.float32
        assert jnp.array_equal(a, b)


def test_first_weights_and_biases_as_pytorch_draws_them():
    layers = init_layers(jax.random.key(3), (50, 400, 100), "torch")
    for layer, inputs in zip(layers, (50, 400), strict=True):
        for array in (np.asarray(layer.weight, float), np.asarray(layer.bias, float)):
            limit = 1.0 / np.sqrt(inputs)
            assert 0.95 * limit < np.abs(array).max() <= limit * (1 + 1e-6)
            assert array.var() == pytest.approx(limit**2 / 3.0, rel=5 * np.sqrt(0.8 / array.size))
    drawn = np.concatenate([leaf.ravel()[:100] for leaf in jax.tree.leaves(layers)])
    assert len(np.unique(drawn / np.repeat([50**-0.5, 50**-0.5, 0.05, 0.05], 100))) == 400  # no key twice


def test_features_as_sigma_sees_them():
    phi = jnp.asarray([[3.0, 4.0], [0.0, 0.0]], jnp.float32)
    assert jnp.array_equal(features(LastLayer(), phi), phi)
    unit = features(LastLayer(normalise=True), phi)
    assert np.asarray(unit[0]) == pytest.approx(np.array([3.0, 4.0]) / np.sqrt(12.5))
    assert unit[1].tolist() == [0.0, 0.0]  # dead units: no division by zero
    assert features(LastLayer(constant=True), phi).tolist() == [[3.0, 4.0, 1.0], [0.0, 0.0, 1.0]]
    both = features(LastLayer(normalise=True, constant=True), phi)
    assert np.asarray(both[0]) == pytest.approx([3 / np.sqrt(12.5), 4 / np.sqrt(12.5), 1.0])
