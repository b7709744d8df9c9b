"""lower <= V* <= upper, compared as rationals with values from exact arithmetic on the floating-point model."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import urbe
from fixtures.small_mdps import pairs_of_sets, problems, small_mdps
from oracles.exact import ExactModel, assert_bracketed, l1, nominal
from urbe import (
    MDP,
    BackwardInduction,
    L1Ball,
    ModifiedPolicyIteration,
    PartialPolicyIteration,
    ValueIteration,
    evaluate_policy,
    solve,
)
from urbe.mdp.evaluate import policy_rows
from urbe.solvers.certificate import certify

FEW_STEPS = 3000
METHODS = (
    PartialPolicyIteration(),
    PartialPolicyIteration(linear="always"),
    PartialPolicyIteration(linear="never", max_steps=50),
    ModifiedPolicyIteration(max_steps=100),
    ModifiedPolicyIteration(rule="residual", max_steps=100),
    ValueIteration(max_steps=FEW_STEPS),
    ValueIteration(rule="residual", max_steps=FEW_STEPS),
)
names = [f"{type(m).__name__}-{getattr(m, 'linear', m.rule)}" for m in METHODS]


def check(mdp, chosen, model, method):
    optimal = model.optimal_value()
    solution = solve(mdp, chosen, method, throw=False)
    assert_bracketed(solution.lower, optimal, solution.upper)
    # the lower bound is one on the returned policy's own worst case too
    own = model.policy_value(policy_rows(mdp, solution.policy))
    assert_bracketed(solution.lower, own, solution.upper)
    assert ((solution.lower <= solution.value) & (solution.value <= solution.upper)).all()
    assert solution.converged == (solution.gap <= method.tolerance)
    return solution, optimal


@pytest.mark.parametrize("method", METHODS, ids=names)
@settings(max_examples=25)
@given(problem=problems())
def test_bounds_hold_in_exact_arithmetic(method, problem):
    check(*problem, method)


@settings(max_examples=60)
@given(problem=problems(scales=(1.0,), discounts=(0.0, 0.5, 0.9, 0.99, 0.999)))
def test_default_method_reaches_its_tolerance(problem):
    solution, optimal = check(*problem, PartialPolicyIteration())
    assert solution.converged
    assert solution.gap <= 1e-6
    assert max(abs(Fraction(float(x)) - y) for x, y in zip(solution.value, optimal, strict=True)) <= Fraction(1, 10**6)


@settings(max_examples=40)
@given(problem=problems(discounts=(1.0,), ends=True, largest=4))
def test_bounds_hold_without_discounting(problem):
    mdp, chosen, model = problem
    if model.may_last_forever():
        with pytest.raises(ValueError, match="discount is 1, but"):
            solve(mdp, chosen)
        return
    solution = solve(mdp, chosen, throw=False)
    assert_bracketed(solution.lower, model.optimal_value(), solution.upper)
    assert certify(solution, nature=chosen).holds


@settings(max_examples=40)
@given(problem=problems(discounts=(0.0, 0.9, 1.0), largest=3))
def test_backward_induction_is_exact_up_to_rounding(problem):
    mdp, chosen, model = problem
    horizon = 4
    solution = solve(mdp, chosen, BackwardInduction(horizon))
    exact_values = model.horizon_values(horizon)
    size = max(abs(float(x)) for v in exact_values for x in v) + mdp.rows.largest_reward
    for step in range(horizon + 1):
        assert_bracketed(solution.lower[step], exact_values[step], solution.upper[step])
    assert solution.gap <= 1e-13 * size  # a dozen roundings a step, on rows of three entries
    assert certify(solution).holds


@settings(max_examples=40)
@given(problem=problems(discounts=(0.0, 0.9, 0.999)))
def test_evaluated_policies_are_bracketed(problem):
    mdp, chosen, model = problem
    first = mdp.by_action(np.zeros(mdp.n_rows), fill=-1.0)
    deterministic = np.where(mdp.terminal, -1, np.argmax(first == 0.0, axis=1))
    uniform = (first == 0.0) / np.maximum((first == 0.0).sum(axis=1, keepdims=True), 1)
    for policy in (deterministic, uniform):
        solution = evaluate_policy(mdp, policy, chosen, throw=False)
        assert_bracketed(solution.lower, model.policy_value(policy_rows(mdp, policy)), solution.upper)
        assert certify(solution).holds


@settings(max_examples=40)
@given(problem=problems())
def test_certificates_hold_and_contain_the_truth(problem):
    mdp, chosen, model = problem
    certificate = certify(solve(mdp, chosen, throw=False))
    assert certificate.holds, certificate.statement
    assert_bracketed(certificate.lower, model.optimal_value(), certificate.upper)


@pytest.mark.parametrize("discount", [0.9999, 1.0])
@pytest.mark.parametrize("n", [1, 5, 12])
def test_chain_that_fools_value_iteration(n, discount):
    mdp = urbe.library.haddad_monmege(n, discount=discount)
    solution = solve(mdp, method=PartialPolicyIteration(tolerance=1e-9))
    exact_value = ExactModel(mdp, nominal()).optimal_value()
    assert_bracketed(solution.lower, exact_value, solution.upper)
    if discount == 1.0:
        assert exact_value[n] == Fraction(1, 2)
        assert solution.value[n] == pytest.approx(0.5, abs=1e-9)


def test_robust_chain_that_fools_value_iteration():
    mdp = urbe.library.haddad_monmege(6)
    solution = solve(mdp, L1Ball(0.05))
    assert_bracketed(solution.lower, ExactModel(mdp, l1(0.05)).optimal_value(), solution.upper)


@settings(max_examples=15)
@given(mdp=small_mdps(discounts=(0.9,), scales=(1.0,)))
def test_radius_zero_is_nominal_and_larger_sets_are_worse(mdp):
    values = {}
    for chosen, answer, everywhere in pairs_of_sets(mdp):
        values[str(chosen)] = ExactModel(mdp, answer, everywhere=everywhere).optimal_value()
    nominal_value = values["Exact()"]
    assert values["L1Ball(radius=0.0, support='nominal')"] == nominal_value
    for name, value in values.items():
        if name.startswith("L1Ball"):
            assert all(x <= y for x, y in zip(value, nominal_value, strict=True))
    assert np.abs(solve(mdp, L1Ball(0.0)).value - solve(mdp).value).max() <= 1e-6


def test_one_state():
    mdp = MDP.from_dense([[[1.0], [1.0]]], [[-2.0, -3.0]], discount=0.75)
    for method in METHODS:
        solution = solve(mdp, L1Ball(1.0), method)
        assert solution.lower[0] <= -8.0 <= solution.upper[0]
        assert solution.policy.tolist() == [0]


def test_a_model_of_terminal_states_alone_is_worth_nothing():
    mdp = MDP.from_dense(np.zeros((2, 1, 2)), 0.0, discount=0.9, terminal=[0, 1])
    solution = solve(mdp)
    assert solution.value.tolist() == solution.lower.tolist() == solution.upper.tolist() == [0.0, 0.0]
    assert solution.policy.tolist() == [-1, -1]
