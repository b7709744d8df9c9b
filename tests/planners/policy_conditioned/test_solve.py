"""Policy-conditioned planning against enumeration of all histories, linear programs and rectangular limits."""

import numpy as np
import pytest

import urbe
from oracles.histories import Case, constrained_value, inner_value, policies
from urbe.planners.policy_conditioned import MomentConstraints, solve_policy_conditioned
from urbe.planners.policy_conditioned.beliefs import listed, reachable
from urbe.planners.policy_conditioned.recursion import (
    AS_GIVEN,
    BY_RETURN,
    BY_TOTAL,
    backward,
    forward,
    inner_problem,
)


def random_case(seed, horizon, n_states=2, n_actions=2, d=2):
    rng = np.random.default_rng(seed)
    pairs = (n_states, n_actions)
    reference = rng.dirichlet(np.ones(n_actions), size=n_states) if seed % 2 else np.full(pairs, 1.0 / n_actions)
    reward, phi = rng.normal(size=(*pairs, n_states)), rng.normal(size=(*pairs, n_states, d))
    case = Case(reward, phi, reference, 0, horizon)
    truth = urbe.MDP.from_dense(
        rng.dirichlet(np.ones(n_states), size=pairs), reward, discount=1.0, initial=np.eye(n_states)[0]
    )
    return case, truth, rng


def inner(case, truth, omega, sharpness=np.inf, rule=BY_TOTAL, beliefs=1000):
    problem = inner_problem(truth, case.reference.ravel())
    at = reachable(problem.reference, case.horizon, beliefs)
    row = np.zeros((case.horizon, truth.n_states, at.odds.shape[1]), dtype=np.int64)
    phi = case.phi.reshape(truth.rows.n_entries, -1)
    return problem, at, phi @ omega, backward(problem, at, phi @ omega, sharpness, rule, row)


@pytest.mark.parametrize("horizon", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_inner_problem_is_that_over_all_histories(seed, horizon):
    """The best of all deterministic policies of histories, against the worst of all dynamics of histories."""
    case, truth, rng = random_case(seed, horizon)
    omega = rng.normal(size=2)
    found = inner(case, truth, omega)[-1].value[0, 0, 1]
    best = max(inner_value(case, omega, policy) for policy in policies(case))
    assert 2.0 * found == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_only_the_chosen_action_would_be_too_little(seed):
    """The sum over actions that only the reference takes is part of the value: without it numbers differ."""
    case, truth, rng = random_case(seed, 2)
    omega = rng.normal(size=2) + 3.0
    _, at, _, found = inner(case, truth, omega)
    k = found.row[0, 0, 1]
    own = found.value[0, 0, 1] - 0.5 * case.reference.ravel()[1 - k] * min(
        (case.phi[0, 1 - k, s] @ omega) + found.value[1, s, 0] for s in range(2)
    )
    best = max(inner_value(case, omega, policy) for policy in policies(case))
    assert abs(2.0 * own - best) > 1e-3
    assert at.exact


@pytest.mark.parametrize("rule", [BY_RETURN, BY_TOTAL])
@pytest.mark.parametrize("beliefs", [3, 1000])
@pytest.mark.parametrize("discount", [1.0, 0.7])
def test_the_pass_forward_is_the_derivative_of_the_pass_backward(rule, beliefs, discount):
    case, truth, rng = random_case(1, 4)
    truth, omega = truth.with_discount(discount), rng.normal(size=2)
    problem, at, bonus, found = inner(case, truth, omega, 3.0, rule, beliefs)
    assert at.exact == (beliefs == 1000)
    phi = case.phi.reshape(-1, 2)
    moments = forward(problem, at, bonus, 3.0, truth.initial, found) @ phi
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        high, low = (
            backward(problem, at, phi @ (omega + sign * step), 3.0, AS_GIVEN, found.row.copy()).value[0, 0, 1]
            for sign in (1, -1)
        )
        assert moments[j] == pytest.approx((high - low) / 1e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("horizon", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_bound_holds_and_is_that_of_linear_programs_over_histories(seed, horizon):
    """`lower` is never above what nature can do to the policy, and nearly what it can."""
    case, truth, _ = random_case(seed, horizon)
    seen = MomentConstraints.of(truth, case.phi, case.reference, horizon, slack=0.01)
    found = solve_policy_conditioned(truth, seen, sharpness=300.0, tolerance=1e-3, starts=8, most_solves=300)
    worst = {}
    for number, policy in enumerate(policies(case)):
        worst[number] = constrained_value(case, seen.moments, policy, 0.01)
        follows = all(found.policy.rows_at((len(h) - 1) // 2, odds(case, h))[h[-1], 0] == 2 * h[-1] + a
                      for h, a in policy.items())  # fmt: skip
        if follows:
            mine = worst[number]
    assert found.lower <= mine + 1e-9
    assert found.lower >= mine - 0.05
    assert mine >= max(worst.values()) - 0.05
    assert found.policy.value(truth) >= found.lower


def odds(case, history):
    """The odds after a history of the policy's own actions."""
    out = 1.0
    for s, a in zip(history[:-1:2], history[1::2], strict=True):
        out /= case.reference[s, a]
    return np.array([out])


@pytest.mark.parametrize("seed", range(4))
def test_one_step_is_a_linear_program(seed):
    """T = 1: min p(a) . r(a) over rows with sum_a reference(a) p(a) . phi(a) given."""
    case, truth, _ = random_case(seed, 1, n_states=4, n_actions=3)
    seen = MomentConstraints.of(truth, case.phi, case.reference, 1)
    found = solve_policy_conditioned(truth, seen, sharpness=3000.0, starts=12, most_solves=300)
    values = [constrained_value(case, seen.moments, {(0,): a}) for a in range(3)]
    assert found.lower == pytest.approx(max(values), abs=0.01)
    assert found.lower <= max(values) + 1e-9


@pytest.mark.parametrize("select", ["return", "total"])
def test_without_features_nature_is_free(select):
    """The robust model in which any listed successor may follow, as the sharpness grows."""
    truth = urbe.library.riverswim(5, discount=0.9)
    free = MomentConstraints(np.zeros((5, 2, 0)), np.zeros(0), np.full((5, 2), 0.5), 6)
    exact = urbe.solve(truth, urbe.L1Ball(2.0), urbe.BackwardInduction(6)).value[0, 0]
    found = [solve_policy_conditioned(truth, free, sharpness=x, select=select) for x in (10.0, 1e3, 1e6)]
    assert found[-1].value == pytest.approx(exact, abs=1e-4)
    assert found[-1].lower == pytest.approx(exact, abs=1e-9)
    assert all(each.lower <= exact + 1e-12 and each.dual <= exact + 1e-12 for each in found)
    assert found[0].dual < found[1].dual < found[2].dual


def test_what_is_said_never_to_happen_does_not():
    """Indicators of impossible triples with moment 0 drive their probability to 0 where the reference goes."""
    rng = np.random.default_rng(0)
    never = rng.random((3, 2, 3)) < 0.3
    never[..., 0] = False
    p = np.where(never, 0.0, rng.random((3, 2, 3)) + 0.1)
    truth = urbe.MDP.from_dense(
        p / p.sum(axis=2, keepdims=True), rng.random((3, 2, 3)), discount=1.0, initial=[1.0, 0.0, 0.0], keep_zeros=True
    )
    phi = np.zeros((3, 2, 3, int(never.sum())))
    phi[(*np.nonzero(never), np.arange(never.sum()))] = 1.0
    seen = MomentConstraints.of(truth, phi, np.full((3, 2), 0.5), 4)
    assert not seen.moments.any()
    found = solve_policy_conditioned(truth, seen, sharpness=20.0, tolerance=1e-3)
    assert found.converged
    assert found.moments.max() < 1e-3
    assert found.multipliers.min() > 0.0


@pytest.mark.parametrize("select", ["return", "total"])
@pytest.mark.parametrize("options", [{}, {"slack": 0.1}, {"penalty": 0.05}])
def test_moments_fit_at_convergence(select, options):
    case, truth, _ = random_case(3, 5, n_states=4)
    seen = MomentConstraints.of(truth, case.phi, case.reference, 5, **options)
    found = solve_policy_conditioned(truth, seen, sharpness=2.0, select=select, tolerance=1e-3)
    off = np.abs(found.moments - seen.moments - seen.penalty * found.multipliers)
    assert (off <= seen.slack + 2e-3 * (1.0 + np.abs(seen.moments))).all()
    assert found.converged
    assert found.lower <= found.policy.value(truth)


def test_more_beliefs_come_nearer():
    """An uneven reference: 3, 6, 12, .. beliefs a step, against all of them."""
    case, truth, rng = random_case(5, 8, n_states=4, n_actions=3)
    omega = 2.0 * rng.normal(size=2)
    exact = inner(case, truth, omega, 50.0, beliefs=10**6)
    assert exact[1].exact
    off = [
        abs(inner(case, truth, omega, 50.0, beliefs=n)[-1].value[0, 0, 1] - exact[-1].value[0, 0, 1])
        for n in (3, 12, 48, 192)
    ]
    assert off[1] < 0.5 * off[0]
    assert off[3] < 0.2 * off[1]


def test_the_policy_acts_by_its_belief():
    """Played by reset, act and observe, its mean return is its exact value: 1,500 runs, 5 standard errors."""
    case, truth, rng = random_case(1, 4, n_states=3)
    seen = MomentConstraints.of(truth, case.phi, case.reference, 4, slack=0.05)
    policy = solve_policy_conditioned(truth, seen, sharpness=5.0, tolerance=1e-2).policy
    p, _ = truth.to_dense()
    returns = []
    for _ in range(1500):
        policy.reset()
        state, total = 0, 0.0
        assert policy.belief == 0.5
        for _ in range(4):
            action, before = policy.act(state), policy.odds
            policy.observe(state, action)
            assert policy.odds == pytest.approx(before / case.reference[state, action])
            following = int(rng.choice(3, p=p[state, action]))
            total += case.reward[state, action, following]
            state = following
        assert policy.step == 4
        returns.append(total)
    error = np.std(returns) / np.sqrt(len(returns))
    assert np.mean(returns) == pytest.approx(policy.value(truth), abs=5 * error)
    with pytest.raises(ValueError, match="All 4 steps of the horizon are taken"):
        policy.act(0)
    policy.reset()
    policy.observe(0, 1 - policy.act(0) if policy.act(0) < 2 else 0)
    assert policy.belief == 0.0
    policy.act(0)


def test_a_terminal_state_pays_nothing():
    truth = urbe.MDP.from_dense(
        [[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]], [[0.0] * 3] * 2],
        [[[0, 1.0, 0], [0, 0, 1.5]], [[0, 0, 2.0], [0, 0, 1.0]], [[0.0] * 3] * 2],
        discount=0.5, terminal=[2], initial=[1.0, 0.0, 0.0],
    )  # fmt: skip
    free = MomentConstraints(np.zeros((3, 2, 0)), np.zeros(0), [[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]], 5)
    found = solve_policy_conditioned(truth, free)
    assert found.value == pytest.approx(2.0)
    assert found.policy.value(truth) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="state 2 is terminal"):
        found.policy.act(2)


def test_a_reference_that_never_takes_an_action_says_nothing_about_it():
    """Belief 1: what only the policy does is free, and the worst case of it is that of the simplex."""
    truth = urbe.MDP.from_dense(
        [[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]], [[[0.0, 1.0], [0.3, 2.0]], [[0.0, 1.0], [0.3, 2.0]]],
        discount=1.0, initial=[1.0, 0.0],
    )  # fmt: skip
    seen = MomentConstraints.of(truth, np.array([0.0, 1.0])[None, None, :, None] * np.ones((2, 2, 2, 1)),
                                [[1.0, 0.0], [1.0, 0.0]], 1)  # fmt: skip
    found = solve_policy_conditioned(truth, seen, sharpness=1e4)
    assert found.lower == pytest.approx(0.5, abs=1e-2)  # action 0: half of 1; action 1 may be 0.3 at worst


def test_moments_that_nothing_satisfies_are_refused():
    case, truth, _ = random_case(0, 3)
    with pytest.raises(ValueError, match="No dynamics on the successors of the model satisfy the constraints"):
        solve_policy_conditioned(truth, MomentConstraints(case.phi, [50.0, 0.0], case.reference, 3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"moments": [1.0]}, "moments has 1 numbers, expected one for each of 2 features"),
        ({"features": np.zeros((2, 3))}, r"features has shape \(2, 3\), expected \(8, d\)"),
        ({"reference": [[0.5, 0.6], [0.5, 0.5]]}, r"policy\[0\] sums to 1.1"),
    ],
)
def test_refusals(change, message):
    case, truth, _ = random_case(0, 3)
    given = {"features": case.phi, "moments": [0.0, 0.0], "reference": case.reference, "horizon": 3} | change
    with pytest.raises(ValueError, match=message):
        solve_policy_conditioned(truth, MomentConstraints(**given))


def test_what_is_not_a_constraint_is_refused():
    case, truth, _ = random_case(0, 3)
    with pytest.raises(ValueError, match="slack has shape"):
        MomentConstraints(case.phi, [0.0, 0.0], case.reference, 3, slack=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"slack\[1\] is -1"):
        MomentConstraints(case.phi, [0.0, 0.0], case.reference, 3, slack=[1.0, -1.0])
    seen = MomentConstraints(case.phi, [0.0, 0.0], case.reference, 3)
    with pytest.raises(ValueError, match="select is 'both', expected"):
        solve_policy_conditioned(truth, seen, select="both")
    with pytest.raises(ValueError, match="no initial distribution"):
        solve_policy_conditioned(urbe.MDP.from_dense(np.full((2, 2, 2), 0.5), 0.0, discount=1.0), seen)


def test_the_same_problem_gives_the_same_bits():
    case, truth, _ = random_case(3, 4)
    seen = MomentConstraints.of(truth, case.phi, case.reference, 4)
    one, two = (solve_policy_conditioned(truth, seen, sharpness=5.0) for _ in range(2))
    assert one.dual == two.dual
    assert np.array_equal(one.multipliers, two.multipliers)


def test_listed_beliefs_begin_with_none():
    beliefs = listed([np.array([1.0]), np.array([2.0, 4.0])], exact=True)
    assert beliefs.counts.tolist() == [2, 3]
    assert beliefs.share[1].tolist() == pytest.approx([0.0, 2 / 3, 0.8])
