"""Normal-gamma rewards against sequential updates, numerical integration and Student's t."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from urbe import NormalGamma

FALSE_ALARM = 1e-6

priors = st.builds(
    NormalGamma,
    mean=st.floats(-5, 5),
    weight=st.floats(0.1, 10),
    shape=st.floats(1.1, 8),
    rate=st.floats(0.1, 10),
)
observations = st.lists(st.floats(-10, 10), min_size=1, max_size=8)


def summary(x):
    """Number, mean and squared deviations of one row's rewards."""
    x = np.asarray(x, dtype=float)
    return np.array([float(len(x))]), np.array([x.mean()]), np.array([((x - x.mean()) ** 2).sum()])


@given(prior=priors, x=observations)
def test_all_at_once_is_one_after_another(prior, x):
    at_once = prior.after(*summary(x))
    one_by_one = prior.before(1)
    for reward in x:
        one_by_one = one_by_one.after(*summary([reward]))
    for name in ("mean", "weight", "shape", "rate"):
        np.testing.assert_allclose(getattr(at_once, name), getattr(one_by_one, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("x", [[0.3], [1.0, -2.0, 0.5], [4.0, 4.0, 4.0, 4.5]], ids=str)
def test_moments_of_the_mean_are_those_of_bayes_rule(x):
    """Prior times likelihood on a grid of (mean, log precision), summed; nothing of the closed form is used."""
    prior = NormalGamma(mean=0.5, weight=2.0, shape=3.0, rate=1.5)
    mu = np.linspace(-8, 10, 3601)[:, None]
    log_tau = np.linspace(-9, 5, 1401)[None]
    tau = np.exp(log_tau)
    density = (
        stats.gamma(prior.shape, scale=1.0 / prior.rate).logpdf(tau)
        + log_tau  # d tau = tau d log tau
        + stats.norm(prior.mean, 1.0 / np.sqrt(prior.weight * tau)).logpdf(mu)
        + sum(stats.norm(mu, 1.0 / np.sqrt(tau)).logpdf(reward) for reward in x)
    )
    weight = np.exp(density - density.max())
    weight /= weight.sum()
    mean = (weight * mu).sum()
    posterior = prior.after(*summary(x))
    # the grid's step is 0.005, its tails hold less than 1e-5 of the variance
    assert posterior.mean[0] == pytest.approx(mean, abs=1e-5)
    assert posterior.variance()[0] == pytest.approx((weight * (mu - mean) ** 2).sum(), rel=1e-3)


@given(prior=priors, x=observations)
def test_variance_is_that_of_student_t(prior, x):
    posterior = prior.after(*summary(x))
    law = student(posterior)
    assert posterior.mean[0] == pytest.approx(law.mean(), abs=1e-12)
    assert posterior.variance()[0] == pytest.approx(law.var(), rel=1e-9)


def student(posterior):
    """The marginal law of the mean reward."""
    scale = np.sqrt(posterior.rate[0] / (posterior.weight[0] * posterior.shape[0]))
    return stats.t(2.0 * posterior.shape[0], posterior.mean[0], scale)


def test_the_marginal_is_student_t_by_integration():
    posterior = NormalGamma(1.0, 2.0, 1.5, 0.7).after(*summary([0.2, 3.0]))
    precision = stats.gamma(posterior.shape[0], scale=1.0 / posterior.rate[0])
    for x in (-1.0, 0.7, 1.4, 3.0):
        density = integrate.quad(
            lambda tau, x=x: (
                stats.norm(posterior.mean[0], 1 / np.sqrt(posterior.weight[0] * tau)).pdf(x) * precision.pdf(tau)
            ),
            0.0, np.inf,
        )[0]  # fmt: skip
        assert student(posterior).pdf(x) == pytest.approx(density, rel=1e-6)


def test_samples_follow_student_t():
    """Kolmogorov-Smirnov at 1e-6."""
    posterior = NormalGamma(1.0, 2.0, 1.5, 0.7).after(*summary([0.2, 3.0]))
    many = NormalGamma(1.0, 2.0, 1.5, 0.7).after(*(np.repeat(column, 20_000) for column in summary([0.2, 3.0])))
    sample = many.sample(np.random.default_rng(0))
    assert stats.kstest(sample, student(posterior).cdf).pvalue > FALSE_ALARM
    assert np.array_equal(sample, many.sample(np.random.default_rng(0)))
    assert (sample != many.sample(np.random.default_rng(1))).all()


def test_rows_without_data_keep_the_prior_whatever_their_mean_says():
    prior = NormalGamma(mean=2.0, weight=3.0, shape=4.0, rate=5.0)
    posterior = prior.after(np.array([0.0, 1.0]), np.array([np.nan, 7.0]), np.zeros(2))
    assert [getattr(posterior, name)[0] for name in ("mean", "weight", "shape", "rate")] == [2.0, 3.0, 4.0, 5.0]
    assert posterior.mean[1] == pytest.approx((3.0 * 2.0 + 7.0) / 4.0)


def test_much_data_forgets_the_prior():
    x = np.random.default_rng(0).normal(3.0, 2.0, size=1_000_000)
    posterior = NormalGamma(mean=-100.0, rate=50.0).after(*summary(x))
    assert posterior.mean[0] == pytest.approx(x.mean(), abs=2e-4)
    assert posterior.variance()[0] == pytest.approx(x.var() / len(x), rel=0.02)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mean": np.nan}, "mean is nan, expected a finite number"),
        ({"mean": np.inf}, "mean is inf, expected a finite number"),
        ({"mean": "high"}, "mean cannot be read as an array of numbers"),
        ({"mean": [1.0]}, "mean has shape (1,), expected 0 dimensions"),
        ({"weight": 0.0}, "weight is 0.0, expected a positive number."),
        ({"weight": -1.0}, "weight is -1.0, expected a positive number."),
        ({"rate": 0}, "rate is 0, expected a positive number."),
        ({"shape": 1.0}, "shape is 1.0, expected more than 1"),
        ({"shape": np.inf}, "shape is inf, expected a finite number"),
    ],
)
def test_refuses_priors_that_are_none(values, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        NormalGamma(**values)
