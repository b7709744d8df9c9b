"""The Kalman filter of the last layer: ridge regression, one transition at a time, a singleton set, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.deep import Adam, DuelingNetwork, KalmanLastLayer, Network, deep_rok, load
from urbe.deep.core.precision import double
from urbe.simulators import CartPole, UncertaintySet


def data(n=12, features=4, actions=2, seed=0):
    rng = np.random.default_rng(seed)
    taken = np.eye(actions)[rng.integers(0, actions, n)]
    return rng.normal(size=(n, features)), taken, rng.normal(size=n)


def run(kalman, phi, taken, y, theta=None, covariance=None):
    """Weights and P after a mini-batch of targets."""
    size, actions = phi.shape[1] + 1, taken.shape[1]
    theta = np.zeros((actions, size)) if theta is None else theta
    if covariance is None:
        covariance = jnp.broadcast_to(kalman.prior * jnp.eye(size), (actions, size, size))
    x = np.column_stack([phi, np.ones(len(phi))])
    td = y - ((x @ theta.T) * taken).sum(axis=1)
    changes, after = kalman.filtered(covariance, jnp.asarray(phi), jnp.asarray(taken), jnp.asarray(td))
    return theta + np.asarray(changes), after


def test_without_drift_it_is_ridge_regression():
    kalman, (phi, taken, y) = KalmanLastLayer(observation_noise=0.5, drift=0.0, prior=2.0), data()
    start = np.random.default_rng(1).normal(size=(2, 5))
    with double():
        theta, covariance = run(kalman, phi, taken, y, start)
        again, known = start, None
        for i in range(len(y)):  # one transition after the other
            again, known = run(kalman, phi[[i]], taken[[i]], y[[i]], again, known)
    x = np.column_stack([phi, np.ones(len(y))])
    for a in range(2):
        mine = taken[:, a] > 0
        precision = x[mine].T @ x[mine] / 0.5 + np.eye(5) / 2.0
        assert theta[a] == pytest.approx(
            np.linalg.solve(precision, x[mine].T @ y[mine] / 0.5 + start[a] / 2.0), abs=1e-12
        )
        assert np.asarray(covariance[a]) == pytest.approx(np.linalg.inv(precision), abs=1e-12)
    assert again == pytest.approx(theta, abs=1e-12)
    assert np.asarray(known) == pytest.approx(np.asarray(covariance), abs=1e-12)


def test_the_covariance_stays_positive_and_no_larger_than_before_any_data():
    kalman = KalmanLastLayer(observation_noise=1e-4, drift=0.05, prior=3.0)
    with double():
        step, covariance = jax.jit(kalman.filtered), jnp.broadcast_to(3.0 * jnp.eye(5), (2, 5, 5))
        for seed in range(300):
            phi, taken, y = data(6, seed=seed)
            phi[:, 3] = 0.0  # a dead unit is never learned about
            _, covariance = step(covariance, 100.0 * phi, taken, y)
    for p in np.asarray(covariance):
        assert (p == p.T).all()
        eigenvalues = np.linalg.eigvalsh(p)
        assert eigenvalues.min() > 0.0
        assert eigenvalues.max() <= 3.0 + 1e-9
        assert p[3, 3] == pytest.approx(3.0)


def test_the_last_layer_filters_and_the_others_follow_the_gradient():
    """Against Adam for the layers before, and the filter by hand for the last; half of the mini-batch has no error."""
    network, kalman, rng = Network(hidden=(5, 4)), KalmanLastLayer(observation_noise=1.0), np.random.default_rng(0)
    obs, td = jnp.asarray(rng.normal(size=(6, 3)), jnp.float32), jnp.asarray([1.0, -2.0, 0.5, 0, 0, 0], jnp.float32)
    action = jnp.asarray([0, 1, 0, 1, 0, 1], jnp.int32)
    with double():
        weights = network.init(jax.random.key(0), 3, 2)
        gradient = jax.tree.map(lambda x: jnp.full_like(x, 0.1), weights)
        state, rate = kalman.init(weights), jnp.float32(1e-2)
        q, after = kalman.step(network, weights, state, obs, action, td, gradient, rate, None)
        plain, _ = Adam().update(gradient, Adam().init(weights), weights, rate)
        phi = np.asarray(network.features(weights, obs), np.float64)
        _, covariance = run(kalman, phi, np.eye(2)[action], np.asarray(td))
    for layer, old, change in zip(q[:-1], weights[:-1], plain[:-1], strict=True):
        assert np.asarray(layer.weight) == pytest.approx(np.asarray(old.weight + change.weight), abs=1e-7)
    x = np.column_stack([phi, np.ones(6)])
    for a in range(2):
        mine = x[np.asarray(action) == a]
        gain = np.linalg.solve(mine @ mine.T * 0.1 + np.eye(len(mine)), mine * 0.1).T
        change = gain @ np.asarray(td)[np.asarray(action) == a]
        assert np.asarray(q[-1].weight - weights[-1].weight)[:, a] == pytest.approx(change[:-1], abs=1e-6)
        assert float(q[-1].bias[a] - weights[-1].bias[a]) == pytest.approx(change[-1], abs=1e-6)
    assert np.asarray(after.covariance) == pytest.approx(np.asarray(covariance), abs=1e-12)


def test_an_agent_is_saved_and_goes_on_bit_for_bit(tmp_path):
    poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    small = {"batch": 8, "capacity": 100, "warm_up": 20, "log_every": 50}
    agent = deep_rok(CartPole(), poles, seed=0, **small).learn(100)
    agent.save(tmp_path / "agent")
    again = load(tmp_path / "agent")
    assert again.trainer.settings == agent.trainer.settings
    ours, others = agent.learn(40).tensors(), again.learn(40).tensors()
    assert all(ours[name].tobytes() == others[name].tobytes() for name in ours)


def test_refusals():
    kalman = KalmanLastLayer()
    with pytest.raises(ValueError, match=r"of DuelingWeights, expected those of Network\(\.\.\.\), whose last layer"):
        kalman.init(DuelingNetwork(hidden=(4,)).init(jax.random.key(0), 3, 2))
    with pytest.raises(ValueError, match=r"needs TD errors, not only gradients; expected an Adam"):
        kalman.update(None, None, None, jnp.float32(0.1))
    with pytest.raises(ValueError, match=r"observation_noise is 0"):
        KalmanLastLayer(observation_noise=0.0)
    with pytest.raises(ValueError, match=r"drift is 2"):
        KalmanLastLayer(drift=2.0)
