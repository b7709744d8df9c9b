"""Cached targets equal those recomputed for every mini-batch, in the right order."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles.paper_agent import as_lists, forward, mixture
from urbe.deep.core.natures import Average, CVaR, Soft, Worst
from urbe.deep.core.networks import init_layers
from urbe.deep.core.precision import double
from urbe.deep.core.replay import Successors, init_replay
from urbe.deep.core.targets import at, member_targets, update_targets
from urbe.deep.settings import Network, Settings

D, K, J, N = 3, 4, 2, 150
QUICK = {"xla_backend_optimization_level": 0}
SETTINGS = Settings(network=Network((8, 6)))


@pytest.fixture(autouse=True)
def _double():
    with double():
        yield


@cache
def layers(seed):
    return init_layers(jax.random.key(seed), (D, 8, 6, 3))


def random_successors(seed, n=N, k=K):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(J), size=(n, k))
    weight = 0.9 * p * (rng.random((n, k, J)) < 0.8)
    leaves = (rng.normal(size=(n, k)), weight, rng.normal(size=(n, k, J, D)))
    return Successors(*(jnp.asarray(leaf, jnp.float32) for leaf in leaves))


def in_numpy(target, online, successors):
    """y_k of every transition, in float64 and loops."""

    def q(net, obs):
        return forward(as_lists(net), obs)[-1]

    gain, weight, obs = (np.asarray(leaf, float) for leaf in successors)
    y = gain.copy()
    for n, k, j in np.ndindex(weight.shape):
        values = q(target, obs[n, k, j])
        best = values.max() if online is None else values[q(online, obs[n, k, j]).argmax()]
        y[n, k] += weight[n, k, j] * best
    return y


@pytest.mark.parametrize("double_q", [False, True])
def test_member_targets_are_the_formula(double_q):
    successors = random_successors(0, n=20)
    settings = replace(SETTINGS, double=double_q)
    found = jax.jit(partial(member_targets, settings))(layers(0), layers(1), successors)
    expected = in_numpy(layers(0), layers(1) if double_q else None, successors)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_without_weight_nothing_follows():
    successors = random_successors(1)._replace(weight=jnp.zeros((N, K, J), jnp.float32))
    assert jnp.array_equal(compute(layers(0), layers(0), successors), successors.gain)


@pytest.fixture(scope="module")
def full():
    with double():
        empty = init_replay(N, D, K, J)
        return empty._replace(successors=random_successors(2), inserted=jnp.int32(N))


@pytest.fixture(scope="module")
def update():
    return jax.jit(partial(update_targets, SETTINGS), compiler_options=QUICK)


compute = jax.jit(partial(member_targets, SETTINGS), compiler_options=QUICK)


def some_stale(seed, share):
    """Stamps of version 5, a share of them older; old targets are wrong by much."""
    rng = np.random.default_rng(seed)
    return jnp.asarray(np.where(rng.random(N) < share, rng.choice([-1, 3, 4], size=N), 5), jnp.int32)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 1.0])
@pytest.mark.parametrize("batch", [1, 32, 33, 100])  # 32 places of eight successors are computed at once
def test_a_minibatch_is_brought_up_to_date_and_nothing_else(full, update, batch, share):
    target, version = layers(3), jnp.int32(5)
    naive = compute(target, target, full.successors)
    stamp = some_stale(batch, share)
    fresh = (stamp == 5)[:, None]
    replay = full._replace(target=jnp.where(fresh, naive, 1e6), stamp=stamp)
    rng = np.random.default_rng(batch)
    for places in (rng.integers(N, size=batch), rng.integers(3, size=batch)):  # the second with many duplicates
        at_places = jnp.asarray(places, jnp.int32)
        after = update(replay, target, version, at_places)
        np.testing.assert_allclose(after.target[at_places], naive[at_places], rtol=1e-5, atol=1e-5)
        assert (after.stamp[at_places] == 5).all()
        untouched = np.setdiff1d(np.arange(N), places)
        assert jnp.array_equal(after.target[untouched], replay.target[untouched])
        assert jnp.array_equal(after.stamp[untouched], stamp[untouched])
        same = ("obs", "action", "successors", "last", "next_obs", "next_action", "inserted")
        assert all(jax.tree.all(jax.tree.map(jnp.array_equal, *(getattr(r, n) for r in (after, replay)))) for n in same)


def test_what_is_fresh_is_not_computed_again(full, update):
    """Kept numbers of the right version are believed: that is what the cache is for."""
    replay = full._replace(target=jnp.full((N, K), 7.0, jnp.float32), stamp=jnp.full(N, 2, jnp.int32))
    places = jnp.asarray([4, 9, 4], jnp.int32)
    assert jnp.array_equal(update(replay, layers(0), jnp.int32(2), places).target, replay.target)
    assert (update(replay, layers(0), jnp.int32(3), places).target[places] != 7.0).all()


def test_a_larger_set_is_never_better():
    """Targets under nested sets are ordered, whatever the network: the worst of more members is lower."""
    successors = random_successors(7)
    values = compute(layers(0), layers(0), successors)
    last = None
    for k in range(1, K + 1):
        y = np.asarray((Worst().weights(values[:, :k]) * values[:, :k]).sum(-1))
        assert last is None or (y <= last).all()
        last = y
    assert np.array_equal(last, np.asarray(values.min(axis=-1)))


@pytest.mark.parametrize("nature", [Average(), Worst(), Soft((0.4, 0.3, 0.2, 0.1)), CVaR(0.6)])
def test_one_cache_serves_every_nature(full, update, nature):
    places = jnp.arange(40, dtype=jnp.int32)
    values = update(full, layers(0), jnp.int32(0), places).target[places]
    expected = [mixture(nature, list(y)) for y in in_numpy(layers(0), None, at(full.successors, places))]
    np.testing.assert_allclose((nature.weights(values) * values).sum(-1), expected, rtol=1e-5, atol=1e-5)
