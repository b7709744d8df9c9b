"""Wasserstein balls, on the row's successors and on all states, against the transport program."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.strategies import radii, rows
from oracles import worst_case as lp
from urbe.ambiguity.contamination import Contamination
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.wasserstein import WassersteinBall
from urbe.mdp.model import MDP
from urbe.testing import check_ambiguity_set

P, Z = np.array([0.4, 0.3, 0.1, 0.2]), np.array([1.0, 2.0, 5.0, 4.0])


def line(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def trivial(n):
    return 1.0 - np.eye(n)


def random_metric(rng, n, twins):
    """Symmetric, without the triangle inequality; with `twins`, some states coincide."""
    metric = rng.uniform(0.1, 2.0, size=(n, n)) if rng.uniform() < 0.5 else rng.integers(1, 4, size=(n, n)) * 1.0
    if twins:
        metric *= rng.uniform(size=(n, n)) < 0.7
    metric = np.triu(metric, 1)
    return metric + metric.T


@pytest.mark.parametrize(("radius", "value"), [(0.0, 2.3), (0.2, 1.9), (0.5, 1.45), (1.0, 1.1), (2.0, 1.0)])
@pytest.mark.parametrize("support", ["nominal", "all"])
def test_the_trivial_metric_is_total_variation(radius, value, support):
    nature = WassersteinBall(radius / 2, trivial(4), support).bind(lp.one_row_model(P))
    assert nature.values(Z)[0] == pytest.approx(value, abs=1e-14)


def test_a_walk_by_hand():
    # mass at state 3 loses 3 wherever it goes: over three steps to state 0, or over one when state 2 may receive
    nature = WassersteinBall(0.1, line(4)).bind(lp.one_row_model([0.5, 0.0, 0.0, 0.5]))
    assert nature.values(np.array([0.0, 0.0, 0.0, 3.0]))[0] == pytest.approx(1.5 - 0.1, abs=1e-15)
    nature = WassersteinBall(0.1, line(4), "all").bind(lp.one_row_model([0.5, 0.0, 0.0, 0.5]))
    assert nature.values(np.array([0.0, 0.0, 0.0, 3.0]))[0] == pytest.approx(1.5 - 0.3, abs=1e-15)


@pytest.mark.parametrize("n", [44, 1060])
def test_the_tail_of_a_distribution_that_moves_to_one_state_is_measured(n):
    # the rounded masses of the tail do not add up to what the state receives, in the order in which a solver adds them
    tail = 0.5 ** np.arange(1.0, n + 1.0)
    mdp = lp.one_row_model(tail / tail.sum())
    kernel = replace(mdp.rows, probability=np.eye(n)[0])
    excess = WassersteinBall(0.25, line(n)).bind(mdp).excess(kernel)
    assert excess[0] * (n - 1) == pytest.approx(1.0 - 0.25, rel=1e-9)  # the mean, less the radius


@given(
    row=rows(),
    radius=radii(3.0),
    seed=st.integers(0, 2**32 - 1),
    everywhere=st.booleans(),
    twins=st.booleans(),
    own=st.booleans(),
)
@settings(deadline=None)
def test_agrees_with_the_linear_program(row, radius, seed, everywhere, twins, own):
    p, z = row
    metric = random_metric(np.random.default_rng(seed), len(p), twins)
    mdp = lp.one_row_model(p, by_successor=own, keep_zeros=own and everywhere)
    nature = WassersteinBall(radius, metric, "all" if everywhere else "nominal").bind(mdp)
    receivers = np.ones(len(p), bool) if everywhere else None
    scale = 1 + np.abs(z).max()
    value = nature.values(z)[0]
    # HiGHS may overspend the radius by 1e-7, worth 1e-7 / distance of mass, and distances are at least 0.1
    assert value == pytest.approx(lp.wasserstein(p, z, metric, radius, receivers), abs=10 * lp.LP_TOLERANCE * scale)
    worst = nature.worst_case(z)
    assert worst.value[0] == pytest.approx(value, abs=1e-13 * scale)
    assert nature.excess(worst.rows)[0] <= 1e-8  # by a linear program, see transport_excess
    assert nature.dual_bound(z)[0] == pytest.approx(value, abs=1e-12 * scale)
    nature.values(-z)  # leaves another multiplier in memory
    assert nature.values(z)[0] == pytest.approx(value, abs=1e-13 * scale)


@pytest.mark.parametrize("support", ["nominal", "all"])
@pytest.mark.parametrize("radius", [0.0, 0.3, 50.0])
def test_contract(support, radius):
    def metric(n):
        return line(n) ** 1.5

    def oracle(p, z):
        return lp.wasserstein(p, z, metric(len(p)), radius, np.ones(len(p), bool) if support == "all" else None)

    check_ambiguity_set(lambda mdp: WassersteinBall(radius, metric(mdp.n_states), support), oracle=oracle)


def test_rows_of_many_states_share_their_envelopes():
    rng = np.random.default_rng(4)
    n = 40
    points = rng.normal(size=(n, 2))
    metric = np.linalg.norm(points[:, None] - points, axis=-1)
    metric = (metric + metric.T) / 2
    transition = rng.dirichlet(np.full(n, 0.2), size=(n, 1))
    mdp = MDP.from_dense(transition, rng.normal(size=n), discount=0.9, keep_zeros=True)
    v = rng.normal(size=n)
    nature = WassersteinBall(0.2, metric).bind(mdp)  # dense: the shared envelopes
    assert nature.order is not None
    within = WassersteinBall(0.2, metric).bind(
        MDP.from_dense(transition, np.repeat(mdp.rows.reward, n).reshape(n, 1, n), discount=0.9, keep_zeros=True)
    )  # the same rewards, given per successor: each row on its own
    assert within.order is None
    assert nature.values(v) == pytest.approx(within.values(v), abs=1e-13)
    assert nature.values(v) == pytest.approx(nature.dual_bound(v), abs=1e-12)
    assert nature.worst_case(v).value == pytest.approx(within.worst_case(v).value, abs=1e-13)


@pytest.mark.parametrize("own", [False, True])
def test_states_that_coincide_exchange_mass_for_nothing(own):
    metric = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    z = np.array([0.0, 1.0, 5.0])
    for radius, value in [(0.0, 2.0), (0.1, 1.5), (0.4, 0.0)]:
        nature = WassersteinBall(radius, metric).bind(lp.one_row_model([0.3, 0.3, 0.4], by_successor=own))
        assert (nature.order is None) == own
        assert nature.values(z)[0] == pytest.approx(value, abs=1e-15)
        assert nature.worst_case(z).value[0] == pytest.approx(value, abs=1e-15)


def test_without_a_radius_the_sensitivity_is_the_value_itself():
    """Also for successors of probability zero, which no plan speaks about."""
    mdp = lp.one_row_model([0.5, 0.0, 0.5], keep_zeros=True, by_successor=True)
    z = np.array([0.0, 9.0, 1.0])
    assert WassersteinBall(0.0, trivial(3), "all").bind(mdp).worst_case(z).sensitivity == pytest.approx(z, abs=1e-15)


def test_nested_sets_give_ordered_values():
    rng = np.random.default_rng(0)
    mdp = MDP.from_dense(rng.dirichlet(np.ones(5), size=(5, 1)), 0.0, discount=1.0)
    v = rng.normal(size=5)
    ball = WassersteinBall(0.3, trivial(5)).bind(mdp).values(v)
    assert ball == pytest.approx(L1Ball(0.6).bind(mdp).values(v), abs=1e-14)
    assert (Contamination(0.3).bind(mdp).values(v) >= ball - 1e-14).all()


def test_excess_counts_mass_where_none_may_go():
    mdp = lp.one_row_model([0.5, 0.0, 0.5])
    kernel = lp.one_row_model([0.5, 0.1, 0.4]).rows
    assert WassersteinBall(1.0, line(3)).bind(mdp).excess(kernel)[0] == np.inf
    assert WassersteinBall(1.0, line(3), "all").bind(mdp).excess(kernel)[0] == 0.0
    assert WassersteinBall(0.02, line(3), "all").bind(mdp).excess(kernel)[0] == pytest.approx(
        0.08 / 2.0, abs=1e-8
    )  # in units of the longest way


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (np.zeros((3, 3)), r"metric has shape \(3, 3\), expected one distance per pair of states \(2, 2\)"),
        ([[0.0, -1.0], [-1.0, 0.0]], r"metric\[0, 1\] is -1"),
        ([[0.0, 1.0], [1.0, 0.5]], r"metric\[1, 1\] is 0\.5, expected 0"),
        ([[0.0, 1.0], [2.0, 0.0]], r"metric\[0, 1\] is 1 but metric\[1, 0\] is 2"),
        ([[0.0, np.inf], [np.inf, 0.0]], r"metric\[0, 1\] is inf, expected a finite number"),
    ],
)
def test_errors_name_what_is_wrong(metric, message):
    mdp = MDP.from_dense(np.full((2, 1, 2), 0.5), 0.0, discount=0.9)
    with pytest.raises(ValueError, match=message):
        WassersteinBall(0.1, metric).bind(mdp)


def test_any_state_needs_every_reward():
    mdp = MDP.from_dense([[[1.0, 0.0]], [[0.5, 0.5]]], np.arange(4.0).reshape(2, 1, 2), discount=0.9)
    with pytest.raises(ValueError, match=r"state 0, action 0 lists 1 of 2.*keep_zeros=True"):
        WassersteinBall(0.1, trivial(2), "all").bind(mdp)


def test_rounding_that_moves_mass_is_no_excess_whatever_the_radius():
    """Mass moves at no cost between states that coincide; what little moves at a cost is rounding."""
    p = [float.fromhex(x) for x in ("0x1.328aca37d9507p-30", "0x1.a36acd4df398dp-1", "0x1.57191eca13161p-3",
                                    "0x1.b3babd7cd1da3p-7", "0x1.eb31609883848p-48")]  # fmt: skip
    q = [p[1], 0.0, 0.0, float.fromhex("0x1.b3babfe1e8644p-7"), p[2]]
    metric = [[0, 0, 1, 0, 1], [0, 0, 1, 1, 0], [1, 1, 0, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 0]]
    nature = WassersteinBall(5e-324, metric).bind(MDP.from_dense(np.tile(p, (5, 1, 1)), 0.0, discount=0.5))
    assert (nature.excess(replace(nature.rows, probability=np.tile(q, 5))) <= 0.0).all()
