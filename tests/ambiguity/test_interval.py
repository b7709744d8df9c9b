"""Boxes: absolute intervals, intervals stored in the model, and L-infinity balls."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.strategies import radii, rows
from oracles import worst_case as lp
from urbe.ambiguity.interval import Interval, LInfBall
from urbe.mdp.model import MDP
from urbe.testing import check_ambiguity_set, small_models

P, Z = np.array([0.4, 0.3, 0.1, 0.2]), np.array([1.0, 2.0, 5.0, 4.0])


def test_numbers_of_the_specification():
    mdp = lp.one_row_model(P)
    for box in (LInfBall(0.1), Interval(P - 0.1, P + 0.1)):
        nature = box.bind(mdp)
        assert nature.values(Z)[0] == pytest.approx(1.7, abs=1e-14)
        assert nature.worst_case(Z).rows.probability == pytest.approx([0.5, 0.4, 0.0, 0.1], abs=1e-15)


@given(row=rows(largest=9), radius=radii(1.0), everywhere=st.booleans())
@settings(deadline=None)
def test_maximum_norm_agrees_with_the_linear_program(row, radius, everywhere):
    p, z = row
    nature = LInfBall(radius, "all" if everywhere else "nominal").bind(lp.one_row_model(p))
    receives = np.ones(len(p), bool) if everywhere else p > 0
    lower, upper = np.maximum(p - radius, 0), np.where(receives, np.minimum(p + radius, 1), 0)
    assert_agrees(nature, z, lp.box(lower, upper, z))


@given(row=rows(largest=9), seed=st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_intervals_agree_with_the_linear_program(row, seed):
    p, z = row
    rng = np.random.default_rng(seed)
    lower = p * rng.choice([0.0, 0.3, 1.0], size=len(p))
    upper = np.minimum(p + rng.choice([0.0, 0.2, 1.0], size=len(p)), 1.0)
    dense = np.zeros((2, len(p), 1, len(p)))
    dense[:, 0, 0] = lower, upper  # allows successors the model does not have
    nature = Interval(*dense).bind(lp.one_row_model(p))
    assert_agrees(nature, z, lp.box(lower, upper, z))


def assert_agrees(nature, z, expected):
    scale = 1 + np.abs(z).max()
    value = nature.values(z)[0]
    assert value == pytest.approx(expected, abs=lp.LP_TOLERANCE * scale)
    worst = nature.worst_case(z)
    assert worst.value[0] == pytest.approx(value, abs=1e-14 * scale)
    assert nature.excess(worst.rows)[0] <= 1e-14
    assert nature.dual_bound(z)[0] == pytest.approx(value, abs=1e-14 * scale)
    nature.values(-z)  # leaves another entry in memory
    assert nature.values(z)[0] == pytest.approx(value, abs=1e-14 * scale)


@pytest.mark.parametrize("support", ["nominal", "all"])
@pytest.mark.parametrize("radius", [0.0, 0.13, 1.0])
def test_contract_of_the_maximum_norm(support, radius):
    def oracle(p, z):
        receives = p > (-1 if support == "all" else 0)
        return lp.box(np.maximum(p - radius, 0), np.where(receives, np.minimum(p + radius, 1), 0), z)

    check_ambiguity_set(LInfBall(radius, support), oracle=oracle)


def wide_bounds(mdp):
    p = mdp.to_dense()[0]
    return 0.4 * p, np.minimum(1.0, 1.3 * p + 0.05)


def test_contract_of_intervals_with_new_successors():
    def oracle(p, z):
        return lp.box(0.4 * p, np.minimum(1.0, 1.3 * p + 0.05), z)

    check_ambiguity_set(lambda mdp: Interval(*wide_bounds(mdp)), oracle=oracle)


@pytest.mark.parametrize("name", ["sparse rows", "rewards of successors", "terminal states"])
def test_contract_of_a_models_own_bounds(name):
    mdp = small_models()[name]
    p = mdp.rows.probability
    bounded = replace(mdp, bounds=(0.5 * p, np.minimum(1.0, 1.5 * p)))
    check_ambiguity_set(Interval(), bounded, oracle=lambda p, z: lp.box(0.5 * p, np.minimum(1.0, 1.5 * p), z))
    given = Interval(*bounded.bounds).bind(mdp)
    v = np.arange(float(mdp.n_states))
    assert np.array_equal(given.values(v), Interval().bind(bounded).values(v))


def test_long_rows_are_sorted_too():
    rng = np.random.default_rng(2)
    mdp = MDP.from_dense(rng.dirichlet(np.ones(70), size=(70, 1)), rng.normal(size=70), discount=0.9)
    check_ambiguity_set(LInfBall(0.01), mdp)


def test_one_side_may_come_from_the_model():
    mdp = MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], 0.0, discount=1.0)
    p = mdp.rows.probability
    bounded = replace(mdp, bounds=(0.8 * p, np.minimum(1.0, 1.2 * p)))
    assert Interval(upper=1.0).bind(bounded).values(np.array([0.0, 1.0]))[0] == pytest.approx(0.4, abs=1e-15)
    assert Interval(lower=0.0).bind(bounded).values(np.array([0.0, 1.0]))[0] == pytest.approx(0.4, abs=1e-15)
    assert Interval(0.0, 1.0).bind(bounded).values(np.array([0.0, 1.0]))[0] == 0.0


def test_bounds_outside_the_nominal_support_list_new_successors():
    mdp = MDP.from_dense([[[0.0, 1.0, 0.0]]] * 3, 0.0, discount=1.0)
    upper = np.ones((3, 1, 3))
    upper[0, 0, 0] = 0.25
    nature = Interval(np.zeros((3, 1, 3)), upper).bind(mdp)
    v = np.array([-1.0, 1.0, 0.0])
    assert nature.values(v) == pytest.approx([-0.25, -1.0, -1.0], abs=1e-15)
    per_entry = Interval([0.0, 1.0, 1.0], upper).bind(mdp)  # an entry-wise side is zero on the new successors
    assert per_entry.values(v) == pytest.approx([-0.25, 1.0, 1.0], abs=1e-15)


@pytest.mark.parametrize(
    ("box", "message"),
    [
        (Interval(), r"lower is None, but the model has no bounds.*LInfBall"),
        (Interval(lower=0.0), "upper is None"),
        (Interval(0.6, 1.0), r"bounds of state 0, action 0: the lower ones sum to 1\.2"),
        (Interval(0.0, 0.4), r"state 0, action 0: .* the upper ones to 0\.8.*2 of 2 rows are empty"),
        (Interval(0.5, 0.4), r"state 0, action 0 on successor 0 are \[0\.5, 0\.4\], expected 0 <= lower <= upper <= 1"),
        (Interval(0.0, [0.5, 0.5, 1.5]), r"state 1, action 0 on successor 1 are \[0, 1\.5\]"),
        (Interval(np.zeros(4), 1.0), r"lower has shape \(4,\), expected a number.*\(3,\) or \(2, 1, 2\)"),
        (LInfBall(1.5), r"radius is 1\.5 for state 0, action 0, expected a number in \[0, 1\]"),
    ],
)
def test_errors_name_what_is_wrong(box, message):
    mdp = MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], 0.0, discount=0.9)
    with pytest.raises(ValueError, match=message):
        box.bind(mdp)


def test_a_new_successor_needs_a_reward():
    mdp = MDP.from_dense([[[0.0, 1.0]], [[0.5, 0.5]]], np.arange(4.0).reshape(2, 1, 2), discount=0.9)
    with pytest.raises(ValueError, match=r"allows successor 0 in state 0, action 0.*keep_zeros=True"):
        Interval(np.zeros((2, 1, 2)), np.ones((2, 1, 2))).bind(mdp)
