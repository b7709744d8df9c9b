"""Rewards added one at a time, against the batch formulas; draws against their moments."""

import numpy as np
import pytest

from oracles.plans import random_model
from urbe import NormalGamma, Posterior
from urbe.posteriors.beliefs import Visit
from urbe.posteriors.rewards import RewardBelief

PRIOR = NormalGamma(mean=0.5, weight=2.0, shape=3.0, rate=0.7)


def generators(n, seed=0):
    return [np.random.default_rng([seed, b]) for b in range(n)]


@pytest.fixture
def prior():
    return Posterior.before(random_model(np.random.default_rng(0)), 1.0, PRIOR)


def visits(rng, model, replicates, n):
    for _ in range(n):
        who = np.flatnonzero(rng.random(replicates) < 0.6)
        row = rng.integers(model.n_rows, size=len(who))
        yield Visit(who, row, model.rows.entry_start[row], np.zeros(len(who), dtype=int)), rng.normal(size=len(who))


def test_one_at_a_time_is_all_at_once(prior):
    rng, n, n_rows = np.random.default_rng(1), 3, prior.model.n_rows
    belief, seen = RewardBelief(prior, n), {}
    for visit, reward in visits(rng, prior.model, n, 60):
        belief.observe(visit, reward)
        for b, row, x in zip(visit.replicate, visit.row, reward, strict=True):
            seen.setdefault((b, row), []).append(x)
    for b in range(n):
        lists = [np.array(seen.get((b, row), [])) for row in range(n_rows)]
        counts = np.array([len(x) for x in lists], dtype=float)
        means = np.array([x.mean() if len(x) else 0.0 for x in lists])
        squares = np.array([((x - x.mean()) ** 2).sum() if len(x) else 0.0 for x in lists])
        batch = PRIOR.after(counts, means, squares)
        np.testing.assert_allclose(belief.mean[b], batch.mean, rtol=1e-12)
        np.testing.assert_allclose(belief.variance[b], batch.variance(), rtol=1e-12)


def test_draws_have_the_posterior_moments(prior):
    """Mean and variance of 4000 replicates; six standard errors, so one false alarm in 10^7 runs of the test."""
    n = 4000
    belief = RewardBelief(prior, n)
    drawn = belief.draw(generators(n), np.arange(n))
    error = np.sqrt(belief.variance[0, 0] / n)
    assert abs(drawn[:, 0].mean() - PRIOR.mean) < 6.0 * error
    # a Student-t of 6 degrees has kurtosis 6: its variance estimate deviates by sqrt((6 - 1) / n)
    assert abs(drawn[:, 0].var() / belief.variance[0, 0] - 1.0) < 6.0 * np.sqrt(5.0 / n)
    assert len(np.unique(drawn)) == drawn.size


def test_draws_depend_on_the_replicate_alone(prior):
    belief = RewardBelief(prior, 4)
    all_of_them = belief.draw(generators(4), np.arange(4))
    some = belief.draw(generators(4), np.array([2]))
    assert np.array_equal(all_of_them[2], some[2])
    assert np.array_equal(some[[0, 1, 3]], belief.mean[[0, 1, 3]])
    assert not np.array_equal(all_of_them, belief.draw(generators(4, seed=1), np.arange(4)))


def test_known_rewards_are_left_alone():
    model = random_model(np.random.default_rng(0))
    belief = RewardBelief(Posterior.before(model), 2)
    before = belief.mean.copy()
    belief.observe(Visit(*(np.array([x]) for x in (0, 0, 0, 0))), np.array([99.0]))
    assert np.array_equal(belief.mean, before)
    assert np.array_equal(before, np.tile(model.rows.row_reward, (2, 1)))
    assert belief.variance is None
    assert np.array_equal(belief.draw([], np.arange(2)), before)


def test_rewards_of_successors_are_not_of_pairs():
    model = random_model(np.random.default_rng(0), rewards_successors=True)
    assert not RewardBelief(Posterior.before(model), 2).mean.any()


def test_state_goes_on(prior):
    rng = np.random.default_rng(3)
    steps = list(visits(rng, prior.model, 3, 30))
    belief, other = RewardBelief(prior, 3), RewardBelief(prior, 3)
    for visit, reward in steps[:15]:
        belief.observe(visit, reward)
    other.load(belief.state())
    for one in (belief, other):
        for visit, reward in steps[15:]:
            one.observe(visit, reward)
    assert np.array_equal(belief.mean, other.mean)
    assert np.array_equal(belief.variance, other.variance)
