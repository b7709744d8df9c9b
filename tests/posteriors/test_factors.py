"""Factors fitted to counts: likelihood, known factors, edge cases."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import urbe
from urbe import fit_factors


def data(seed, *, rows=60, states=6, factors=3, each=2000):
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(factors, 0.15), size=rows)
    centre = rng.dirichlet(np.full(states, 0.4), size=factors)
    return share, centre, np.array([rng.multinomial(each, p) for p in share @ centre])


def test_the_likelihood_never_falls_and_is_that_of_the_mixtures():
    _, _, counts = data(0)
    fit = fit_factors(counts, 3, rng=np.random.default_rng(1))
    assert (np.diff(fit.log_likelihood) >= -1e-9 * abs(fit.log_likelihood[0])).all()
    mixed = fit.coefficients @ fit.factors
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(counts > 0, counts * np.log(mixed), 0.0).sum()
    assert fit.log_likelihood[-1] == pytest.approx(expected, rel=1e-12)
    assert fit.converged
    error = 0.5 * np.abs(counts / 2000 - mixed).sum(axis=1).mean()
    assert fit.error == pytest.approx(error, rel=1e-9)


def test_one_step_is_that_of_plain_loops():
    counts = data(8, rows=5, states=4, factors=2, each=20)[2].astype(float)
    u = np.random.default_rng(3).dirichlet(np.ones(2), size=5)
    w = (counts.T @ u).T
    w /= w.sum(axis=1, keepdims=True)
    new_u, new_w = np.zeros((5, 2)), np.zeros((2, 4))
    for k in range(5):
        for s in np.flatnonzero(counts[k]):
            chance = u[k] * w[:, s] / (u[k] @ w[:, s])
            new_u[k] += counts[k, s] * chance
            new_w[:, s] += counts[k, s] * chance
    fit = fit_factors(counts, 2, rng=np.random.default_rng(3), restarts=1, max_steps=1)
    assert fit.coefficients == pytest.approx(new_u / new_u.sum(axis=1, keepdims=True), abs=1e-13)
    assert fit.factors == pytest.approx(new_w / new_w.sum(axis=1, keepdims=True), abs=1e-13)
    assert not fit.converged


def test_true_factors_are_no_more_likely_than_those_found():
    share, centre, counts = data(2)
    fit = fit_factors(counts, 3, rng=np.random.default_rng(1))
    with np.errstate(divide="ignore", invalid="ignore"):
        truth = np.where(counts > 0, counts * np.log(share @ centre), 0.0).sum()
    assert fit.log_likelihood[-1] > truth
    assert np.abs(fit.coefficients @ fit.factors - share @ centre).sum(axis=1).mean() < 0.04


def test_one_factor_is_the_frequency_of_all_transitions():
    _, _, counts = data(3)
    fit = fit_factors(counts, 1, rng=np.random.default_rng(0), restarts=1)
    assert fit.factors[0] == pytest.approx(counts.sum(axis=0) / counts.sum(), abs=1e-12)
    assert fit.coefficients == pytest.approx(np.ones((60, 1)))


def test_the_error_falls_with_more_factors_down_to_nothing():
    p = np.random.default_rng(4).dirichlet(np.ones(4), size=5)
    errors = [
        fit_factors(p, r, rng=np.random.default_rng(0), tolerance=1e-12, max_steps=20_000).error for r in (1, 2, 4)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-4


def test_rows_without_counts_have_the_mixture_of_all():
    _, _, counts = data(5)
    counts[7] = 0
    fit = fit_factors(counts, 3, rng=np.random.default_rng(0))
    shares = counts.sum(axis=1) @ fit.coefficients / counts.sum()
    assert fit.coefficients[7] == pytest.approx(shares, abs=1e-12)
    assert fit.coefficients.sum(axis=1) == pytest.approx(np.ones(60))


def test_seeds_decide_and_sparse_counts_are_counts():
    _, _, counts = data(6)
    one, same, other = (fit_factors(counts, 3, rng=np.random.default_rng(seed), restarts=1) for seed in (0, 0, 1))
    assert np.array_equal(one.factors, same.factors)
    assert not np.array_equal(one.factors, other.factors)
    sparse = fit_factors(csr_array(counts), 3, rng=np.random.default_rng(0), restarts=1)
    assert np.array_equal(one.factors, sparse.factors)
    cube = fit_factors(counts.reshape(30, 2, 6)[:, :, :], 3, rng=np.random.default_rng(0), restarts=1)
    assert np.array_equal(one.factors, cube.factors)


def test_fitted_factors_make_a_set():
    mdp = urbe.library.riverswim(6, discount=0.95)
    fit = fit_factors(mdp.matrix(), 6, rng=np.random.default_rng(0))
    solution = urbe.solve(mdp, urbe.FactorSet(fit.coefficients, fit.factors, urbe.L1Ball(0.1)))
    assert urbe.certify(solution).holds


def test_errors_say_what_to_do():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"counts has shape \(3,\), expected \(rows, states\)"):
        fit_factors([1.0, 2.0, 3.0], 1, rng=rng)
    with pytest.raises(ValueError, match=r"counts\[0, 1\] is -1, expected at least 0"):
        fit_factors([[1.0, -1.0]], 1, rng=rng)
    with pytest.raises(ValueError, match=r"counts are all zero"):
        fit_factors(np.zeros((2, 2)), 1, rng=rng)
    with pytest.raises(ValueError, match=r"n_factors is 0, expected a whole number of at least 1"):
        fit_factors([[1.0]], 0, rng=rng)
    with pytest.raises(TypeError, match=r"rng is 3, expected a generator"):
        fit_factors([[1.0]], 1, rng=3)


def test_inputs_stay_untouched():
    _, _, counts = data(7)
    sparse = csr_array(counts)
    before = sparse.toarray()
    fit_factors(sparse, 2, rng=np.random.default_rng(0), restarts=1)
    assert np.array_equal(sparse.toarray(), before)
