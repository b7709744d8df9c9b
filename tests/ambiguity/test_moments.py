"""Moments computed during a sweep, against difference quotients of values and the kernel where it is unique."""

import numpy as np
import pytest

import urbe
from oracles.layered import line_metric
from urbe.ambiguity.moments import moments_of_kernel
from urbe.testing import small_models

MODELS = small_models() | {"longer rows": urbe.library.garnet(30, 2, 12, seed=3, discount=0.9)}


def sets(mdp):
    """Every set at several radii, from none to all mass nature's."""
    n = mdp.n_states
    weights = 0.5 + np.arange(n) % 3 / 2.0
    out = {"nominal": urbe.Exact()}
    for radius in (0.0, 1e-9, 0.3, 2.0):
        out |= {
            f"L1 {radius}": urbe.L1Ball(radius),
            f"weighted L1 {radius}": urbe.WeightedL1Ball(radius, weights),
            f"L2 {radius}": urbe.L2Ball(radius / 2),
            f"L-infinity {radius}": urbe.LInfBall(radius / 2),
            f"KL {radius}": urbe.KLBall(radius),
            f"likelihood {radius}": urbe.LikelihoodRegion(radius),
            f"chi-square {radius}": urbe.Chi2Ball(radius),
            f"Wasserstein {radius}": urbe.WassersteinBall(radius / 4, line_metric(n)),
            f"contamination {radius}": urbe.Contamination(radius / 2),
            f"optimistic {radius}": urbe.Optimistic(urbe.L1Ball(radius)),
        }
        if not mdp.rows.rewards_successors:
            out |= {
                f"L1 anywhere {radius}": urbe.L1Ball(radius, support="all"),
                f"likelihood anywhere {radius}": urbe.LikelihoodRegion(radius, support="all"),
                f"contamination anywhere {radius}": urbe.Contamination(radius / 2, support="all"),
            }
    return out | {"boxes": urbe.Interval(0.0, 1.0), "scenarios": urbe.Scenarios([mdp, mdp])}


@pytest.mark.parametrize("name", MODELS)
def test_moments_are_those_of_the_kernel(name):
    mdp = MODELS[name]
    rng = np.random.default_rng(1)
    for label, each in sets(mdp).items():
        nature = each.bind(mdp)
        for scale in (1.0, 1e-6, 1e4):
            v, u = scale * rng.normal(size=mdp.n_states), rng.random(mdp.n_states)  # no ties
            found, expected = nature.moments(v, 0.7, u), moments_of_kernel(nature, v, 0.7, u)
            assert np.array_equal(found.value, nature.values(v, 0.7)), label
            if name in ("ties", "single successors"):
                continue
            size = max(expected.scatter.max(initial=0.0), 1e-14 * (scale + mdp.rows.largest_reward) ** 2)
            # 1e-6: sweeps of divergences stop where the value no longer changes, half the digits of a minimiser
            assert np.abs(found.scatter - expected.scatter).max(initial=0.0) <= 1e-6 * size, label
            assert np.abs(found.carried - expected.carried).max(initial=0.0) <= 2e-6, label


@pytest.mark.parametrize("name", MODELS)
def test_carried_lies_between_the_slopes_of_the_value(name):
    """Q is concave in v, so that [slope towards u, slope from -u] holds q . u for every minimiser q, ties or not."""
    mdp = MODELS[name]
    rng = np.random.default_rng(2)
    step = 1e-6
    for label, each in sets(mdp).items():
        if "optimistic" in label:  # convex: the sides change
            continue
        nature = each.bind(mdp)
        for v in (
            np.zeros(mdp.n_states),
            rng.integers(0, 2, mdp.n_states).astype(float),
            rng.normal(size=mdp.n_states),
        ):
            u = rng.random(mdp.n_states)
            carried = nature.moments(v, 0.0, u).carried
            here = nature.values(v)
            ahead = (nature.values(v + step * u) - here) / (mdp.discount * step)
            behind = (here - nature.values(v - step * u)) / (mdp.discount * step)
            # 1e-8: rounding of values over the step; 1e-4: curvature of smooth sets times the step, kinks of sharp
            # ones nearby, and what likelihood regions leave on the lowest successor at a radius that is nothing
            assert (carried >= ahead - 1e-4).all(), label
            assert (carried <= behind + 1e-4).all(), label


def test_known_rows_have_no_spread_and_no_rounding_of_it():
    mdp = MODELS["single successors"]
    for label, each in sets(mdp).items():
        v = 1e3 * np.random.default_rng(3).normal(size=4)
        assert not each.bind(mdp).moments(v, 123.4, np.ones(4)).scatter.any(), label


def test_a_model_without_rows():
    mdp = urbe.MDP.from_dense([[[1.0]]], [[0.0]], discount=0.9, terminal=[0])
    for each in (urbe.Exact(), urbe.L1Ball(0.1), urbe.KLBall(0.1), urbe.Contamination(0.1)):
        assert all(part.shape == (0,) for part in each.bind(mdp).moments(np.zeros(1), 0.0, np.zeros(1)))


@pytest.mark.parametrize("name", MODELS)
def test_values_that_are_known_save_a_sweep_and_change_nothing(name):
    """With the memory their sweep left; without it they are found again."""
    mdp = MODELS[name]
    v, u = np.random.default_rng(5).normal(size=mdp.n_states), np.random.default_rng(6).random(mdp.n_states)
    mixed = urbe.PerRow((urbe.L1Ball(0.3), urbe.KLBall(0.3)), np.arange(mdp.n_rows) % 2)
    for label, each in (sets(mdp) | {"row by row": mixed}).items():
        operator = each.operator(mdp)
        expected = operator.moments(v, u)
        swept = operator.improve(v)
        for memory in (swept.memory, None):
            found = operator.moments(v, u, swept.policy, memory, swept.q)
            for part in ("value", "q", "scatter", "carried"):
                np.testing.assert_allclose(
                    getattr(found, part), getattr(expected, part), rtol=1e-9, atol=1e-9, err_msg=label
                )
