"""The dueling network against NumPy in float64, and as a part of agents."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.deep import DuelingNetwork, dqn, load
from urbe.simulators import CartPole
from urbe.testing import check_network


def by_numpy(weights, obs):
    x = np.asarray(obs, np.float64)
    for layer, norm in zip(weights.hidden, weights.norms, strict=True):
        x = x @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias, np.float64)
        x = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        x = np.maximum(x * np.asarray(norm.scale, np.float64) + np.asarray(norm.offset, np.float64), 0.0)
    value, advantage = (
        x @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias, np.float64)
        for layer in (weights.value, weights.advantage)
    )
    return value + advantage - advantage.mean(axis=-1, keepdims=True)


def test_values_are_those_of_numpy():
    network = DuelingNetwork((16, 12))
    weights = network.init(jax.random.key(1), 3, 4)
    weights = jax.tree.map(lambda leaf: leaf + 0.1 * jnp.sin(jnp.arange(leaf.size).reshape(leaf.shape)), weights)
    obs = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)), jnp.float32)
    found = network.values(weights, network.features(weights, obs))
    np.testing.assert_allclose(found, by_numpy(weights, obs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hidden", [(8,), (16, 12, 6)])
def test_it_is_a_network(hidden):
    check_network(DuelingNetwork(hidden))


def test_agents_learn_with_it_and_are_saved(tmp_path):
    agent = dqn(CartPole(), seed=0, network=DuelingNetwork((8, 8)), capacity=100, warm_up=20, batch=8, log_every=50)
    agent.learn(60)
    agent.save(tmp_path / "agent.safetensors")
    again = load(tmp_path / "agent.safetensors")
    assert again.trainer.settings.network == DuelingNetwork((8, 8))
    assert again.learn(20).predict([0.0, 0.0, 0.1, 0.0]) == agent.learn(20).predict([0.0, 0.0, 0.1, 0.0])


@pytest.mark.parametrize(("hidden", "message"), [((), "hidden is empty"), ((8, 0), r"hidden\[1\] is 0")])
def test_bad_layers_are_named(hidden, message):
    with pytest.raises(ValueError, match=message):
        DuelingNetwork(hidden)
