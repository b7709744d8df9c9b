"""Operators against plain loops, and the two laws from which all bounds follow."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import urbe
from fixtures.small_mdps import problems
from oracles.exact import ExactModel, assert_bracketed, nominal
from urbe import Exact, L1Ball
from urbe.ambiguity.operator import PolicyRows, midrange
from urbe.solvers.iterate import FixedPolicy

GARNET = urbe.library.garnet(12, 3, 4, seed=1, discount=0.9)


@st.composite
def problems_at_a_value(draw):
    mdp, nature, model = draw(problems(discounts=(0.0, 0.5, 0.999, 1.0)))
    size = draw(st.sampled_from([1.0, 1e-3, 1e6]))
    numbers = st.one_of(st.integers(-2, 2).map(float), st.floats(-10, 10, allow_subnormal=False))
    v = size * np.array(draw(st.lists(numbers, min_size=mdp.n_states, max_size=mdp.n_states)))
    shift = draw(st.sampled_from([0.0, 1.0, -1e4]))
    return mdp, nature, model, np.where(mdp.terminal, 0.0, v + shift)


@settings(max_examples=40)
@given(problem=problems_at_a_value())
def test_an_improvement_is_exact_up_to_its_stated_error(problem):
    mdp, nature, model, v = problem
    operator = nature.operator(mdp)
    improvement = operator.improve(v)
    error = Fraction(operator.error(v))
    exact_v = [Fraction(float(x)) for x in v]
    for row in range(mdp.n_rows):
        assert abs(Fraction(float(improvement.q[row])) - model.q(row, exact_v)) <= error
    for s in range(mdp.n_states):
        rows = list(model.rows_of(s))
        if rows:
            best = max(model.q(k, exact_v) for k in rows)
            assert abs(Fraction(float(improvement.value[s])) - best) <= error
            assert rows[int(np.argmax(improvement.q[rows]))] in improvement.policy.rows
        else:
            assert improvement.value[s] == 0.0
            assert s not in mdp.row_state[improvement.policy.rows]
    # the error is rounding, not a fudge: some hundred units in the last place
    size = mdp.rows.largest_reward + np.abs(v).max(initial=0.0)
    assert float(error) <= 200 * 2.0**-53 * size


@settings(max_examples=40)
@given(problem=problems_at_a_value(), seed=st.integers(0, 99))
def test_a_policys_operator_is_the_mean_of_its_rows(problem, seed):
    mdp, nature, model, v = problem
    raw = np.random.default_rng(seed).uniform(size=mdp.n_rows)
    first = np.isin(np.arange(mdp.n_rows), mdp.row_start)
    raw[(raw < 0.3) & ~first] = 0.0  # rows that are never taken
    weights = raw / np.bincount(mdp.row_state, raw, minlength=mdp.n_states)[mdp.row_state]
    operator = FixedPolicy(nature.operator(mdp), PolicyRows.of_weights(weights))
    found = operator.improve(v).value
    exact_v = [Fraction(float(x)) for x in v]
    for s in range(mdp.n_states):
        expected = sum((Fraction(float(weights[k])) * model.q(k, exact_v) for k in model.rows_of(s)), Fraction(0))
        assert abs(Fraction(float(found[s])) - expected) <= Fraction(operator.error(v))


@pytest.mark.parametrize("nature", [Exact(), L1Ball(0.4), L1Ball(0.4, support="all")], ids=str)
def test_monotone_and_shifting_with_constants(nature):
    rng = np.random.default_rng(0)
    operator = nature.operator(GARNET)
    for _ in range(20):
        v = rng.normal(size=12)
        new = operator.improve(v).value
        assert (operator.improve(v + rng.uniform(0, 1, size=12)).value >= new - 1e-14).all()
        assert operator.improve(v + 7.0).value == pytest.approx(new + 0.9 * 7.0, abs=1e-13)
        assert np.abs(operator.improve(v[::-1].copy()).value - new).max() <= 0.9 * np.abs(v - v[::-1]).max() + 1e-14


@pytest.mark.parametrize("weights", ["greedy", "random"])
def test_a_linear_system_is_the_operator_at_its_own_value(weights):
    rng = np.random.default_rng(1)
    v = rng.normal(size=12)
    operator = L1Ball(0.4, support="all").operator(GARNET)
    random = PolicyRows.of_weights(rng.dirichlet(np.ones(3), size=12).ravel())
    following, _ = operator.against(operator.improve(v).policy if weights == "greedy" else random)
    system = following.linear_system(v)
    assert system.reward + 0.9 * (system.matrix @ v) == pytest.approx(following.apply(v)[0], abs=1e-13)
    assert np.asarray(system.matrix.sum(axis=1)) == pytest.approx(np.ones(12), abs=1e-13)
    other = rng.normal(size=12)
    assert (system.reward + 0.9 * (system.matrix @ other) >= following.apply(other)[0] - 1e-13).all()
    assert following.entries == (12 * 4 if weights == "greedy" else 36 * 4)


def test_linear_systems_leave_terminal_states_empty():
    mdp = urbe.library.gambler(6)
    operator = L1Ball(0.1).operator(mdp)
    v = np.linspace(0, 1, 7)
    even = PolicyRows.of_weights(np.ones(mdp.n_rows) / np.diff(mdp.row_start)[mdp.row_state])
    for policy in (operator.improve(v).policy, even):
        following, _ = operator.against(policy)
        system = following.linear_system(v)
        assert system.reward + system.matrix @ v == pytest.approx(following.apply(v)[0], abs=1e-14)
        assert system.matrix[[0, 6]].nnz == 0
        assert following.apply(v)[0][[0, 6]].tolist() == [0.0, 0.0]


def test_rounding_grows_with_the_spread_rather_than_the_size():
    operator = L1Ball(0.4).operator(GARNET)
    v = np.random.default_rng(0).normal(size=12)
    assert operator.error(1e6 * v) > 1e5 * operator.error(v)
    assert operator.error(v + 1e6) < 0.5 * operator.error(1e6 * v)
    assert midrange(np.array([1.0, 4.0, 2.0])) == 2.5
    assert midrange(np.zeros(0)) == 0.0


def test_ties_go_to_the_first_action():
    mdp = urbe.MDP.from_dense(np.ones((1, 3, 1)), [[1.0, 2.0, 2.0]], discount=0.5)
    assert Exact().operator(mdp).improve(np.zeros(1)).policy.rows.tolist() == [1]


def off_by(mass):
    """A two-state model whose rows sum to 1 + mass, worth some hundreds everywhere."""
    mdp = urbe.MDP.from_dense(np.full((2, 1, 2), 0.5), [[1.0], [2.0]], discount=0.99)
    rows = replace(mdp.rows, probability=mdp.rows.probability * (1.0 + mass))
    return mdp.with_rows(rows)


@pytest.mark.parametrize("mass", [1e-9, -1e-9])
def test_rows_that_do_not_sum_to_one_are_allowed_for(mass):
    """Values are computed around the middle of v, which assumes mass one: the error says by how much that is wrong."""
    mdp = off_by(mass)
    operator, model = Exact().operator(mdp), ExactModel(mdp, nominal())
    v = np.array([1000.0, 1001.0])
    exact_v = [Fraction(x) for x in v]
    off = max(abs(Fraction(float(x)) - model.q(k, exact_v)) for k, x in enumerate(operator.improve(v).q))
    assert 1e-7 < off <= Fraction(operator.error(v))
    solution = urbe.solve(mdp, method=urbe.PartialPolicyIteration(tolerance=1e-3))
    assert_bracketed(solution.lower, model.optimal_value(), solution.upper)
    finite = urbe.solve(mdp, method=urbe.BackwardInduction(30))
    for step, exact_values in enumerate(model.horizon_values(30)):
        assert_bracketed(finite.lower[step], exact_values, finite.upper[step])
