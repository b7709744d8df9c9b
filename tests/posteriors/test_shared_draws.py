"""Draws from common random numbers: those of each row are Dirichlet and reproducible, with correct extremes."""

import numpy as np
import pytest
from scipy.stats import beta, kstest

import urbe
from urbe.posteriors import radius, shared_draws
from urbe.posteriors.shared_draws import SharedDraws

ALPHA = np.array([3.0, 1.0, 40.0, 0.6, 0.3, 2.0, 0.05, 0.01, 1.5, 7.0, 0.0, 2.0])
"""Four rows of three successors: ordinary, below one, in need of logarithms, and with one that is impossible."""


def posterior(alpha=ALPHA):
    n = len(alpha) // 3
    p = np.zeros((max(n, 3), 1, max(n, 3)))
    p[..., :3] = 1 / 3
    return urbe.Posterior.before(urbe.MDP.from_dense(p, 0.0, discount=0.9, keep_zeros=False), alpha)


def all_draws(belief, seed, draws):
    """`(E, M)` every draw, in the order of the values of the first successors."""
    rows = belief.model.rows
    z = np.tile([1.0, 0.0, 0.0], rows.n_rows)
    return SharedDraws(belief, np.random.default_rng(seed), draws).lowest(np.arange(rows.n_rows), z, draws).draw


def test_every_row_is_dirichlet():
    belief, draws = posterior(), 3000
    p = all_draws(belief, 0, draws)
    total = belief.total
    assert p.reshape(4, 3, draws).sum(axis=1) == pytest.approx(np.ones((4, draws)))
    for j, (alpha, x) in enumerate(zip(ALPHA, p, strict=True)):
        rest = total[j // 3] - alpha
        if alpha == 0.0:
            assert not x.any()
        elif min(alpha, rest) >= 0.1:
            assert kstest(x, beta(alpha, rest).cdf).pvalue > 1e-3  # a handful of them, with a fixed seed
        else:  # much of the mass rounds to 0 or 1
            assert x.mean() == pytest.approx(alpha / total[j // 3], abs=0.01)
        variance = alpha * rest / total[j // 3] ** 2 / (total[j // 3] + 1.0)
        assert x.var() == pytest.approx(variance, rel=0.25, abs=1e-3)
    pairs = np.corrcoef(p[:3])
    assert pairs[0, 2] < 0.0  # within a row, what one has the others lack


def test_extreme_draws_are_as_rare_as_they_should_be():
    """The 40th lowest of M has a level of 40 / (M + 1), give or take a sixth of it."""
    alpha = np.array([1.0, 1.0, 2.0, 1.5, 3.0, 1.0, 40.0, 60.0, 5.0])
    draws, z = 200_000, np.tile([1.0, 0.0, 0.0], 3)
    found = SharedDraws(posterior(alpha), np.random.default_rng(0), draws).lowest(np.arange(3), z, 40).value[:, -1]
    level = beta(alpha[::3], alpha[1::3] + alpha[2::3]).cdf(found)
    assert level * (draws + 1) == pytest.approx(np.full(3, 40.0), abs=25.0)  # four standard errors
    found = SharedDraws(posterior(alpha), np.random.default_rng(0), draws).lowest(np.arange(3), -z, 40).value[:, -1]
    level = beta(alpha[::3], alpha[1::3] + alpha[2::3]).sf(-found)
    assert level * (draws + 1) == pytest.approx(np.full(3, 40.0), abs=25.0)


def test_draws_of_a_row_are_independent_of_one_another():
    """No order of them is kept, so that their mean has to show it: it has 1 / M of the variance."""
    belief = posterior(np.full(12, 5.0))
    means = [all_draws(belief, seed, 200)[0].mean() for seed in range(300)]
    expected = 5.0 * 10.0 / 15.0**2 / 16.0 / 200
    assert np.var(means) == pytest.approx(expected, rel=0.3)  # three and a half standard errors


def test_the_same_draws_are_made_each_time_whichever_rows_are_asked_for():
    belief = posterior()
    draws = SharedDraws(belief, np.random.default_rng(1), 700)
    z = np.random.default_rng(0).normal(size=12)
    every = draws.lowest(np.arange(4), z, 5)
    again = draws.lowest(np.arange(4), z, 5)
    assert np.array_equal(every.value, again.value)
    some = draws.lowest(np.array([2, 0]), z, 5)
    assert np.array_equal(some.value, every.value[[2, 0]])
    assert np.array_equal(some.draw, np.concatenate([every.draw[6:9], every.draw[:3]]))
    other = SharedDraws(belief, np.random.default_rng(2), 700).lowest(np.arange(4), z, 5)
    assert not np.array_equal(other.value, every.value)


def test_extremes_are_those_of_all_draws():
    belief = posterior()
    p = all_draws(belief, 3, 900)
    draws = SharedDraws(belief, np.random.default_rng(3), 900)
    far = np.abs(p - belief.probability[:, None]).reshape(4, 3, 900).sum(axis=1)
    assert draws.farthest(7) == pytest.approx(-np.sort(-far, axis=1)[:, :7], abs=1e-14)
    z = np.random.default_rng(0).normal(size=12)
    found = draws.lowest(np.arange(4), z, 7)
    x = (p * z[:, None]).reshape(4, 3, 900).sum(axis=1)
    assert found.value == pytest.approx(np.sort(x, axis=1)[:, :7], abs=1e-14)
    assert (found.draw * z[:, None]).reshape(4, 3, 7).sum(axis=1) == pytest.approx(found.value, abs=1e-14)


def test_one_successor_is_never_away_from_the_mean():
    p = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])
    belief = urbe.Posterior.before(urbe.MDP.from_dense(p, 0.0, discount=0.9), 2.0)
    far = SharedDraws(belief, np.random.default_rng(0), 50).farthest(2)
    assert not far[0].any()
    assert (far[1] > 0.0).all()


def test_buffers_that_are_too_short_are_noticed(monkeypatch):
    monkeypatch.setattr(shared_draws, "SPARE", 0.9)
    with pytest.raises(RuntimeError, match="too few random numbers"):
        SharedDraws(posterior(np.full(12, 1.0)), np.random.default_rng(0), 5000).farthest(1)


def test_credible_radii_of_many_draws_agree_with_those_of_independent_ones(monkeypatch):
    """Each radius is an order statistic of 4000 draws: its level is off by 1 / 4000 for one place, some 3 % here."""
    belief = posterior(np.array([30.0, 20.0, 50.0, 1.0, 2.0, 3.0, 200.0, 10.0, 5.0]))
    few = radius.credible_l1(belief, 0.99, np.random.default_rng(0), draws=4000, union=False)
    monkeypatch.setattr(radius, "MANY", 0)
    many = radius.credible_l1(belief, 0.99, np.random.default_rng(0), draws=4000, union=False)
    assert not np.array_equal(few, many)
    assert many == pytest.approx(few, rel=0.08)
    fresh = belief.draws(np.random.default_rng(5), 20_000)
    far = np.abs(fresh - belief.probability).reshape(len(fresh), 3, 3).sum(axis=2)
    assert (far > many).mean(axis=0) == pytest.approx(np.full(3, 0.01), abs=0.006)
