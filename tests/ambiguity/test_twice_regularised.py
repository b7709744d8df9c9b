import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import urbe
from urbe.ambiguity.closed_form.deviation import kappa, largest_entry, total_variation, worst_deviation
from urbe.ambiguity.closed_form.sharing import best_answers
from urbe.ambiguity.operator import PolicyRows

NORMS = (1.0, 2.0, np.inf)
SAME = {1.0: urbe.L1Ball, 2.0: urbe.L2Ball, np.inf: urbe.LInfBall}


def model(seed=0, n=5, m=3, discount=0.9, by_successor=False):
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=(n, m, n) if by_successor else (n, m))
    return urbe.MDP.from_dense(rng.dirichlet(np.full(n, 20.0), size=(n, m)), reward, discount=discount)


def length(x, norm):
    return np.linalg.norm(x, norm)


@pytest.mark.parametrize(("norm", "expected"), [(1.0, 2.0), (2.0, 3.162278), (np.inf, 6.0)])
def test_published_penalties(norm, expected):
    z = np.array([1.0, 2.0, 5.0, 4.0])
    assert kappa(z, norm, False, np.empty(4)) == pytest.approx(expected, abs=5e-7)


def test_published_shared_budget():
    value, weights = np.zeros(1), np.zeros(3)
    best_answers(np.array([0, 3]), np.array([1.0, 0.8, 0.2]), np.full(3, 0.5), 2.0, value, weights)
    assert value[0] == pytest.approx(0.560884, abs=5e-7)
    np.testing.assert_allclose(weights, [0.6474, 0.3526, 0.0], atol=5e-5)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_penalty_is_attained_and_no_deviation_does_better(norm, free, n):
    rng = np.random.default_rng(n)
    for z in (rng.normal(size=n), np.zeros(n), rng.integers(0, 2, size=n).astype(float), 1e200 * rng.normal(size=n)):
        best, x = kappa(z, norm, free, np.empty(n)), np.empty(n)
        worst_deviation(z, norm, free, x)
        size = np.abs(z).max() + 1e-300
        assert length(x, norm) <= 1.0 + 1e-12
        assert free or abs(x.sum()) <= 1e-12
        assert x @ z == pytest.approx(best, abs=1e-12 * n * size)
        for other in rng.normal(size=(200, n)):
            y = other if free else other - other.mean()
            assert y @ z <= best * length(y, norm) + 1e-9 * size
        assert np.abs(x).max() <= largest_entry(np.array(n), norm, free) + 1e-12
        assert np.abs(x).sum() <= total_variation(np.array(n), norm, free) + 1e-12


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_stated_sizes_of_deviations_are_attained(norm, free, n):
    """max ||x||_1 by a vertex of signs: x = s / ||s|| for every split of the entries into two groups of equal mass."""
    largest = 0.0
    for up in range(0 if free else 1, n + 1 if free else n):
        x = np.where(np.arange(n) < up, 1.0 / max(up, 1), -1.0 / max(n - up, 1))
        if free:
            x = np.ones(n) if norm != 1.0 else np.eye(n)[0]
        largest = max(largest, np.abs(x).sum() / length(x, norm))
    assert total_variation(np.array(float(n)), norm, free) == pytest.approx(largest)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("support", ["nominal", "all"])
def test_equals_the_ball_in_the_simplex_while_no_probability_vanishes(norm, support):
    for by_successor in (False, True):
        mdp = model(by_successor=by_successor)
        fast = urbe.solve(mdp, urbe.TwiceRegularised(0.04, norm=norm, support=support))
        exact = urbe.solve(mdp, SAME[norm](0.04))
        np.testing.assert_allclose(fast.value, exact.value, atol=2e-6)
        np.testing.assert_array_equal(fast.policy, exact.policy)


@pytest.mark.parametrize("per", ["pair", "state"])
def test_zero_radii_are_the_model(per):
    mdp = model()
    regular = urbe.solve(mdp, urbe.TwiceRegularised(per=per))
    np.testing.assert_allclose(regular.value, urbe.solve(mdp).value, atol=2e-6)


def test_budgets_of_states_that_leave_each_action_its_own_are_those_of_pairs():
    mdp = model()
    state, pair = (urbe.solve(mdp, urbe.TwiceRegularised(0.02, 1.0, np.inf, per)) for per in ("state", "pair"))
    assert np.array_equal(state.value, pair.value)
    assert np.array_equal(state.policy, pair.policy)
    shared = urbe.solve(mdp, urbe.TwiceRegularised(0.02, 1.0, 2.0, "state"))
    apart = urbe.solve(mdp, urbe.TwiceRegularised(0.02, 1.0, 2.0, "pair"))
    assert (shared.value > apart.value + 1e-3).all()  # a sum of squares does not


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("per", ["pair", "state"])
@pytest.mark.parametrize("support", ["nominal", "all"])
@pytest.mark.parametrize("by_successor", [False, True])
def test_certified(norm, per, support, by_successor):
    mdp = model(3, by_successor=by_successor)
    nature = urbe.TwiceRegularised(0.03, 0.2, norm, per, support)
    solution = urbe.solve(mdp, nature)
    proof = urbe.certify(solution)
    assert proof.holds, proof.statement
    uniform = urbe.evaluate_policy(mdp, np.full((5, 3), 1 / 3), nature)
    assert urbe.certify(uniform).holds, urbe.certify(uniform).statement
    assert (uniform.value <= solution.value + 1e-6).all()
    horizon = urbe.solve(mdp, nature, urbe.BackwardInduction(4))
    assert urbe.certify(horizon).holds, urbe.certify(horizon).statement


def test_certificate_refuses_a_kernel_outside():
    mdp = model(3)
    wide = urbe.solve(mdp, urbe.TwiceRegularised(0.03, 0.2, 2, "state"))
    assert not urbe.certify(wide, mdp, urbe.TwiceRegularised(0.03, 0.1, 2, "state")).holds
    assert not urbe.certify(wide, mdp, urbe.TwiceRegularised(0.02, 0.2, 2, "state")).holds


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("support", ["nominal", "all"])
def test_shared_budget_by_generic_optimisers(norm, support):
    """max_pi pi . Q - ||pi w||_q by a linear program or by sequential quadratic programming."""
    rng = np.random.default_rng(5)
    mdp = model(5)
    nature = urbe.TwiceRegularised(
        rng.uniform(0.0, 0.04, (5, 3)), rng.uniform(0.0, 1.0, (5, 3)), norm, "state", support
    )
    operator = nature.operator(mdp)
    v = rng.normal(size=5)
    found = operator.improve(v)
    dense, reward = mdp.to_dense()
    kap = {1.0: np.ptp(v) / 2, 2.0: np.linalg.norm(v - v.mean()), np.inf: np.abs(v - np.median(v)).sum()}[norm]
    q = reward.reshape(5, 3) + 0.9 * dense @ v
    w = nature.reward + 0.9 * nature.transition * kap
    weights = found.policy.weights(15).reshape(5, 3)
    for s in range(5):
        if norm == 1.0:  # max pi . q - t with pi_a w_a <= t
            lp = linprog(np.append(-q[s], 1.0), np.column_stack([np.diag(w[s]), -np.ones(3)]), np.zeros(3),
                         np.array([[1.0, 1.0, 1.0, 0.0]]), [1.0])  # fmt: skip
            best = -lp.fun
        elif norm == np.inf:
            best = (q[s] - w[s]).max()
        else:
            best = max(
                -minimize(lambda pi, s=s: np.linalg.norm(pi * w[s]) - pi @ q[s], start, bounds=[(0, 1)] * 3,
                          constraints={"type": "eq", "fun": lambda pi: pi.sum() - 1}, options={"ftol": 1e-14}).fun
                for start in (np.full(3, 1 / 3), *np.eye(3))
            )  # fmt: skip
        assert found.value[s] == pytest.approx(best, abs=1e-7)
        dual = {1.0: np.inf, 2.0: 2, np.inf: 1}[norm]
        assert weights[s] @ q[s] - np.linalg.norm(weights[s] * w[s], dual) == pytest.approx(found.value[s], abs=1e-12)


def test_one_safe_action_and_ties():
    value, weights = np.zeros(3), np.zeros(7)
    start, q = np.array([0, 3, 5, 7]), np.array([1.0, 0.9, 0.5, 2.0, 2.0, 1.0, 1.0])
    for norm in (1.0, 2.0):
        best_answers(start, q, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1e-300, 1e-300]), norm, value, weights)
        np.testing.assert_allclose(value, [0.9, 2.0, 1.0])
        np.testing.assert_allclose(np.add.reduceat(weights, start[:-1]), 1.0)
        assert weights[1] == 1.0


def iterated(mdp, step, sweeps=3000):
    v = np.zeros(mdp.n_states)
    for _ in range(sweeps):
        v = step(v)
    return v


@pytest.mark.parametrize("mass", ["kept", "free"])
def test_bounds_hold_where_probabilities_leave_the_simplex(mass):
    """Only the contraction is left; compared with plain iteration of the equation."""
    rng = np.random.default_rng(1)
    dense = rng.dirichlet(np.full(4, 0.2), size=(4, 2))
    reward = rng.normal(size=(4, 2))
    mdp = urbe.MDP.from_dense(dense, reward, discount=0.8, keep_zeros=True)
    nature = urbe.TwiceRegularised(0.05, 0.1, 2, support="all", mass=mass)
    assert nature.operator(mdp).modulus > 0.8

    def step(v):
        z = v - v.mean() if mass == "kept" else v
        return (reward + 0.8 * dense @ v - 0.1 - 0.8 * 0.05 * np.linalg.norm(z)).max(axis=1)

    truth = iterated(mdp, step)
    solution = urbe.solve(mdp, nature)
    assert (solution.lower <= truth).all()
    assert (truth <= solution.upper).all()
    loose = urbe.solve(mdp, nature, urbe.ValueIteration(tolerance=0.5))
    assert (loose.lower <= truth).all()
    assert (truth <= loose.upper).all()
    assert "negative" in urbe.certify(solution).statement
    horizon = urbe.solve(mdp, nature, urbe.BackwardInduction(3))
    assert horizon.gap < 1e-12


def test_modulus_bounds_the_stretch():
    """||T u - T v|| <= L ||u - v||, also for values made to stretch most."""
    rng = np.random.default_rng(2)
    mdp = model(2, n=4, discount=0.6)
    for norm in NORMS:
        for mass in ("kept", "free"):
            operator = urbe.TwiceRegularised(0.1, norm=norm, support="all", mass=mass).operator(mdp)
            modulus = operator.modulus or mdp.discount
            for u in rng.normal(size=(100, 4)):
                v = u + 0.01 * np.sign(rng.normal(size=4))
                change = np.abs(operator.improve(u).value - operator.improve(v).value).max()
                assert change <= modulus * 0.01 + 1e-12


def test_refuses_what_does_not_contract():
    mdp = urbe.library.riverswim(6, discount=0.95)
    with pytest.raises(ValueError, match=r"transition of state 1, action 1 is 0.3.*leave the simplex.*L2Ball\(0.3\)"):
        urbe.solve(mdp, urbe.TwiceRegularised(0.3))
    assert urbe.solve(mdp, urbe.TwiceRegularised(0.061)).gap < 1e-6  # the message says: less than 0.0612
    with pytest.raises(ValueError, match="norm is 3"):
        urbe.TwiceRegularised(0.1, norm=3)
    with pytest.raises(ValueError, match="transition"):
        urbe.solve(mdp, urbe.TwiceRegularised(-0.1))
    with pytest.raises(ValueError, match="reward"):
        urbe.solve(mdp, urbe.TwiceRegularised(0.0, reward=[[0.1] * 3] * 6))


def test_total_reward_without_discount():
    """A discount of 1 with an end: the clock runs on the ball inside the simplex."""
    mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=1.0, terminal=[1])
    solution = urbe.solve(mdp, urbe.TwiceRegularised(0.1 * 2**0.5, 0.25))
    assert solution.value[0] == pytest.approx((0.75) / 0.6, abs=1e-6)  # p(stay) falls to 0.4
    assert urbe.certify(solution).holds


def test_variance_of_the_value():
    mdp = model(4)
    posterior_like = urbe.TwiceRegularised(0.02, norm=2)
    moments = posterior_like.operator(mdp).moments(np.arange(5.0), np.ones(5))
    dense, _ = mdp.to_dense()
    mean = dense @ np.arange(5.0)
    variance = 0.81 * (dense @ np.arange(5.0) ** 2 - mean**2)
    np.testing.assert_allclose(moments.scatter.reshape(5, 3), variance)
    np.testing.assert_allclose(moments.carried, 1.0)


def test_policy_system_is_its_own_newton_step():
    mdp = model(6)
    for support in ("nominal", "all"):
        operator = urbe.TwiceRegularised(0.03, 0.1, 2, "state", support).operator(mdp)
        policy = PolicyRows.of_weights(np.full(15, 1 / 3))
        facing, _ = operator.against(policy)
        v = np.random.default_rng(0).normal(size=5)
        system = facing.linear_system(v)
        np.testing.assert_allclose(system.reward + 0.9 * (system.matrix @ v), facing.apply(v)[0], atol=1e-12)


@pytest.mark.parametrize("size", [1e-318, 1e-310, 1.0, 1e300])
@pytest.mark.parametrize("norm", NORMS)
def test_kernels_keep_their_mass_at_values_of_any_size(norm, size):
    mdp = urbe.MDP.from_dense(np.full((3, 1, 3), 1.0 / 3.0), 0.0, discount=0.9)
    operator = urbe.TwiceRegularised(0.2, norm=norm).operator(mdp)
    kernel = operator.kernel(size * np.array([0.0, 1.0, 2.7]), PolicyRows(np.arange(3)))
    assert kernel.row_sums(kernel.probability) == pytest.approx(np.ones(3), abs=1e-15)
