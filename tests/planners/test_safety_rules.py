"""Smallest safe balls against the linear programs of their definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.safe_balls import distance_to_half_space, smallest_radius
from oracles.worst_case import l1
from urbe.planners.safety_rules import Cut, Hyperplane, QuantileDraw, smallest_balls

LP = 1e-6
"""Both sides solve programs by HiGHS, which accepts 1e-7 of infeasibility in each row."""

RULES = (Hyperplane(), QuantileDraw())


def random_cuts(rng, n_cuts, size, ties=False):
    """Cuts of one row, bounds being low quantiles of drawn rows, as they occur."""
    alpha = rng.uniform(0.2, 3.0, size)
    cuts = []
    for _ in range(n_cuts):
        z = rng.integers(0, 3, size).astype(float) if ties else rng.normal(size=size)
        draws = rng.dirichlet(alpha, 40)
        at = np.argsort(draws @ z)[1]
        cuts.append(Cut(z, float(draws[at] @ z), draws[at]))
    return cuts, alpha / alpha.sum()


def safe_up_to(rule, ball, cut):
    """By how much the ball is too small, from independent programs; all successors may receive mass."""
    if isinstance(rule, QuantileDraw):
        return np.abs(ball.centre - cut.draw).sum() - ball.radius
    return l1(ball.centre, cut.z, ball.radius, receivers=np.ones(len(cut.z), bool)) - cut.bound


@pytest.mark.parametrize("rule", RULES)
@given(seed=st.integers(0, 2**32 - 1), n_cuts=st.integers(1, 5), size=st.integers(1, 6), ties=st.booleans())
def test_the_smallest_ball_is_safe_and_no_larger_than_the_program_says(rule, seed, n_cuts, size, ties):
    cuts, mean = random_cuts(np.random.default_rng(seed), n_cuts, size, ties)
    (ball,) = smallest_balls(rule, [cuts], [mean])
    assert ball.centre.min() >= 0.0
    assert ball.centre.sum() == pytest.approx(1.0, abs=1e-14)
    for cut in cuts:
        assert safe_up_to(rule, ball, cut) <= LP * (1.0 + np.abs(cut.z).max())
    assert ball.radius == pytest.approx(smallest_radius(cuts, isinstance(rule, Hyperplane)), abs=LP)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 6), ties=st.booleans())
def test_radius_of_a_given_centre_is_its_distance_from_the_half_space(seed, size, ties):
    rng = np.random.default_rng(seed)
    (cut,), _ = random_cuts(rng, 1, size, ties)
    centre = rng.dirichlet(np.full(size, 0.5))
    expected = distance_to_half_space(centre, cut.z, max(cut.bound, cut.z.min()))
    assert Hyperplane().radius(centre, cut) == pytest.approx(expected, abs=LP)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 8))
def test_one_value_function_needs_no_radius_by_the_hyperplane(seed, size):
    (cut,), mean = random_cuts(np.random.default_rng(seed), 1, size)
    (ball,) = smallest_balls(Hyperplane(), [[cut]], [mean])
    assert ball.radius <= 1e-7
    # no nearer centre would do: the centre lies as far from the mean as the half-space does
    assert np.abs(ball.centre - mean).sum() == pytest.approx(distance_to_half_space(mean, cut.z, cut.bound), abs=LP)
    (point,) = smallest_balls(QuantileDraw(), [[cut]], [mean])
    assert point.radius <= 1e-7
    assert np.abs(point.centre - cut.draw).max() <= 1e-7


def test_two_draws_are_halfway_apart():
    cuts = [Cut(np.arange(3.0), 0.0, np.array(p)) for p in ([1.0, 0.0, 0.0], [0.2, 0.3, 0.5])]
    (ball,) = smallest_balls(QuantileDraw(), [cuts], [np.full(3, 1 / 3)])
    assert ball.radius == pytest.approx(0.8, abs=1e-7)  # half of the distance 1.6


def test_contradictory_values_by_hand():
    # theta_2 <= 0.1 and theta_1 <= 0.1: from (1/2, 1/2) mass 0.4 must be able to move either way
    cuts = [Cut(np.array([0.0, 1.0]), 0.1, np.array([0.9, 0.1])), Cut(np.array([1.0, 0.0]), 0.1, np.array([0.1, 0.9]))]
    for rule in RULES:
        (ball,) = smallest_balls(rule, [cuts], [np.array([0.7, 0.3])])
        assert ball.radius == pytest.approx(0.8, abs=1e-7)
        assert ball.centre == pytest.approx([0.5, 0.5], abs=1e-7)


@pytest.mark.parametrize("rule", RULES)
def test_rows_solved_together_are_those_solved_alone(rule):
    rng = np.random.default_rng(4)
    rows = [random_cuts(rng, n, size) for n, size in ((1, 3), (3, 2), (2, 6), (4, 4), (1, 1))]
    together = smallest_balls(rule, [cuts for cuts, _ in rows], [mean for _, mean in rows])
    for (cuts, mean), ball in zip(rows, together, strict=True):
        (alone,) = smallest_balls(rule, [cuts], [mean])
        assert ball.radius == pytest.approx(alone.radius, abs=LP)
        assert np.abs(ball.centre - mean).sum() == pytest.approx(np.abs(alone.centre - mean).sum(), abs=LP)


def test_the_hyperplane_never_needs_more_than_the_draw():
    rng = np.random.default_rng(7)
    for _ in range(20):
        cuts, mean = random_cuts(rng, 3, 4)
        (half,), (point,) = (smallest_balls(rule, [cuts], [mean]) for rule in RULES)
        assert half.radius <= point.radius + LP


def test_constant_values_ask_for_nothing():
    cut = Cut(np.full(3, 2.5), 2.5, np.array([0.2, 0.3, 0.5]))
    (ball,) = smallest_balls(Hyperplane(), [[cut]], [np.full(3, 1 / 3)])
    assert ball.radius == 0.0
    assert ball.centre == pytest.approx(np.full(3, 1 / 3))
