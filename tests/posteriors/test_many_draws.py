"""Dirichlet rows of many replicates, against the distribution; independent of other replicates and of buffers."""

import numpy as np
import pytest
from scipy import stats

from urbe import rng
from urbe.posteriors.sampling import ManyDirichlet


def sampler(replicates, entry_start, seed=0):
    numbers = np.asarray(replicates)
    return ManyDirichlet(rng.streams(seed, "n", numbers), rng.streams(seed, "u", numbers), np.asarray(entry_start))


def many(alpha, n, seed=0):
    """`(n, E)` draws of one row, by 20 replicates."""
    draws, alphas = sampler(range(20), [0, len(alpha)], seed), np.tile(np.asarray(alpha), (20, 1, 1))
    return np.concatenate([draws.draw(np.arange(20), alphas)[:, 0] for _ in range(n // 20)])


@pytest.mark.parametrize("alpha", [(0.3, 0.9), (0.15, 3.0), (1.0, 1.0), (2.5, 0.5), (40.0, 8.0), (1e4, 3e4)])
def test_two_successors_are_a_beta(alpha):
    """Kolmogorov-Smirnov at 20 000 draws; false alarms: 6 cases at 1e-5 each."""
    draws = many(alpha, 20_000)
    assert (draws >= 0.0).all()
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-14)
    assert stats.kstest(draws[:, 0], stats.beta(*alpha).cdf).pvalue > 1e-5


@pytest.mark.parametrize("alpha", [(0.02, 0.05), (0.002, 1.5), (0.09, 0.11)])
def test_small_concentrations(alpha):
    """Draws pile up at 0 and 1, so levels are compared: within five standard errors, one false alarm in 10^5."""
    n = 20_000
    first = many(alpha, n)[:, 0]
    for level in (1e-200, 1e-20, 1e-3, 0.5, 0.99):
        expected = stats.beta(*alpha).cdf(level)
        assert abs((first <= level).mean() - expected) <= 5.0 * np.sqrt(expected * (1.0 - expected) / n)


def test_moments_of_longer_rows():
    """Means and covariances of 50 000 draws within five standard errors: one false alarm in 10^5."""
    alpha, n = np.array([0.4, 2.0, 1.0, 7.0]), 50_000
    x = many(alpha, n)
    law = stats.dirichlet(alpha)
    assert (np.abs(x.mean(axis=0) - law.mean()) < 5.0 * np.sqrt(law.var() / n)).all()
    np.testing.assert_allclose(np.cov(x.T), law.cov(), atol=5.0 * law.var().max() * 3.0 / np.sqrt(n))


def test_tiny_concentrations_choose_a_vertex():
    """Proportionally to their size: 1 to 3, within five standard errors at 4000 draws (one false alarm in 10^6)."""
    n = 4000
    draws = many([1e-280, 3e-280], n)
    assert np.isin(draws, [0.0, 1.0]).all()
    assert abs(draws[:, 1].mean() - 0.75) < 5.0 * np.sqrt(0.75 * 0.25 / n)


def test_zeros_receive_nothing_and_single_successors_all():
    alpha = np.array([0.0, 2.0, 1.0, 5.0, 1e-9, 0.0, 0.05])
    draws = sampler([0], [0, 3, 4, 7])
    for _ in range(50):
        p = draws.draw(np.array([0]), alpha[None, None])[0, 0]
        assert p[0] == 0.0
        assert p[3] == 1.0
        assert p[5] == 0.0
        assert np.isfinite(p).all()


def test_a_replicate_draws_the_same_whoever_is_beside_it():
    entry_start, generator = [0, 3, 4, 9], np.random.default_rng(0)
    alpha = generator.gamma(0.6, 2.0, (5, 2, 9))
    together, alone = sampler(range(5), entry_start), sampler([3], entry_start)
    other = sampler(range(5), entry_start, seed=1)
    for k in range(300):
        which = np.array([0, 3, 4]) if k % 2 else np.array([3])
        drawn = together.draw(which, alpha)
        assert np.array_equal(drawn[list(which).index(3)], alone.draw(np.array([0]), alpha[3:4])[0])
        assert not np.array_equal(drawn, other.draw(which, alpha))


def test_numbers_run_out_within_a_row():
    """Buffers of any size give the same draws: what is left of a row is drawn again from the same numbers."""
    alpha = np.random.default_rng(1).gamma(0.7, 1.0, (1, 1, 300)) + 0.01
    large, small = sampler([0], [0, 300]), sampler([0], [0, 300])
    small._half = 3
    for part in (small._normal, small._uniform):
        part.values, part.at = np.empty((1, 8)), np.full(1, 8)
    for _ in range(3):
        assert np.array_equal(small.draw(np.array([0]), alpha), large.draw(np.array([0]), alpha))


def test_state_goes_on():
    alpha = np.full((2, 1, 4), 0.8)
    one, other = sampler([0, 1], [0, 4]), sampler([0, 1], [0, 4])
    for _ in range(100):
        one.draw(np.arange(2), alpha)
    other.load(one.state())
    for _ in range(200):
        assert np.array_equal(one.draw(np.arange(2), alpha), other.draw(np.arange(2), alpha))
