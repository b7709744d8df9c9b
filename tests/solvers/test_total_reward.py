"""Without discounting: values if the process must terminate, and an error if it need not."""

import numpy as np
import pytest

import urbe
from oracles.exact import ExactModel, assert_bracketed, l1, nominal, optimistic
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
from urbe.ambiguity.optimistic import Optimistic
from urbe.ambiguity.scenarios import Scenarios, ValueAtRisk
from urbe.solvers.certificate import certify
from urbe.solvers.duration import longest_duration

COIN = MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=1.0, terminal=[1])


def test_bold_play_in_the_gamblers_game():
    """From half the goal one bold stake decides; from a quarter two do; from three quarters either of two."""
    mdp = urbe.library.gambler(100, 0.4)
    solution = solve(mdp, method=PartialPolicyIteration(tolerance=1e-9))
    assert solution.value[[25, 50, 75]] == pytest.approx([0.16, 0.4, 0.64], abs=1e-9)
    assert solution.gap <= 1e-9
    # value iteration stopping at small changes is how the textbook solves it
    assert solve(mdp, method=ValueIteration()).value == pytest.approx(solution.value, abs=1e-6)


@pytest.mark.parametrize("n", [4, 10, 20, 25])
def test_chain_that_fools_value_iteration(n):
    """v(n + k) = (1 + 2^(k - n)) / 2, v(n - k) = 1 - v(n + k); sweeps would need 2^n steps."""
    solution = solve(urbe.library.haddad_monmege(n), method=PartialPolicyIteration(linear="always", tolerance=1e-5))
    up = (1.0 + 2.0 ** (np.arange(n) - n)) / 2.0
    up[0] = 0.5
    assert solution.value[n : 2 * n] == pytest.approx(up, abs=1e-5)
    assert solution.value[1 : n + 1] == pytest.approx(1.0 - up[::-1], abs=1e-5)
    assert certify(solution).holds


def test_signed_rewards():
    """A corridor that costs 10 a step, 10 steps long: -100."""
    n = 11
    transition = np.eye(n, k=1)[:, None]
    transition[-1, 0, -1] = 1.0
    mdp = MDP.from_dense(transition, -10.0, discount=1.0, terminal=[n - 1])
    for method in (
        PartialPolicyIteration(),
        ModifiedPolicyIteration(),
        ValueIteration(),
        ValueIteration(rule="residual"),
    ):
        solution = solve(mdp, method=method)
        assert solution.value == pytest.approx(-10.0 * np.arange(n - 1, -1, -1), abs=1e-6)


def test_durations_are_super_solutions():
    mdp = urbe.library.gambler(8, 0.4)
    for nature in (None, L1Ball(0.2)):
        chosen = urbe.Exact() if nature is None else nature
        w = longest_duration(chosen.operator(mdp))
        model = ExactModel(mdp, optimistic(nominal() if nature is None else l1(0.2)))
        model.gamma, model.by_row, model.r = 1, True, [[1] * mdp.n_states] * mdp.n_rows
        exact = model.optimal_value()
        assert_bracketed(w - 0.01 * w, exact, w)


def test_the_longest_lasting_kernel_counts_also_where_nature_helps():
    """Nature may stay with 0.6: 1 / 0.4 = 2.5 rewards on average; nothing below that is an upper bound."""
    solution = solve(COIN, Optimistic(L1Ball(0.2)))
    assert solution.lower[0] <= 2.5 <= solution.upper[0]
    assert solution.gap <= 1e-6
    assert longest_duration(Optimistic(L1Ball(0.2)).operator(COIN))[0] == pytest.approx(2.5, rel=2e-3)


def test_a_quantile_may_last_as_long_as_any_scenario():
    kernels = np.array([[[[stay, 1.0 - stay]], [[0.0, 1.0]]] for stay in (0.1, 0.5, 0.9)])
    assert longest_duration(ValueAtRisk(kernels, 0.5).operator(COIN))[0] == pytest.approx(10.0, rel=2e-3)
    solution = solve(COIN, ValueAtRisk(kernels, 0.5))
    assert solution.value[0] == pytest.approx(2.0, abs=1e-6)
    assert certify(solution, nature=ValueAtRisk(kernels, 0.5)).holds
    assert solve(COIN, Scenarios(kernels)).value[0] == pytest.approx(1 / 0.9, abs=1e-6)


@pytest.mark.parametrize(
    ("mdp", "nature", "message"),
    [
        (MDP.from_dense([[[1.0]]], [[1.0]], discount=1.0), None, "the model has no terminal states"),
        # one action waits for ever
        (
            MDP.from_dense([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]] * 2], 0.0, discount=1.0, terminal=[1]),
            None,
            "some policy and model never end",
        ),
        # nature alone can keep the coin from falling
        (COIN, L1Ball(1.0), "some policy and model never end"),
        (COIN, Optimistic(L1Ball(1.0)), "some policy and model never end"),
    ],
)
def test_models_that_need_not_end_are_refused(mdp, nature, message):
    with pytest.raises(ValueError, match=f"discount is 1, but {message}.*the total reward need not be finite"):
        solve(mdp, nature)
    assert solve(mdp, nature, BackwardInduction(3)).converged  # as the message advises
    assert solve(mdp.with_discount(0.9), nature).converged


def test_a_policy_that_ends_is_not_enough():
    """Bounds rest on every policy ending; the policy itself is evaluated with policy_value."""
    mdp = MDP.from_dense([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]] * 2], 0.0, discount=1.0, terminal=[1])
    with pytest.raises(ValueError, match="some policy and model never end"):
        evaluate_policy(mdp, [1, -1])
