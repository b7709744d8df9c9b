"""Credible sets against every subset; tail weights against linear programs."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from urbe.belief import credible_set, tail_weights


@pytest.mark.parametrize("seed", range(20))
def test_credible_set_is_the_smallest(seed):
    rng = np.random.default_rng(seed)
    belief, alpha = rng.dirichlet(np.full(5, 0.5)), rng.uniform(0.0, 0.9)
    chosen = credible_set(belief, alpha)
    assert belief[chosen].sum() >= 1.0 - alpha - 1e-14
    for size in range(chosen.sum()):
        for subset in itertools.combinations(range(5), size):
            assert belief[list(subset)].sum() < 1.0 - alpha
    assert belief[chosen].min() >= belief[~chosen].max(initial=0.0)


def test_rounding_adds_no_member():
    """Nine tenths add up to slightly less than 0.9."""
    assert credible_set(np.full(10, 0.1), 0.1).sum() == 9
    assert credible_set(jnp.full(10, 0.1, jnp.float32), 0.1).sum() == 9


def test_alpha_zero_is_the_support():
    np.testing.assert_array_equal(credible_set(np.array([0.5, 0.0, 0.5]), 0.0), [True, False, True])
    np.testing.assert_array_equal(credible_set(np.array([1.0, 1e-300]), 0.0), [True, True])
    np.testing.assert_array_equal(credible_set(np.array([1.0 - 1e-9, 1e-9]), 1e-10), [True, True])


@pytest.mark.parametrize("seed", range(20))
def test_tail_weights_solve_the_dual_of_cvar(seed):
    rng = np.random.default_rng(seed)
    belief, values, level = rng.dirichlet(np.ones(4)), rng.normal(size=4), rng.uniform(0.05, 1.0)
    weights = tail_weights(belief, values, level)
    found = linprog(values, bounds=[(0, b / level) for b in belief], A_eq=np.ones((1, 4)), b_eq=[1.0])
    assert weights @ values == pytest.approx(found.fun, abs=1e-9)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all()
    np.testing.assert_allclose(
        tail_weights(jnp.asarray(belief), jnp.asarray(values), level), weights, rtol=1e-4, atol=1e-6
    )


def test_levels_go_from_the_mean_to_the_worst_of_the_support():
    belief, values = np.array([0.2, 0.0, 0.8]), np.array([1.0, -9.0, 2.0])
    np.testing.assert_allclose(tail_weights(belief, values, 1.0), belief)
    np.testing.assert_allclose(tail_weights(belief, values, 0.0), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(tail_weights(belief, values, 1e-9), [1.0, 0.0, 0.0])


def test_uniform_belief_is_the_cvar_of_equal_members():
    from urbe.deep import CVaR

    values = jnp.asarray(np.random.default_rng(0).normal(size=(6, 7)), jnp.float32)
    uniform = jnp.full_like(values, 1.0 / 7.0)
    for level in (0.1, 0.5, 0.9):
        np.testing.assert_allclose(tail_weights(uniform, values, level), CVaR(level).weights(values), atol=1e-5)
