"""Natures against their definitions: minima, linear programs, and the example of the soft-robust paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from urbe.deep.core.natures import Average, CVaR, MemberNature, Soft, Worst

TENTHS = st.integers(-30, 30).map(lambda tenth: tenth / 8)  # ties are common, and float32 has them exactly
# few lengths: each is compiled anew
VALUES = st.sampled_from([1, 2, 3, 6]).flatmap(lambda n: st.lists(TENTHS, min_size=n, max_size=n))
LEVELS = st.floats(0.02, 1.0)


def worth(nature, values):
    """sum_k weights_k y_k as the loss takes it."""
    y = jnp.asarray(values, jnp.float32)
    return float((nature.weights(y) * y).sum(axis=-1))


def lowest_mean(values, level):
    """min_p p.y over distributions p <= 1 / (K level): the dual of the variational definition, by HiGHS."""
    n = len(values)
    found = linprog(values, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=(0.0, 1.0 / (n * level)))
    return found.fun


@given(VALUES, LEVELS, st.randoms(use_true_random=False))
def test_weights_are_distributions_and_lie_between_the_extremes(values, level, random):
    shares = [random.random() + 0.01 for _ in values]
    for nature in (Average(), Worst(), CVaR(level), Soft(tuple(s / sum(shares) for s in shares))):
        assert isinstance(nature, MemberNature)
        weights = np.asarray(nature.weights(jnp.asarray(values, jnp.float32)))
        assert weights.dtype == np.float32
        assert (weights >= 0.0).all()
        assert weights.sum() == pytest.approx(1.0, abs=1e-6)
        assert min(values) - 1e-5 <= worth(nature, values) <= max(values) + 1e-5


@given(VALUES)
def test_worst_is_the_minimum_and_the_first_of_equal_ones(values):
    assert worth(Worst(), values) == min(values)
    assert np.asarray(Worst().weights(jnp.asarray(values, jnp.float32))).tolist().index(1.0) == values.index(
        min(values)
    )


@given(VALUES, LEVELS)
def test_cvar_is_the_linear_program(values, level):
    # HiGHS accepts 1e-7 of infeasibility; float32 weights have 6e-8 each
    assert worth(CVaR(level), values) == pytest.approx(lowest_mean(values, level), abs=1e-5)


@given(VALUES, LEVELS)
def test_cvar_is_its_variational_definition(values, level):
    y = np.array(values)
    best = max(c - np.maximum(c - y, 0.0).mean() / level for c in np.append(y, np.linspace(-4, 4, 33)))
    assert worth(CVaR(level), values) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 15, 49])
def test_the_ends_of_cvar_are_worst_and_average_bit_for_bit(n):
    y = jnp.asarray(np.random.default_rng(n).normal(size=(50, n)), jnp.float32)
    for level in (1.0 / n, 0.5 / n, 1e-6):
        assert jnp.array_equal(CVaR(level).weights(y), Worst().weights(y)), level
    assert jnp.array_equal(CVaR(1.0).weights(y), Average().weights(y))


def test_cvar_shares_the_level_among_the_lowest_and_not_their_equals():
    # .3 of 4 members is 1.2 of them: the first of the lowest whole, .2 of the next
    assert CVaR(0.3).weights(jnp.float32([5.0, 1.0, 1.0, 2.0])).tolist() == pytest.approx([0, 1 / 1.2, 0.2 / 1.2, 0])


@given(VALUES, LEVELS, LEVELS)
def test_cvar_grows_with_its_level(values, a, b):
    low, high = sorted((a, b))
    assert worth(CVaR(low), values) <= worth(CVaR(high), values) + 1e-5


def test_every_row_of_a_batch_is_weighed_by_itself():
    y = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 4)), jnp.float32)
    for nature in (Average(), Worst(), CVaR(0.4), Soft((0.1, 0.2, 0.3, 0.4))):
        whole, one = jax.jit(nature.weights)(y), jax.jit(nature.weights)
        assert whole.shape == y.shape
        for i in range(2):
            for j in range(5):
                np.testing.assert_array_equal(whole[i, j], one(y[i, j]))


def test_types_are_the_same_where_64_bits_exist():
    with jax.enable_x64(True):
        y = jnp.asarray([[1.0, 2.0]], jnp.float32)
        for nature in (Average(), Worst(), CVaR(0.4), Soft((0.1, 0.9))):
            assert nature.weights(y).dtype == jnp.float32


def test_nominal_soft_and_robust_choose_three_different_actions():
    """The single-step domain of the soft-robust paper: success probabilities of five models, three gambles."""
    p, shares, nominal = np.array([0.1, 0.7, 0.8, 0.3, 0.5]), (0.47, 0.22, 0.1, 0.09, 0.12), 0.8
    gambles = np.array([[1e5, -1e5], [5000.0, -500.0], [2000.0, 0.0]])  # rewards of success and failure
    by_member = gambles[:, :1] * p + gambles[:, 1:] * (1 - p)

    def best(values):
        return int(np.argmax(values)) + 1

    assert best(gambles @ [nominal, 1 - nominal]) == 1
    soft = [worth(Soft(shares), values) for values in by_member]
    assert soft == pytest.approx([-26400.0, 1524.0, 736.0], rel=1e-5)
    assert best(soft) == 2
    robust = [worth(Worst(), values) for values in by_member]
    assert robust == pytest.approx([-80000.0, 50.0, 200.0], rel=1e-5)
    assert best(robust) == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: CVaR(0.0), "level is 0.0, expected a number above 0"),
        (lambda: CVaR(1.1), r"level is 1.1, expected a number in \[0, 1\]"),
        (lambda: CVaR(float("nan")), "level is nan"),
        (lambda: Soft((0.5, 0.6)), "shares sums to 1.1, expected 1"),
        (lambda: Soft((1.5, -0.5)), r"shares\[1\] is -0.5, expected at least 0"),
        (lambda: Soft(()), "shares"),
        (lambda: Soft((0.5, 0.5)).weights(jnp.zeros(3, jnp.float32)), "shares has 2 entries, expected 3, one per mem"),
    ],
)
def test_what_is_refused_and_how(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
