"""L1 balls: sparse rows, all successors, dense rows with a common order, memory between sweeps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.strategies import radii, rows
from oracles import worst_case as lp
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.optimistic import Optimistic
from urbe.mdp.model import MDP
from urbe.testing import check_ambiguity_set

P, Z = np.array([0.4, 0.3, 0.1, 0.2]), np.array([1.0, 2.0, 5.0, 4.0])


@pytest.mark.parametrize(("radius", "value"), [(0.0, 2.3), (0.2, 1.9), (0.5, 1.45), (1.0, 1.1), (2.0, 1.0)])
def test_numbers_of_the_specification(radius, value):
    for support in ("nominal", "all"):
        nature = L1Ball(radius, support).bind(lp.one_row_model(P))
        assert nature.values(Z)[0] == pytest.approx(value, abs=1e-14)
        assert nature.worst_case(Z).value[0] == pytest.approx(value, abs=1e-14)


@given(row=rows(), radius=radii(2.0), everywhere=st.booleans(), listed=st.booleans())
@settings(deadline=None)
def test_agrees_with_the_linear_program(row, radius, everywhere, listed):
    p, z = row
    nature = L1Ball(radius, "all" if everywhere else "nominal").bind(lp.one_row_model(p, keep_zeros=listed))
    receivers = np.ones(len(p), bool) if everywhere else p > 0
    expected = lp.l1(p, z, radius, receivers=receivers)
    tolerance = lp.LP_TOLERANCE * (1 + np.abs(z).max())
    assert nature.values(z)[0] == pytest.approx(expected, abs=tolerance)
    worst = nature.worst_case(z)
    assert worst.value[0] == pytest.approx(expected, abs=tolerance)
    assert nature.excess(worst.rows)[0] <= 1e-12
    assert nature.dual_bound(z)[0] == pytest.approx(nature.values(z)[0], abs=1e-13 * (1 + np.abs(z).max()))


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 12),
    dense=st.booleans(),
    everywhere=st.booleans(),
    ties=st.booleans(),
)
@settings(deadline=None)
def test_memory_of_earlier_sweeps_does_not_change_answers(seed, n, dense, everywhere, ties):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(n, 0.5), size=(n, 2))
    if not dense:
        transition *= rng.uniform(size=transition.shape) < 0.5
        transition[..., 0] += transition.sum(-1) == 0.0
        transition /= transition.sum(-1, keepdims=True)
    mdp = MDP.from_dense(transition, rng.normal(size=(n, 2)), discount=0.9, keep_zeros=dense)
    ball = L1Ball(rng.uniform(0, 2, size=(n, 2)), "all" if everywhere else "nominal")
    nature = ball.bind(mdp)
    for _ in range(4):
        v = rng.integers(-2, 3, size=n).astype(float) if ties else rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
        again = nature.values(v)
        assert again == pytest.approx(ball.bind(mdp).values(v), abs=1e-13 * (1 + np.abs(v).max()))
        assert again == pytest.approx(nature.dual_bound(v), abs=1e-13 * (1 + np.abs(v).max()))


@pytest.mark.parametrize("support", ["nominal", "all"])
@pytest.mark.parametrize("radius", [0.0, 0.3, 1.1, 2.0])
def test_contract(support, radius):
    everywhere = support == "all"

    def oracle(p, z):
        return lp.l1(p, z, radius, receivers=np.ones(len(p), bool) if everywhere else None)

    check_ambiguity_set(L1Ball(radius, support), oracle=oracle)


def test_contract_on_long_rows():
    rng = np.random.default_rng(3)
    transition = rng.dirichlet(np.full(60, 0.3), size=(60, 1))
    mdp = MDP.from_dense(transition, rng.normal(size=60), discount=0.9)
    check_ambiguity_set(L1Ball(0.7), mdp)
    check_ambiguity_set(Optimistic(L1Ball(0.7, "all")), mdp, optimistic=True)


def test_rewards_of_successors_stay_inside_the_minimum():
    reward = np.array([[[3.0, 0.0, -1.0]], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]])
    transition = np.zeros((3, 1, 3))
    transition[0, 0] = [0.2, 0.3, 0.5]
    mdp = MDP.from_dense(transition, reward, discount=0.5, terminal=[1, 2])
    v = np.array([2.0, 4.0, 8.0])  # z = (3 + 1, 0 + 2, -1 + 4)
    expected = lp.l1([0.2, 0.3, 0.5], [4.0, 2.0, 3.0], 0.6)
    assert L1Ball(0.6).bind(mdp).values(v)[0] == pytest.approx(expected, abs=lp.LP_TOLERANCE)


def test_radius_in_every_accepted_form():
    transition = np.full((2, 2, 2), 0.5)
    mdp = MDP.from_dense(transition, 0.0, discount=1.0, available=[[True, False], [True, True]])
    v = np.array([0.0, 1.0])
    table = np.array([[0.2, 9.0], [0.4, 0.6]])  # the pair that does not exist is not read
    forms = [[0.2, 0.4, 0.6], table, {(0, 0): 0.2, (1, 0): 0.4, (1, 1): 0.6}]
    for radius in forms:
        assert L1Ball(radius).bind(mdp).values(v) == pytest.approx([0.4, 0.3, 0.2], abs=1e-15)
    assert L1Ball(0.2).bind(mdp).values(v) == pytest.approx([0.4] * 3, abs=1e-15)


@pytest.mark.parametrize(
    ("ball", "message"),
    [
        (L1Ball(2.5), r"radius is 2\.5 for state 0, action 0, expected a number in \[0, 2\]"),
        (L1Ball(-0.1), "radius is -0.1 for state 0"),
        (L1Ball([0.1, 0.2, 0.3]), r"radius has shape \(3,\)"),
        (L1Ball(float("nan")), "radius is nan"),
        (L1Ball({(0, 0): 0.1}), "radius has no number for state 1, action 0"),
        (L1Ball(0.1, "some"), "support is 'some', expected one of 'nominal', 'all'"),
    ],
)
def test_errors_name_what_is_wrong(ball, message):
    mdp = MDP.from_dense(np.full((2, 1, 2), 0.5), 0.0, discount=0.9)
    with pytest.raises(ValueError, match=message):
        ball.bind(mdp)


def test_any_successor_needs_every_reward():
    reward = np.arange(4.0).reshape(2, 1, 2)
    mdp = MDP.from_dense([[[1.0, 0.0]], [[0.5, 0.5]]], reward, discount=0.9)
    with pytest.raises(ValueError, match=r"state 0, action 0 lists 1 of 2.*keep_zeros=True"):
        L1Ball(0.1, "all").bind(mdp)


def test_values_fall_with_the_radius_and_end_at_the_lowest_successor():
    rng = np.random.default_rng(0)
    mdp = MDP.from_dense(rng.dirichlet(np.ones(6), size=(6, 2)), rng.normal(size=(6, 2)), discount=0.9)
    v = rng.normal(size=6)
    table = np.array([L1Ball(r).bind(mdp).values(v) for r in np.linspace(0, 2, 41)])
    assert (np.diff(table, axis=0) <= 1e-15).all()
    assert (np.diff(table, 2, axis=0) >= -1e-14).all()  # convex in the radius
    assert table[0] == pytest.approx(mdp.rows.reward + mdp.matrix() @ (0.9 * v), abs=1e-14)
    assert table[-1] == pytest.approx(mdp.rows.reward + 0.9 * v.min(), abs=1e-14)
