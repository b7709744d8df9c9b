"""Certificates reject: every claim of a solution is falsified once, and the error must name it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import urbe
from urbe import MDP, BackwardInduction, L1Ball, evaluate_policy, solve
from urbe.ambiguity.contamination import Contamination
from urbe.ambiguity.interval import LInfBall
from urbe.ambiguity.optimistic import Optimistic
from urbe.ambiguity.scenarios import ConditionalValueAtRisk, Scenarios, ValueAtRisk
from urbe.ambiguity.shared_budget.s_rectangular import SRectangular
from urbe.ambiguity.wasserstein import WassersteinBall
from urbe.ambiguity.weighted_l1 import WeightedL1Ball
from urbe.mdp.rows import Rows
from urbe.solvers.certificate import certify
from urbe.solvers.solution import Solution, solved
from urbe.testing import small_models

RIVER = urbe.library.riverswim(6, discount=0.95)


def scenarios(mdp):
    """Three kernels on the model's own entries."""
    rng = np.random.default_rng(5)
    tilted = mdp.rows.probability[:, None] * rng.uniform(0.2, 1.0, size=(mdp.rows.n_entries, 3))
    return tilted / np.add.reduceat(tilted, mdp.rows.entry_start[:-1], axis=0)[mdp.rows.entry_row]


def natures(mdp):
    """Sets of every family, for a model whose every row lists some state."""
    line = np.abs(np.subtract.outer(np.arange(mdp.n_states), np.arange(mdp.n_states))).astype(float)
    return [
        None,
        L1Ball(0.3),
        Contamination(0.2),
        LInfBall(0.1),
        WeightedL1Ball(0.3, np.linspace(0.5, 2.0, mdp.n_states)),
        WassersteinBall(0.2, line),
        Scenarios(scenarios(mdp)),
        ConditionalValueAtRisk(scenarios(mdp), 0.5),
        ValueAtRisk(scenarios(mdp), 0.5),
        Optimistic(L1Ball(0.3)),
        Optimistic(Optimistic(L1Ball(0.3))),
        Optimistic(ValueAtRisk(scenarios(mdp), 0.4)),
    ]


@pytest.mark.parametrize("name", small_models())
def test_every_family_of_sets_is_certified(name):
    mdp = small_models()[name].with_discount(0.9)
    for nature in natures(mdp):
        for solution in (solve(mdp, nature), solve(mdp, nature, BackwardInduction(3))):
            certificate = certify(solution)
            assert certificate.holds, f"{nature}: {certificate}"
            assert certificate.tolerance <= 1e-10 * (1.0 + np.abs(solution.value).max())
            assert (certificate.lower >= solution.lower - certificate.tolerance).all()
            assert (certificate.upper <= solution.upper + certificate.tolerance).all()


def test_a_policys_value_is_not_the_optimal_one():
    solution = evaluate_policy(RIVER, [0] * 6, L1Ball(0.1))
    claimed = replace(solution, optimal=True)
    certificate = certify(claimed)
    assert "upper bound" in certificate.statement
    assert (certificate.upper >= solve(RIVER, L1Ball(0.1)).lower).all()


def test_slow_discounts_are_certified():
    for discount in (0.999, 0.9999):
        solution = solve(RIVER.with_discount(discount), L1Ball(0.1))
        assert certify(solution).holds


@pytest.mark.parametrize(
    "nature", [None, L1Ball(0.1), SRectangular(L1Ball(0.1)), urbe.TwiceRegularised(0.01, reward=9.0)]
)
@pytest.mark.parametrize("scale", [1.0, 1e-151])
def test_unfinished_solves_are_certified(nature, scale):
    """Their bounds may be a billion times as large as what rewards can add up to."""
    mdp = RIVER.with_rows(replace(RIVER.rows, reward=scale * RIVER.rows.reward)).with_discount(1.0 - 1e-9)
    if isinstance(nature, urbe.TwiceRegularised):
        nature = replace(nature, reward=9.0 * scale)
    start = 1e9 * scale * np.array([1.0, -1.0, 0.5, -0.5, 0.3, 1.0])
    for method in (urbe.ValueIteration(max_steps=2, rule="residual"), urbe.PartialPolicyIteration(max_steps=1)):
        solution = solve(mdp, nature, method, start=start, throw=False)
        assert solution.gap > 1e15 * scale
        assert certify(solution).holds, certify(solution).statement
        raised = replace(solution, lower=solution.upper + 1e7 * scale, upper=solution.upper + 2e7 * scale)
        assert "the lower bound" in certify(raised).statement


def test_policies_are_certified():
    for policy in ([0] * 6, np.full((6, 2), 0.5)):
        assert certify(evaluate_policy(RIVER, policy, L1Ball(0.1))).holds


def test_a_set_and_a_model_may_be_given():
    solution = solve(RIVER, L1Ball(0.1))
    assert certify(solution, RIVER, L1Ball(0.1)).holds
    assert certify(solution, nature=L1Ball(0.1)).holds
    larger = certify(solution, nature=L1Ball(0.2))
    assert not larger.holds  # the value is too high for the larger set
    assert "lower bound of state" in larger.statement
    smaller = certify(solution, nature=L1Ball(0.05))
    assert "nature's kernel leaves the set in state 0, action" in smaller.statement
    richer = RIVER.with_rows(replace(RIVER.rows, reward=RIVER.rows.reward + 1.0))
    assert "upper bound" in certify(solution, richer, L1Ball(0.1)).statement
    with pytest.raises(ValueError, match="nature is not"):
        certify(solution, RIVER)
    with pytest.raises(ValueError, match="mdp has 7 states, but the solution has 6"):
        certify(solution, urbe.library.riverswim(7, discount=0.95), L1Ball(0.1))


@pytest.mark.parametrize("horizon", [None, 6])
@pytest.mark.parametrize(
    ("field", "by", "expected"),
    [
        ("lower", 1e-5, "lower bound"),
        ("upper", -1e-5, "upper bound"),
        ("value", 1e-5, "value"),
        ("value", -1e-5, "value"),
    ],
)
def test_a_shifted_array_is_found(field, by, expected, horizon):
    method = None if horizon is None else BackwardInduction(horizon)
    solution = solve(RIVER, L1Ball(0.1), method)
    array = getattr(solution, field).copy()
    array[..., 3] += by
    certificate = certify(replace(solution, **{field: array}))
    assert not certificate.holds
    assert f"the {expected} of state 3" in certificate.statement


def test_everything_shifted_together_is_found():
    solution = solve(RIVER, L1Ball(0.1))
    for by in (1e-5, -1e-5):
        moved = {name: getattr(solution, name) + by for name in ("value", "lower", "upper")}
        assert not certify(replace(solution, **moved)).holds


def test_wider_bounds_still_hold():
    solution = solve(RIVER, L1Ball(0.1))
    wider = replace(solution, lower=solution.lower - 1.0, upper=solution.upper + 1.0)
    assert certify(replace(wider, status=solved(wider.gap))).holds
    assert certify(wider).failures == (
        f"the status is {solution.status!r}, but the gap is 2 after {solution.steps} steps, and the solver converged.",
    )


@pytest.mark.parametrize("by", [1e-5, -1e-5, np.nan])
@pytest.mark.parametrize("horizon", [None, 4])
def test_a_shifted_action_value_is_found(horizon, by):
    """Also of an action that the policy does not take, which no bound depends on."""
    for nature in (
        None,
        L1Ball(0.1),
        Optimistic(L1Ball(0.1)),
        urbe.TwiceRegularised(0.01),
        ValueAtRisk(scenarios(RIVER), 0.5),
    ):
        solution = solve(RIVER, nature, None if horizon is None else BackwardInduction(horizon))
        for action in range(2):
            q = solution.q.copy()
            q[..., 3, action] += by
            certificate = certify(replace(solution, q=q))
            assert f"q of state 3, action {action} is" in certificate.statement
            assert not certificate.holds


def test_action_values_of_a_given_policy_are_checked():
    solution = evaluate_policy(RIVER, [0] * 6, L1Ball(0.1))
    assert certify(solution).holds
    assert "q of state 0, action 0 is" in certify(replace(solution, q=solution.q + 1e-5)).statement
    assert (
        "q has shape (2, 6), expected a value for each action, (6, 2)"
        in certify(replace(solution, q=solution.q.T)).statement
    )
    mdp = MDP.from_transitions([0, 0, 1], [0, 1, 0], [0, 1, 1], np.ones(3), [1.0, 0.0, 0.0], discount=0.5)
    solution = solve(mdp, L1Ball(0.1))
    assert certify(solution).holds
    q = np.where(np.isfinite(solution.q), solution.q, 7.0)
    assert "q of state 1, action 1 is 7, but the action does not exist" in certify(replace(solution, q=q)).statement


SHARED = [
    *(SRectangular(ball) for ball in (L1Ball(0.4), urbe.L2Ball(0.2), LInfBall(0.1), urbe.KLBall(0.1))),
    *(urbe.TwiceRegularised(0.02, norm=norm, per="state") for norm in (1, 2)),
]


@pytest.mark.parametrize("by", [10.0, -1e-4, np.nan])
@pytest.mark.parametrize("horizon", [None, 3])
@pytest.mark.parametrize("nature", SHARED, ids=str)
def test_action_values_under_a_shared_budget_are_those_of_natures_answer(nature, horizon, by):
    solution = solve(RIVER, nature, None if horizon is None else BackwardInduction(horizon))
    assert certify(solution).holds
    for action in range(2):
        q = solution.q.copy()
        q[..., 3, action] += by
        assert f"q of state 3, action {action} is" in certify(replace(solution, q=q)).statement


class _Elsewhere(Solution):
    """A solution whose last kernel leads to the first successors, which none of these sets allows."""

    def kernel_at(self, step):
        kernel = super().kernel_at(step)
        if step < len(self.policy) - 1:
            return kernel
        first = np.zeros(kernel.rows.n_entries)
        first[kernel.rows.entry_start[:-1]] = 1.0
        return replace(kernel, rows=replace(kernel.rows, probability=first))


@pytest.mark.parametrize("nature", SHARED, ids=str)
def test_steps_before_one_without_a_proof_have_none_either(nature):
    certificate = certify(_Elsewhere(**vars(solve(RIVER, nature, BackwardInduction(3)))))
    assert not certificate.holds
    assert np.isinf(certificate.upper[0]).all()


@pytest.mark.parametrize("nature", SHARED, ids=str)
def test_the_value_of_a_policy_is_the_mean_of_its_action_values(nature):
    policy = np.full((6, 2), 0.5)
    solution = evaluate_policy(RIVER, policy, nature)
    assert np.abs((policy * solution.q).sum(axis=1) - solution.value).max() <= solution.gap
    assert certify(solution).holds
    assert "q of state" in certify(replace(solution, q=solution.q + 1e-3)).statement


@pytest.mark.parametrize(
    "method", [None, urbe.ValueIteration(max_steps=3), urbe.ValueIteration(0.0), BackwardInduction(3)]
)
def test_a_status_that_does_not_fit_the_bounds_is_found(method):
    solution = solve(RIVER, L1Ball(0.1), method, throw=False)
    assert certify(solution).holds
    lies = {
        "status": ["Solved: the bounds are within 1e-300 of each other in every state.", "All is well.", ""],
        "converged": [not solution.converged],
    }
    for name, values in lies.items():
        for value in values:
            certificate = certify(replace(solution, **{name: value}))
            assert not certificate.holds
            assert certificate.failures[0].startswith("the status is ")


def test_numbers_that_are_none_prove_nothing():
    solution = solve(RIVER, L1Ball(0.1))
    for name in ("lower", "upper", "value"):
        array = getattr(solution, name).copy()
        for wrong in (np.nan, np.inf, -np.inf):
            array[2] = wrong
            if (name, wrong) not in (("lower", -np.inf), ("upper", np.inf)):  # true, though of no use
                assert not certify(replace(solution, **{name: array})).holds
    endless = certify(replace(solution, upper=np.full(6, np.inf), lower=solution.lower + 1e-3))
    assert "the lower bound" in endless.statement
    assert endless.tolerance < 1e-9


def test_a_value_at_a_terminal_state_is_found():
    mdp = MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9, terminal=[1])
    solution = solve(mdp, L1Ball(0.1))
    assert certify(solution).holds
    for name, by in (("lower", 0.1), ("upper", -0.1)):
        array = getattr(solution, name).copy()
        array[1] += by
        assert "state 1" in certify(replace(solution, **{name: array})).statement
    moved = 0.1 * ~mdp.terminal
    wrong = certify(replace(solution, upper=solution.upper - moved, lower=solution.lower + moved))
    assert not wrong.holds
    assert wrong.lower[1] == wrong.upper[1] == 0.0


@pytest.mark.parametrize("horizon", [None, 6])
def test_a_wrong_policy_is_found(horizon):
    solution = solve(RIVER, L1Ball(0.1), None if horizon is None else BackwardInduction(horizon))
    policy = solution.policy.copy()
    policy[..., 5] = 1 - policy[..., 5]
    certificate = certify(replace(solution, policy=policy))
    assert not certificate.holds
    assert "lower bound" in certificate.statement
    assert (certificate.upper <= solution.upper + certificate.tolerance).all()
    assert (certificate.lower <= certificate.upper).all()
    assert (certificate.lower[..., 5] < solution.lower[..., 5]).any()


def with_kernel(solution, probability):
    """The solution with nature's answer replaced."""
    own = solution.kernel
    doctored = replace(solution)
    doctored.__dict__["kernel"] = own.with_rows(replace(own.rows, probability=probability))
    return doctored


def test_a_kernel_outside_the_set_is_found():
    solution = solve(RIVER, L1Ball(0.1))
    p = solution.kernel.rows.probability.copy()
    start = solution.kernel.rows.entry_start[RIVER.row_of(2, 1)]
    p[start] += 0.01
    p[start + 1] -= 0.01
    certificate = certify(with_kernel(solution, p))
    assert not certificate.holds
    assert "leaves the set in state 2, action 1 by 0.0" in certificate.statement
    assert np.isinf(certificate.upper).all()


@pytest.mark.parametrize(
    "nature",
    [WeightedL1Ball(1e-25, np.full(6, 1e-20)), WassersteinBall(1e-25, 1e-20 * (1.0 - np.eye(6)))],
    ids=["weights", "metric"],
)
def test_distances_are_measured_in_units_of_the_set(nature):
    solution = solve(RIVER, nature)
    p = solution.kernel.rows.probability.copy()
    start = solution.kernel.rows.entry_start[RIVER.row_of(2, 1)]
    p[start] += 0.01
    p[start + 1] -= 0.01
    assert certify(solution).holds
    assert "leaves the set in state 2, action 1 by 0.0" in certify(with_kernel(solution, p)).statement


def test_a_kernel_inside_the_set_that_is_not_the_worst_is_found():
    solution = solve(RIVER, L1Ball(0.1))
    certificate = certify(with_kernel(solution, RIVER.rows.probability))
    assert certificate.excess <= 0.0
    assert "upper bound" in certificate.statement


def test_rounding_of_a_kernel_counts_by_the_range_of_values():
    p = np.array([[[0.0, 0.5, 0.5]], [[1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]])
    scenarios = np.array([p, p[:, :, [0, 2, 1]] * [1.0, 0.5, 1.5]])
    mdp = MDP.from_dense(p, [[1.0], [1.0], [1.0]], discount=0.9)
    solution = solve(mdp, ConditionalValueAtRisk(scenarios, 0.5), throw=False)
    q = solution.kernel.rows.probability.copy()
    q[:2] += [5e-10, -5e-10]  # within the tolerance of a kernel, though outside of its set
    certificate = certify(with_kernel(solution, q))
    assert 0.0 < certificate.excess <= 1e-9
    assert certificate.upper.max() <= 10.0 + 1e-12  # whatever the kernel, since each step pays 1


def aims(mdp):
    """Sets with all aims of nature: least, greatest, a quantile, and a mixture of aims."""
    members = scenarios(mdp)
    return {
        "least": L1Ball(0.3),
        "greatest": Optimistic(L1Ball(0.3)),
        "quantile": ValueAtRisk(members, 0.4),
        "upper quantile": Optimistic(ValueAtRisk(members, 0.4)),
        "upper tail": Optimistic(ConditionalValueAtRisk(members, 0.4)),
        "by row": urbe.PerRow((L1Ball(0.3), Optimistic(urbe.KLBall(0.2))), np.arange(mdp.n_rows) % 2),
    }


def _model_and_set(made):
    return made.mdp, made.set


@pytest.mark.parametrize("aim", aims(RIVER))
@pytest.mark.parametrize("made", ["per row", "nested", "deviations", "options"])
def test_sets_made_of_sets_are_certified_whatever_the_parts_aim_at(made, aim):
    part = aims(RIVER)[aim]
    mixed = urbe.Option(np.full((6, 2), 0.5), 0.3)
    mdp, set_ = {
        "per row": lambda: (RIVER, urbe.PerRow((part, L1Ball(0.1)), np.arange(RIVER.n_rows) // 2 % 2)),
        "nested": lambda: (RIVER, urbe.NestedSets([urbe.Exact(), part], [0.5, 1.0])),
        "deviations": lambda: _model_and_set(urbe.limited_deviations(RIVER, part, 2)),
        "options": lambda: _model_and_set(urbe.with_options(RIVER, [mixed, urbe.Option([1] * 6, 0.5)], part)),
    }[made]()
    for given in (set_, Optimistic(set_)):
        assert certify(solve(mdp, given)).holds
        assert certify(solve(mdp, given, BackwardInduction(3))).holds


def test_a_quantile_is_attained_by_its_kernel():
    for nature in (ValueAtRisk(scenarios(RIVER), 0.4), Optimistic(ValueAtRisk(scenarios(RIVER), 0.4))):
        solution = solve(RIVER, nature)
        others = (solve(RIVER, Scenarios(scenarios(RIVER))), solve(RIVER, Optimistic(Scenarios(scenarios(RIVER)))))
        for other, expected in zip(others, ("lower bound", "upper bound"), strict=True):
            assert expected in certify(with_kernel(solution, other.kernel.rows.probability)).statement
        assert "leaves the set" in certify(with_kernel(solution, RIVER.rows.probability)).statement


def test_kernels_that_are_no_distributions_are_found():
    solution = solve(RIVER, L1Ball(2.0))
    own = solution.kernel.rows.probability
    for wrong in (1.001 * own, np.where(np.arange(len(own)) == 3, np.nan, own)):
        assert "leaves the set" in certify(with_kernel(solution, wrong)).statement
    fewer = replace(solution)
    rows = RIVER.rows.take(np.arange(3))
    fewer.__dict__["kernel"] = RIVER.with_rows(rows)
    assert "has 3 rows" in certify(fewer).statement


def test_successors_without_a_reward_are_no_evidence():
    mdp = MDP.from_dense(np.eye(2)[:, None], [[[1.0, 9.0]], [[9.0, 1.0]]], discount=0.5, keep_zeros=True)
    listed = solve(mdp, L1Ball(1.0, support="all"))
    assert certify(listed).holds
    bare = MDP.from_dense(np.full((2, 1, 2), 0.5), [[[1.0, 2.0]], [[3.0, 1.0]]], discount=0.5)
    only = Rows(2, np.array([0, 1, 3]), np.array([0, 0, 1], dtype=np.int32), np.array([1.0, 0.5, 0.5]), np.ones(3))
    doctored = replace(solve(bare, L1Ball(2.0)))
    doctored.__dict__["kernel"] = bare
    shorter = bare.with_rows(only)
    assert "leaves the set in state 0" in certify(doctored, shorter, L1Ball(2.0)).statement


def test_without_discounting_the_time_to_the_end_is_proven_too():
    mdp = urbe.library.gambler(12)
    assert certify(solve(mdp)).holds
    solution = solve(mdp, L1Ball(0.05))
    assert certify(solution, nature=L1Ball(0.05)).holds
    assert certify(solution).holds
    shifted = replace(solution, upper=solution.upper - 1e-4, lower=solution.lower - 1e-4, value=solution.value - 1e-4)
    assert "upper bound" in certify(shifted, nature=L1Ball(0.05)).statement


def test_budgets_shared_by_actions_have_both_bounds_proven():
    nature = SRectangular(L1Ball(0.4))
    for solution in (
        solve(RIVER, nature),
        solve(RIVER, nature, BackwardInduction(4)),
        evaluate_policy(RIVER, np.full((6, 2), 0.5), nature),
    ):
        certificate = certify(solution)
        assert certificate.holds, certificate.statement
        assert np.isfinite(certificate.upper).all()
        assert np.isfinite(certificate.lower).all()
        raised = replace(
            solution, upper=solution.upper + 1e-4, lower=solution.lower + 1e-4, value=solution.value + 1e-4
        )
        assert "the lower bound of state" in certify(raised).statement
        lowered = replace(solution, upper=solution.upper - 1e-4, lower=solution.lower - 1e-4)
        assert not certify(lowered).holds
        assert "the upper bound of state" in certify(lowered).statement
    assert (
        "leaves the set"
        in certify(solve(RIVER, nature), nature=SRectangular(replace(nature.ball, radius=0.01))).statement
    )


def test_statements_are_sentences():
    certificate = certify(solve(RIVER, L1Ball(0.1)))
    assert str(certificate) == certificate.statement
    assert certificate.statement.startswith("Verified: separate code proves bounds on the values ")
    assert certificate.failures == ()


@pytest.mark.parametrize("reward", [5e-324, -5e-324])
def test_what_is_proven_is_rounded_outward(reward):
    solution = solve(MDP.from_dense([[[1.0]]], [[reward]], discount=0.6), None, BackwardInduction(2))
    certificate = certify(solution)
    exact = Fraction(reward) * (1 + Fraction(0.6))  # between two neighbouring numbers
    assert Fraction(float(certificate.lower[0, 0])) <= exact <= Fraction(float(certificate.upper[0, 0]))


@pytest.mark.parametrize("method", [None, BackwardInduction(3)])
@pytest.mark.parametrize("name", ["lower", "upper"])
def test_bounds_of_another_shape_are_refused(method, name):
    solution = solve(urbe.library.riverswim(4, discount=0.9), L1Ball(0.1), method)
    with pytest.raises(ValueError, match=rf"solution.{name} has shape \(3,\), expected that of solution.value"):
        certify(replace(solution, **{name: np.zeros(3)}))
