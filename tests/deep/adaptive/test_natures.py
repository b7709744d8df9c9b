"""Natures over a belief, and their limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.deep import BeliefCVaR, BeliefMean, CredibleWorst, EpisodeCVaR
from urbe.deep.core.natures import CVaR, Worst

KEY = jax.random.key(3)
VALUES = jax.random.normal(KEY, (50, 6))
BELIEF = jax.random.dirichlet(jax.random.fold_in(KEY, 1), jnp.ones(6), (50,)).at[:, 2].set(0.0)
BELIEF = BELIEF / BELIEF.sum(axis=-1, keepdims=True)


def mixed(nature, belief=BELIEF):
    return np.asarray((nature.weights(belief, VALUES) * VALUES).sum(axis=-1))


def test_level_one_is_the_mean_and_level_zero_the_worst_of_the_support():
    np.testing.assert_array_equal(mixed(BeliefCVaR(1.0)), mixed(BeliefMean()))
    np.testing.assert_allclose(mixed(BeliefMean()), (BELIEF * VALUES).sum(axis=-1), rtol=1e-6)
    worst = np.where(np.asarray(BELIEF) > 0, VALUES, np.inf).min(axis=-1)
    np.testing.assert_array_equal(mixed(BeliefCVaR(0.0)), worst)
    np.testing.assert_array_equal(mixed(CredibleWorst(0.0)), worst)
    np.testing.assert_allclose(mixed(BeliefCVaR(1e-6)), worst, rtol=1e-5)


@pytest.mark.parametrize("level", [0.1, 0.4, 0.75, 1.0])
def test_a_uniform_belief_is_the_tail_of_equally_likely_members(level):
    uniform = jnp.full((50, 6), 1 / 6)
    usual = np.asarray((CVaR(level).weights(VALUES) * VALUES).sum(axis=-1))
    np.testing.assert_allclose(mixed(BeliefCVaR(level), uniform), usual, atol=1e-6)
    robust = np.asarray((Worst().weights(VALUES) * VALUES).sum(axis=-1))
    np.testing.assert_array_equal(mixed(BeliefCVaR(0.0), uniform), robust)


@pytest.mark.parametrize(
    "nature", [BeliefMean(), BeliefCVaR(0.3), BeliefCVaR(0.0), CredibleWorst(0.1), EpisodeCVaR(0.5)]
)
def test_a_certainty_leaves_no_choice(nature):
    certain = jax.nn.one_hot(jnp.arange(50) % 6, 6)
    np.testing.assert_allclose(mixed(nature, certain), VALUES[jnp.arange(50), jnp.arange(50) % 6], rtol=1e-6)


def test_the_credible_set_leaves_out_the_unlikely():
    belief, values = jnp.asarray([0.6, 0.35, 0.05]), jnp.asarray([3.0, 2.0, 1.0])
    assert CredibleWorst(0.1).weights(belief, values).tolist() == [0.0, 1.0, 0.0]
    assert CredibleWorst(0.5).weights(belief, values).tolist() == [1.0, 0.0, 0.0]
    assert CredibleWorst(0.0).weights(belief, values).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("make", [lambda: BeliefCVaR(1.5), lambda: EpisodeCVaR(0.0), lambda: CredibleWorst(1.0)])
def test_impossible_levels_are_refused(make):
    with pytest.raises(ValueError, match="expected"):
        make()
