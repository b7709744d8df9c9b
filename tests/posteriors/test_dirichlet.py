"""Posteriors of rows: moments and draws against SciPy's Dirichlet and Beta, concentrations of every size."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import urbe
from fixtures.posteriors import row_posterior, skeleton
from urbe import MDP, NormalGamma, Posterior
from urbe.posteriors.rewards import RewardPosterior

# A statistical test with fixed seeds fails for wrong code; for right code and a fresh seed it would with this chance.
FALSE_ALARM = 1e-6

positive = st.floats(1e-3, 1e4)


@given(rows=st.lists(st.lists(positive, min_size=1, max_size=5), min_size=2, max_size=4))
def test_mean_and_variance_are_those_of_scipy(rows):
    posterior = row_posterior(*rows)
    mean = np.concatenate([np.atleast_1d(stats.dirichlet(row).mean()) for row in rows])
    variance = np.concatenate([np.atleast_1d(stats.dirichlet(row).var()) if len(row) > 1 else [0.0] for row in rows])
    np.testing.assert_allclose(posterior.probability, mean, rtol=1e-12)
    # 1 - p is rounded at 1e-16 where p is near 1
    np.testing.assert_allclose(posterior.variance(), variance, rtol=1e-9, atol=1e-16)
    np.testing.assert_allclose(posterior.total, [sum(row) for row in rows], rtol=1e-12)
    assert posterior.feasible.tolist() == [len(row) for row in rows]
    assert posterior.mean().rows.mass_error < 1e-15


@pytest.mark.parametrize(
    "alpha",
    [(0.3, 0.7), (1e-3, 1e-3), (0.05, 5.0), (2.0, 3.0), (100.0, 50.0), (1e-6, 2e-6), (0.099, 1.0)],
    ids=str,
)
def test_draws_of_two_successors_follow_beta(alpha):
    """Binomial tests of P(p <= x) at 1e-6 each; x stays away from 0 and 1, where rounding makes atoms."""
    p = row_posterior([0.5, 0.01, 3.0], alpha).draws(np.random.default_rng(1), 100_000)[:, 3:]
    for j, law in enumerate((stats.beta(*alpha), stats.beta(*alpha[::-1]))):
        inner = [x for x in law.ppf(np.linspace(0.02, 0.98, 25)) if 1e-200 < x < 1.0 - 1e-10]
        for x in (1e-200, 1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999, *inner):
            share = int((p[:, j] <= x).sum())
            assert stats.binomtest(share, len(p), float(law.cdf(x))).pvalue > FALSE_ALARM


@pytest.mark.parametrize("alpha", [(0.02, 0.5, 3.0, 40.0), (1.0, 1.0, 1.0), (1e-3, 2e-3, 1e-3)], ids=str)
def test_draws_have_the_moments_of_scipy(alpha):
    """z-tests of means and covariances of many draws, together at about 1e-6 each: 4.9 standard errors."""
    p = row_posterior(alpha, [1.0, 2.0]).draws(np.random.default_rng(2), 40_000)[:, : len(alpha)]
    law = stats.dirichlet(alpha)
    error = np.sqrt(law.var() / len(p))
    assert (np.abs(p.mean(axis=0) - law.mean()) < 4.9 * error).all()
    products = (p[:, :, None] - law.mean()[:, None]) * (p[:, None, :] - law.mean())
    error = products.std(axis=0) / np.sqrt(len(p))
    assert (np.abs(products.mean(axis=0) - law.cov()) < 4.9 * error).all()


@pytest.mark.parametrize("tiny", [1e-3, 1e-6, 1e-12, 1e-300, 5e-324])
def test_tiny_concentrations_give_vertices_with_the_right_frequencies(tiny):
    alpha = np.array([tiny, 2.0 * tiny, tiny])
    p = row_posterior([0.5, 0.5], alpha).draws(np.random.default_rng(3), 20_000)[:, 2:]
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)
    vertices = (p > 0.999).any(axis=1)
    assert vertices.mean() > (0.98 if tiny == 1e-3 else 0.9999)
    if tiny > 1e-290:  # below that, concentrations are drawn as if they were equal
        hits = (p > 0.5).sum(axis=0)
        assert stats.chisquare(hits, hits.sum() * alpha / alpha.sum()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("others", [5e-324, 1e-6, 0.05, 1.0, 1e12])
def test_zero_concentration_never_receives_mass(others):
    posterior = row_posterior([0.0, others, others, 0.0], [1.0, 1.0])
    p = posterior.draws(np.random.default_rng(4), 1000)
    assert not p[:, [0, 3]].any()
    np.testing.assert_allclose(p[:, 1:3].sum(axis=1), 1.0, rtol=1e-15)
    assert posterior.feasible.tolist() == [2.0, 2.0]
    assert posterior.variance()[[0, 3]].tolist() == [0.0, 0.0]


def test_huge_concentrations_stay_at_the_mean():
    posterior = row_posterior([1e15, 3e15], [1e300, 1e-300])
    p = posterior.draws(np.random.default_rng(5), 1000)
    np.testing.assert_allclose(p[:, :2], [[0.25, 0.75]] * 1000, atol=1e-6)
    assert (p[:, 2:] == [1.0, 0.0]).all()
    assert np.isfinite(posterior.variance()).all()


def test_one_successor_is_certain():
    posterior = row_posterior([0.3], [1.0, 2.0])
    assert posterior.draws(np.random.default_rng(6), 5)[:, 0].tolist() == [1.0] * 5
    assert posterior.variance()[0] == 0.0


def test_same_seed_same_bits_other_seed_other_bits():
    posterior = row_posterior([0.01, 2.0], [1.0, 1.0, 1.0])
    draws = [posterior.draws(np.random.default_rng(seed), 3) for seed in (1, 1, 2)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    models = [posterior.sample(np.random.default_rng(seed)).rows.probability for seed in (1, 1, 2)]
    assert np.array_equal(models[0], models[1])
    assert not np.array_equal(models[0], models[2])
    assert posterior.draws(np.random.default_rng(1), 0).shape == (0, 5)


def test_a_sampled_model_can_be_solved_and_keeps_pairs_rewards_and_first_states():
    lake = urbe.library.riverswim(6, discount=0.8)
    posterior = Posterior.before(lake).with_counts(np.arange(22.0))
    for model in (posterior.mean(), posterior.sample(np.random.default_rng(0))):
        assert model.discount == 0.8
        assert np.array_equal(model.rows.reward, lake.rows.reward)
        assert np.array_equal(model.rows.successor, lake.rows.successor)
        assert urbe.solve(model).policy.shape == (6,)
    assert posterior.model is lake
    assert not np.array_equal(posterior.mean().rows.probability, lake.rows.probability)


def test_seen_counts_what_came_after_the_prior():
    posterior = row_posterior([0.5, 0.25], [1.0])
    counts = np.array([3.0, 0.0, 4.0])
    later = posterior.with_counts(counts)
    assert posterior.seen.tolist() == [0.0, 0.0]
    assert later.seen.tolist() == [3.0, 4.0]
    assert later.concentration.tolist() == [3.5, 0.25, 5.0]
    assert posterior.concentration.tolist() == [0.5, 0.25, 1.0]
    assert repr(later) == "Posterior(2 rows, 3 feasible successors, 7 transitions seen)"


def test_a_model_without_rows_has_an_empty_posterior():
    terminal = MDP(np.array([0, 0]), np.zeros(0, np.int32), skeleton(1, 1).rows.take(np.zeros(0, int)), 0.9)
    posterior = Posterior.before(terminal)
    assert posterior.draws(np.random.default_rng(0), 2).shape == (2, 0)
    assert posterior.total.shape == posterior.feasible.shape == (0,)


def test_uncertain_rewards_enter_mean_and_sample():
    model = skeleton(2, 1)
    rewards = NormalGamma(mean=3.0)
    posterior = Posterior.before(model, rewards=rewards)
    assert posterior.mean().rows.reward.tolist() == [3.0, 3.0]
    draws = [posterior.sample(np.random.default_rng(seed)).rows.reward for seed in (0, 0, 1)]
    assert np.array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).all()
    given = RewardPosterior(*(np.array([1.0, 2.0]) + k for k in range(4)))
    assert Posterior.before(model, rewards=given).rewards is given


@pytest.mark.parametrize(
    ("concentration", "message"),
    [
        (-1.0, "concentration is -1, expected at least 0."),
        ([1.0, -1.0, 1.0], "concentration[1] is -1, expected at least 0."),
        ([1.0, 1.0], "concentration has shape (2,), expected a number or one per successor (3,)"),
        (np.nan, "concentration is nan, expected a finite number."),
        (0.0, "concentration adds up to 0 over the successors of state 0, action 0, expected a positive, finite"),
        ([1.0, 0.0, 0.0], "concentration adds up to 0 over the successors of state 1, action 0, expected a positive"),
        ([1e308, 1e308, 1.0], "concentration adds up to inf over the successors of state 0, action 0"),
        ("many", "concentration cannot be read as an array of numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_refuses_concentrations_that_are_none(concentration, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Posterior.before(skeleton(2, 1), concentration)


def test_refuses_rewards_of_another_model():
    with pytest.raises(ValueError, match=re.escape("rewards has shape (3,), expected one per row (2,).")):
        Posterior.before(skeleton(2, 1), rewards=NormalGamma().before(3))


def test_refuses_a_negative_number_of_draws():
    with pytest.raises(ValueError, match="size is -1, expected a whole number of at least 0"):
        row_posterior([1.0], [1.0]).draws(np.random.default_rng(0), -1)
