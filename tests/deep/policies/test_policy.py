"""Policies: greedy and noisy actions against NumPy, the values behind them, and errors."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles.paper_agent import as_lists, forward
from urbe.deep.core.last_layer import LastLayer
from urbe.deep.core.learner import init_learner
from urbe.deep.core.precision import double
from urbe.deep.core.variances import NoVariance
from urbe.deep.policies.policy import Policy, act
from urbe.deep.settings import Network, Settings

HEAD = LastLayer(beta=3.0, hidden=(5,))
SETTINGS = Settings(network=Network((8, 6), (2.0, 1.0, 0.5)), variance=HEAD, capacity=4, warm_up=1)
OBS = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def learner():
    with double():
        return jax.jit(lambda key: init_learner(SETTINGS, key, 3, 4, 1, 1))(jax.random.key(0))


@pytest.fixture(scope="module")
def policy(learner):
    return Policy.of(SETTINGS, learner)


def in_numpy(learner):
    """Q and w of all observations."""
    nets = [as_lists(net) for net in (learner.q, learner.head.layers)]
    found = forward(nets[0], OBS / np.array([2.0, 1.0, 0.5]))
    return found[-1], forward(nets[1], found[-2])[-1]


def test_values_are_those_of_the_networks(policy, learner):
    q, w = in_numpy(learner)
    found = policy.values(OBS)
    np.testing.assert_allclose(found.q, q, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.w, w, rtol=1e-4, atol=1e-5)
    one = policy.values(OBS[3])
    assert one.q.shape == one.w.shape == (4,)
    np.testing.assert_allclose(one.q, q[3], rtol=1e-4, atol=1e-5)


def test_without_a_generator_the_best_action_is_taken(policy, learner):
    actions = policy.predict(OBS)
    assert np.array_equal(actions, in_numpy(learner)[0].argmax(-1))
    assert len(set(actions.tolist())) > 1
    one = policy.predict(OBS[5])
    assert type(one) is int
    assert one == actions[5]
    assert policy.predict(OBS[5].tolist()) == one


def test_with_a_generator_values_are_perturbed_by_the_root_of_w(policy, learner):
    q, w = in_numpy(learner)
    noise = np.random.default_rng(7).standard_normal((200, 4), dtype=np.float32)
    expected = (q + 3.0 * noise * np.sqrt(np.maximum(w, 0.0))).argmax(-1)
    found = policy.predict(OBS, np.random.default_rng(7))
    assert np.array_equal(found, expected)
    assert (found != policy.predict(OBS)).any()
    assert np.array_equal(found, policy.predict(OBS, np.random.default_rng(7)))
    assert not np.array_equal(found, policy.predict(OBS, np.random.default_rng(8)))


def test_without_a_head_noise_changes_nothing(learner):
    plain = Policy.of(replace(SETTINGS, variance=NoVariance()), learner._replace(head=None))
    assert not plain.is_noisy
    assert plain.values(OBS).w is None
    assert np.array_equal(plain.predict(OBS, np.random.default_rng(0)), plain.predict(OBS))


def test_acting_is_the_same_without_64_bits(policy):
    noise = jnp.asarray(np.random.default_rng(1).standard_normal((200, 4), dtype=np.float32))
    obs = jnp.asarray(OBS)
    narrow = act(SETTINGS, policy.weights, obs, noise)
    with double():
        wide = act(SETTINGS, policy.weights, obs, noise)
    assert narrow.dtype == wide.dtype == np.int32
    assert np.array_equal(narrow, wide)
    assert np.array_equal(act(SETTINGS, policy.weights, obs, None), policy.predict(OBS))


@pytest.mark.parametrize("shape", [(2,), (4,), (5, 2), (1, 5, 3), ()])
def test_observations_of_another_shape_are_refused(policy, shape):
    with pytest.raises(ValueError, match=r"obs has shape .*, expected \(3,\) or \(B, 3\)"):
        policy.predict(np.zeros(shape))
    with pytest.raises(ValueError, match="obs has shape"):
        policy.values(np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_action_differs_from_what_is_no_number(policy, bad):
    with pytest.raises(ValueError, match=r"obs\[1, 2\] is not finite, expected a number"):
        policy.predict([[0.0, 0.0, 0.0], [0.0, 0.0, bad]])
