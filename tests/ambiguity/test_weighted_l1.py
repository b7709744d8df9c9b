"""Weighted L1 balls against the linear program, and cases in which a greedy solution is wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.strategies import radii, rows
from oracles import worst_case as lp
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.weighted_l1 import WeightedL1Ball
from urbe.mdp.model import MDP
from urbe.testing import check_ambiguity_set

P, Z = np.array([0.4, 0.3, 0.1, 0.2]), np.array([1.0, 2.0, 5.0, 4.0])


@pytest.mark.parametrize(("radius", "value"), [(0.0, 2.3), (0.2, 1.9), (0.5, 1.45), (1.0, 1.1), (2.0, 1.0)])
@pytest.mark.parametrize("weight", [1.0, 0.25, 7.0])
def test_equal_weights_scale_the_radius(radius, value, weight):
    nature = WeightedL1Ball(weight * radius, weight).bind(lp.one_row_model(P))
    assert nature.values(Z)[0] == pytest.approx(value, abs=1e-14)


def test_the_lowest_successor_is_not_always_the_receiver():
    # two units of weight reach z = 1 cheaply; the lowest successor z = 0 is too costly to move mass to
    p, z, weights = [0.2, 0.2, 0.6], np.array([0.0, 1.0, 10.0]), [100.0, 1.0, 1.0]
    nature = WeightedL1Ball(0.4, weights).bind(lp.one_row_model(p))
    assert nature.worst_case(z).rows.probability == pytest.approx([0.2, 0.4, 0.4], abs=1e-15)
    assert nature.values(z)[0] == pytest.approx(0.4 + 4.0, abs=1e-14)


def test_two_receivers_share_when_the_budget_ends_between_plans():
    # moving 0.6 to z = 1 costs 1.2 and to z = 0 costs 0.6 * 11 = 6.6; a budget in between mixes both
    p, z, weights = [0.2, 0.2, 0.6], np.array([0.0, 1.0, 10.0]), [10.0, 1.0, 1.0]
    nature = WeightedL1Ball(3.9, weights).bind(lp.one_row_model(p))
    worst = nature.worst_case(z)
    assert worst.value[0] == pytest.approx(lp.l1(p, z, 3.9, weights), abs=lp.LP_TOLERANCE)
    assert worst.rows.probability == pytest.approx([0.5, 0.5, 0.0], abs=1e-14)


weights_of_seven = st.lists(st.sampled_from([1e-3, 0.1, 0.5, 1.0, 1.0, 2.0, 3.7, 50.0]), min_size=7, max_size=7)


@given(row=rows(), radius=radii(4.0), weights=weights_of_seven, everywhere=st.booleans())
@settings(deadline=None)
def test_agrees_with_the_linear_program(row, radius, weights, everywhere):
    p, z = row
    weights = np.array(weights[: len(p)])
    nature = WeightedL1Ball(radius, weights, "all" if everywhere else "nominal").bind(lp.one_row_model(p))
    receivers = np.ones(len(p), bool) if everywhere else p > 0
    expected = lp.l1(p, z, radius, weights, receivers)
    scale = 1 + np.abs(z).max()
    # HiGHS may overspend the budget by 1e-7, worth 1e-7 / (w_i + w_j) of mass: the lightest weight sets the tolerance
    tolerance = lp.LP_TOLERANCE * scale / min(1.0, 2 * weights.min())
    value = nature.values(z)[0]
    assert value == pytest.approx(expected, abs=tolerance)
    worst = nature.worst_case(z)
    assert worst.value[0] == pytest.approx(value, abs=1e-13 * scale)
    assert nature.excess(worst.rows)[0] <= 1e-12 * (1 + radius)
    assert nature.dual_bound(z)[0] == pytest.approx(value, abs=1e-12 * scale)


def test_long_rows_agree_with_the_dual_within_the_stated_accuracy():
    rng = np.random.default_rng(5)
    n = 150
    mdp = MDP.from_dense(rng.dirichlet(np.full(n, 0.5), size=(n, 1)), rng.normal(size=n), discount=0.9)
    nature = WeightedL1Ball(rng.uniform(0, 3, size=n), rng.uniform(0.01, 5, size=n)).bind(mdp)
    some = np.arange(0, n, 10)
    for _ in range(3):
        v = rng.normal(size=n)
        value = nature.values(v)
        scale = np.abs(v).max() + mdp.rows.largest_reward
        # bisection on the multiplier ends 2^-52 away from it, at most that times the costs below the value
        gap = value[some] - nature.take(some).dual_bound(v)
        assert (np.abs(gap) <= nature.accuracy * scale + 1e-13).all()
        assert nature.worst_case(v).value == pytest.approx(value, abs=1e-12)


def test_without_a_radius_the_sensitivity_is_the_value_itself():
    """Also for successors of probability zero, which no plan speaks about."""
    z = np.array([0.0, 9.0, 1.0])
    nature = WeightedL1Ball(0.0, [1.0, 1.0, 2.0], "all").bind(lp.one_row_model([0.5, 0.0, 0.5]))
    assert nature.worst_case(z).sensitivity == pytest.approx(z, abs=1e-15)


def weights_of(mdp):
    return 0.5 + np.arange(mdp.n_states)


@pytest.mark.parametrize("support", ["nominal", "all"])
@pytest.mark.parametrize("radius", [0.0, 0.4, 2.0, 30.0])
def test_contract(support, radius):
    def oracle(p, z):
        return lp.l1(p, z, radius, 0.5 + np.arange(len(p)), np.ones(len(p), bool) if support == "all" else None)

    check_ambiguity_set(lambda mdp: WeightedL1Ball(radius, weights_of(mdp), support), oracle=oracle)


def test_weights_one_are_the_plain_ball():
    rng = np.random.default_rng(1)
    mdp = MDP.from_dense(rng.dirichlet(np.ones(5), size=(5, 2)), rng.normal(size=(5, 2)), discount=0.9)
    v = rng.normal(size=5)
    for radius in (0.1, 0.9, 1.7):
        plain = L1Ball(radius).bind(mdp).values(v)
        assert WeightedL1Ball(radius, 1.0).bind(mdp).values(v) == pytest.approx(plain, abs=1e-14)


def test_weights_per_entry_follow_the_models_entries():
    transition = [[[0.5, 0.0, 0.5]], [[0.2, 0.3, 0.5]], [[1.0, 0.0, 0.0]]]
    v = np.array([0.0, 1.0, 3.0])
    listed = MDP.from_dense(transition, 0.0, discount=1.0, keep_zeros=True)
    lean = MDP.from_dense(transition, 0.0, discount=1.0)
    dense = np.arange(1.0, 10.0)
    positive = np.array(transition).ravel() > 0
    expected = [lp.l1(transition[s][0], v, 0.6, dense[3 * s : 3 * s + 3]) for s in range(3)]
    for mdp, weights in [(listed, dense), (lean, dense[positive])]:
        found = WeightedL1Ball(0.6, weights).bind(mdp).values(v)
        assert found == pytest.approx(expected, abs=lp.LP_TOLERANCE)


@pytest.mark.parametrize(
    ("ball", "message"),
    [
        (WeightedL1Ball(0.1, [1.0, 0.0]), r"weights\[1\] is 0, expected a number above 0"),
        (WeightedL1Ball(0.1, -2.0), "weights is -2, expected a number above 0"),
        (WeightedL1Ball(0.1, np.ones(5)), r"weights has shape \(5,\).*one per state \(2,\).*per entry.*\(3,\)"),
        (WeightedL1Ball(0.1, np.ones(3), "all"), r'support="all" adds entries; expected one per state \(2,\)'),
        (WeightedL1Ball(-0.1, 1.0), "radius is -0.1 for state 0, action 0"),
    ],
)
def test_errors_name_what_is_wrong(ball, message):
    mdp = MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], 0.0, discount=0.9)
    with pytest.raises(ValueError, match=message):
        ball.bind(mdp)
