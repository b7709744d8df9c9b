"""Inverse counts: against direct inverses, closed forms and tables of counts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.deep.core.gram import Gram, absorb, init_gram, inverse_count, rebuild, refresh
from urbe.deep.core.precision import double

MU = 0.01


@pytest.fixture(autouse=True)
def _double():
    with double():
        yield


@jax.jit
def absorb_all(gram, actions, phis):
    """One visit after the other."""
    return jax.lax.scan(lambda g, visit: (absorb(g, *visit), None), gram, (actions, phis))[0]


asked = jax.jit(inverse_count)


def visits(seed, n, n_actions, size, rank=None):
    """ReLU-like float32 features of uneven scale, in a subspace of `rank` dimensions."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, rank or size)) @ rng.normal(size=(rank or size, size))
    phi = np.maximum(latent, 0.0) * np.geomspace(0.01, 10.0, size)
    return jnp.asarray(rng.integers(n_actions, size=n), jnp.int32), jnp.asarray(phi, jnp.float32)


def direct(actions, phis, n_actions, mu):
    """(I / mu + sum phi phi')^-1 for each action, by NumPy."""
    x = np.asarray(phis, np.float64)
    which = np.asarray(actions)
    eye = np.eye(x.shape[1])
    return np.stack([np.linalg.inv(eye / mu + x[which == a].T @ x[which == a]) for a in range(n_actions)])


def relative(found, expected):
    """The largest error of each matrix, relative to its largest entry."""
    axes = (-2, -1)
    return (np.abs(np.asarray(found) - expected).max(axis=axes) / np.abs(expected).max(axis=axes)).max()


@pytest.mark.parametrize("rank", [None, 3])
def test_sigma_is_the_direct_inverse_after_1e5_visits(rank):
    actions, phis = visits(0, 100_000, 2, 8, rank)
    gram = absorb_all(init_gram(2, 8, MU), actions, phis)
    expected = direct(actions, phis, 2, MU)
    assert relative(gram.sigma, expected) < 1e-8
    assert gram.sigma.dtype == jnp.float64
    assert jnp.array_equal(gram.sigma, gram.sigma.swapaxes(1, 2))
    assert np.linalg.eigvalsh(np.asarray(gram.sigma)).min() > 0.0
    # what is asked of it, where it has been and where it has not
    for phi in (*phis[:5], jnp.ones(8, jnp.float32)):
        for a in range(2):
            x = np.asarray(phi, np.float64)
            assert float(asked(gram, jnp.int32(a), phi)) == pytest.approx(x @ expected[a] @ x, rel=1e-6, abs=1e-10)


@pytest.mark.slow
def test_sigma_stays_symmetric_and_positive_over_1e6_visits():
    actions, phis = visits(1, 1_000_000, 2, 8, 4)
    gram = absorb_all(init_gram(2, 8, MU), actions, phis)
    assert jnp.array_equal(gram.sigma, gram.sigma.swapaxes(1, 2))
    assert np.linalg.eigvalsh(np.asarray(gram.sigma)).min() > 0.0
    assert relative(gram.sigma, direct(actions, phis, 2, MU)) < 1e-8


def test_one_hot_features_reproduce_the_table_of_counts():
    rng = np.random.default_rng(2)
    states, actions = rng.integers(5, size=400), rng.integers(3, size=400)
    states[states == 4] = 0  # the last one is never seen
    gram = absorb_all(init_gram(3, 5, MU), jnp.asarray(actions, jnp.int32), jnp.eye(5, dtype=jnp.float32)[states])
    for s in range(5):
        for a in range(3):
            n = int(((states == s) & (actions == a)).sum())
            found = float(asked(gram, jnp.int32(a), jnp.eye(5, dtype=jnp.float32)[s]))
            assert found == pytest.approx(MU / (1 + MU * n), rel=1e-12)
    assert float(asked(gram, jnp.int32(0), jnp.eye(5, dtype=jnp.float32)[4])) == pytest.approx(MU, rel=1e-15)


@pytest.mark.parametrize("n", [0, 1, 7, 300])
def test_repeated_features_give_c_over_one_plus_nc(n):
    phi = jnp.asarray([1.0, -2.0, 0.5], jnp.float32)
    gram = absorb_all(init_gram(2, 3, MU), jnp.ones(n, jnp.int32), jnp.tile(phi, (n, 1)))
    c = MU * 5.25
    assert float(asked(gram, jnp.int32(1), phi)) == pytest.approx(c / (1 + n * c), rel=1e-12)
    assert float(asked(gram, jnp.int32(0), phi)) == pytest.approx(c, rel=1e-12)  # the other action knows nothing of it


def test_no_features_are_certain():
    gram = init_gram(1, 4, MU)
    assert float(asked(gram, jnp.int32(0), jnp.zeros(4, jnp.float32))) == 0.0
    below = Gram(-gram.precision, -gram.sigma)  # as rounding might leave it
    assert float(asked(below, jnp.int32(0), jnp.ones(4, jnp.float32))) == 0.0


def test_refreshing_is_exact_and_forgets_nothing_unless_asked_to():
    actions, phis = visits(3, 2_000, 2, 6)
    gram = absorb_all(init_gram(2, 6, MU), actions, phis)
    spoiled = gram._replace(sigma=gram.sigma * 1.01)
    expected = direct(actions, phis, 2, MU)
    fresh = jax.jit(partial(refresh, mu=MU, forget=1.0))(spoiled)
    assert relative(fresh.sigma, expected) < 1e-10
    assert jnp.array_equal(fresh.precision, gram.precision)
    assert jnp.array_equal(fresh.sigma, fresh.sigma.swapaxes(1, 2))


def test_forgetting_leads_back_to_the_prior_along_the_precision():
    actions, phis = visits(4, 500, 2, 6)
    gram = absorb_all(init_gram(2, 6, MU), actions, phis)
    fade = jax.jit(partial(refresh, mu=MU, forget=0.5))
    precision = np.linalg.inv(direct(actions, phis, 2, MU))
    for _ in range(60):
        precision = 0.5 * precision + 0.5 * np.eye(6) / MU
        gram = fade(gram)
        assert relative(gram.sigma, np.linalg.inv(precision)) < 1e-9
        assert np.linalg.eigvalsh(np.asarray(gram.sigma)).min() > 0.0
    assert relative(gram.sigma, np.eye(6) * MU) < 1e-9


def test_rebuilding_equals_absorbing_everything_that_is_real():
    actions, phis = visits(5, 300, 3, 6)
    real = jnp.asarray(np.random.default_rng(5).random(300) < 0.7, jnp.float64)
    built = jax.jit(partial(rebuild, n_actions=3, mu=MU))(phis, actions, real)
    kept = np.asarray(real) > 0
    one_by_one = absorb_all(init_gram(3, 6, MU), actions[kept], phis[kept])
    assert relative(built.sigma, np.asarray(one_by_one.sigma)) < 1e-10
    assert relative(built.precision, np.asarray(one_by_one.precision)) < 1e-13
    nothing = jax.jit(partial(rebuild, n_actions=3, mu=MU))(phis, actions, jnp.zeros(300))
    assert relative(nothing.sigma, np.asarray(init_gram(3, 6, MU).sigma)) < 1e-15
