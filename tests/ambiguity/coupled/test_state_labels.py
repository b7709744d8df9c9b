"""Options whose actions share a budget: linear programs, grids of policies, reductions, certificates, errors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import urbe
from urbe import BackwardInduction, Exact, KLBall, L1Ball, LabelOption, SRectangular, labelled, limited_deviations
from urbe.ambiguity.coupled.matrix_games import solve_games


def random_model(seed, *, n=3, actions=3, discount=0.9, by_successor=False):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n), size=(n, actions))
    reward = rng.normal(size=(n, actions, n) if by_successor else (n, actions))
    return urbe.MDP.from_dense(p, reward, discount=discount, keep_zeros=True)


def mirrored():
    """Two bets on two sides; nature can ruin either."""
    p = [[[0.0, 0.5, 0.5], [0.0, 0.5, 0.5]], np.eye(3)[[1, 1]], np.eye(3)[[2, 2]]]
    reward = [[[0, 1, 0], [0, 0, 1]], np.zeros((2, 3)), np.zeros((2, 3))]
    return urbe.MDP.from_dense(p, reward, discount=0.9, terminal=[1, 2])


def by_program(p, z, ahead, budget):
    """min over mixtures of the row p and rows within a shared L1 budget of the best action's value, as an LP.

    Variables: level u, probability m of deviating, m q_a, |m q_a - m p_a|.
    """
    n_actions, n = p.shape
    size = n_actions * n
    cost = np.r_[1.0, np.zeros(1 + 2 * size)]
    eye, zero = np.eye(size), np.zeros((size, 1))
    flat = p.reshape(-1, 1)
    value = np.zeros((n_actions, size))
    for a in range(n_actions):
        value[a, a * n : (a + 1) * n] = ahead[a]
    calm = (p * z).sum(axis=1, keepdims=True)
    upper = np.block([
        [-np.ones((n_actions, 1)), -calm, value, np.zeros((n_actions, size))],
        [zero, -flat, eye, -eye],
        [zero, flat, -eye, -eye],
        [np.zeros((1, 1)), -np.full((1, 1), budget), np.zeros((1, size)), np.ones((1, size))],
    ])  # fmt: skip
    bound = np.r_[-calm[:, 0], np.zeros(2 * size + 1)]
    total = np.kron(np.eye(n_actions), np.ones((1, n)))
    equal = np.hstack([np.zeros((n_actions, 1)), -np.ones((n_actions, 1)), total, np.zeros((n_actions, size))])
    limits = [(None, None), (0.0, 1.0)] + [(0.0, None)] * (2 * size)
    found = linprog(cost, upper, bound, equal, np.zeros(n_actions), bounds=limits)
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize(("seed", "by_successor"), [(0, False), (1, True), (2, False), (3, True)])
def test_one_deviation_is_the_value_of_linear_programs(seed, by_successor):
    mdp, budget, steps = random_model(seed, by_successor=by_successor), 0.7, 3
    model = limited_deviations(mdp, SRectangular(L1Ball(budget, support="nominal")), 1)
    solution = urbe.solve(model.mdp, model.set, BackwardInduction(steps))
    p = mdp.to_dense()[0]
    reward = np.broadcast_to(
        mdp.rows.entry_reward.reshape(p.shape) if by_successor else mdp.rows.reward.reshape(3, 3, 1), p.shape
    )
    calm, armed = np.zeros(3), np.zeros(3)
    for t in range(steps - 1, -1, -1):
        z, ahead = reward + 0.9 * armed, reward + 0.9 * calm
        armed = np.array([by_program(p[s], z[s], ahead[s], budget) for s in range(3)])
        calm = (p * ahead).sum(axis=2).max(axis=1)
        assert model.by_label(solution.value)[t] == pytest.approx(np.stack([calm, armed]), abs=1e-7)
    assert urbe.certify(solution).holds
    assert seed != 1 or (solution.policy[0, 3:].max(axis=1) < 0.999).any()  # randomises


def test_nature_that_does_not_know_the_bet_is_weaker():
    """One deviation is all that matters: half on each bet is worth .25, and a known bet nothing."""
    model = limited_deviations(mirrored(), SRectangular(L1Ball(1.0)), 1)
    solution = urbe.solve(model.mdp, model.set)
    start = model.state(0, 1)
    assert solution.value[start] == pytest.approx(0.25)
    assert solution.policy[start] == pytest.approx([0.5, 0.5])
    seen = limited_deviations(mirrored(), L1Ball(1.0), 1)
    assert urbe.solve(seen.mdp, seen.set).value[start] == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("ball", [L1Ball(0.5), KLBall(0.2)], ids=["l1", "kl"])
def test_budgets_of_no_and_of_all_deviations(ball):
    mdp, steps = random_model(5), 4
    horizon = BackwardInduction(steps)
    never, always = (limited_deviations(mdp, SRectangular(ball), budget) for budget in (0, steps))
    assert urbe.solve(never.mdp, never.set, horizon).value == pytest.approx(
        urbe.solve(mdp, method=horizon).value, abs=1e-8
    )
    found = urbe.solve(always.mdp, always.set, horizon)
    shared = urbe.solve(mdp, SRectangular(ball), horizon).value
    assert always.by_label(found.value)[0, steps] == pytest.approx(shared[0], abs=1e-8)


@pytest.mark.parametrize("ball", [L1Ball(0.6), KLBall(0.2)], ids=["l1", "kl"])
def test_certified_values_lie_between_seen_actions_and_the_model(ball):
    mdp = random_model(7, by_successor=ball == KLBall(0.2))
    model, seen = limited_deviations(mdp, SRectangular(ball), 2), limited_deviations(mdp, ball, 2)
    solution = urbe.solve(model.mdp, model.set)
    certificate = urbe.certify(solution)
    assert certificate.holds, certificate
    assert not urbe.certify(replace(solution, lower=solution.lower + 1e-3)).holds
    assert not urbe.certify(replace(solution, upper=solution.upper - 1e-3)).holds
    known = urbe.solve(seen.mdp, seen.set)
    assert (solution.value >= known.value - 1e-6).all()
    assert (np.diff(model.by_label(solution.value), axis=0) <= 1e-6).all()
    again = urbe.evaluate_policy(model.mdp, solution.policy, model.set)
    assert again.value == pytest.approx(solution.value, abs=1e-5)
    assert urbe.certify(again).holds
    worst = urbe.evaluate_policy(solution.kernel, solution.policy).value
    assert worst == pytest.approx(solution.value, abs=1e-5)
    other = urbe.evaluate_policy(model.mdp, np.zeros(9, dtype=int), model.set)
    assert (other.upper <= solution.value + 1e-6).all()
    assert urbe.certify(other).holds


def test_the_policy_is_the_best_of_a_grid():
    mdp = random_model(11, actions=2)
    model = labelled(
        mdp, [[LabelOption(Exact(), 0), LabelOption(SRectangular(KLBall(0.3)), 1)], [LabelOption(L1Ball(0.2), 0)]]
    )
    operator, v = model.set.operator(model.mdp), np.random.default_rng(0).normal(size=6)
    found = operator.improve(v)
    best = np.full(6, -np.inf)
    for share in np.linspace(0.0, 1.0, 501):
        policy = urbe.ambiguity.operator.PolicyRows.of_weights(np.tile([share, 1.0 - share], 6))
        best = np.maximum(best, operator.against(policy)[0].apply(v)[0])
    assert found.value == pytest.approx(best, abs=2e-3)
    assert (found.value >= best - 1e-8).all()


def test_games_have_the_value_of_linear_programs():
    rng = np.random.default_rng(0)
    start = np.array([0, 4, 4, 5, 8])
    columns = rng.normal(size=(12, 8)).round(1)  # ties
    upper, policy, mixture = solve_games(start, columns)
    for s in (0, 2, 3):
        mine = columns[:, start[s] : start[s + 1]]
        k, n = mine.shape
        found = linprog(
            np.r_[np.zeros(n), -1.0], np.hstack([-mine, np.ones((k, 1))]), np.zeros(k), [[1.0] * n + [0.0]], [1.0],
            bounds=[(0, None)] * n + [(None, None)],
        )  # fmt: skip
        assert upper[s] == pytest.approx(-found.fun, abs=1e-9)
        assert (mine @ policy[start[s] : start[s + 1]]).min() == pytest.approx(-found.fun, abs=1e-9)
        assert mixture[:, s].sum() == pytest.approx(1.0)


def test_errors_say_what_to_do():
    mdp = random_model(1)
    shared = SRectangular(L1Ball(0.5))
    with pytest.raises(
        ValueError, match=r"options\[0\]\[1\]\.next_label depends on the action in state 0, expected one"
    ):
        labelled(mdp, [[LabelOption(Exact(), 0), LabelOption(shared, [[0, 1, 1]] * 3)], [LabelOption(Exact(), 1)]])
    with pytest.raises(ValueError, match=r"options\[0\]\[0\] and options\[0\]\[1\] both lead to label 0 from state 0"):
        labelled(mdp, [[LabelOption(Exact(), 0), LabelOption(shared, 0)]])
    factors = urbe.FactorSet(np.ones((3, 3, 1)), np.full((1, 3), 1 / 3), L1Ball(0.1))
    with pytest.raises(ValueError, match=r"set is .*is not solved row by row.*but not different states"):
        limited_deviations(mdp, factors, 1)
    model = limited_deviations(mdp, shared, 1)
    with pytest.raises(ValueError, match=r"expected the labelled model that belongs to this set, of 6 states"):
        urbe.solve(mdp, model.set)


@pytest.mark.parametrize("ball", [L1Ball(0.7, support="nominal"), KLBall(0.2)], ids=str)
def test_the_stated_error_covers_rounding_by_large_values(ball):
    """T (v + c) = T v + gamma c, whatever c; only the rounding grows with it."""
    model = limited_deviations(random_model(5), SRectangular(ball), 1)
    operator = model.set.operator(model.mdp)
    rng, seen = np.random.default_rng(0), 0.0
    for _ in range(10):
        v, constant = rng.normal(size=model.mdp.n_states), 10.0 ** rng.uniform(6, 12)
        near, far = operator.improve(v).value, operator.improve(v + constant).value
        moved = np.longdouble(0.9) * np.longdouble(constant)
        apart = float(np.abs(far.astype(np.longdouble) - moved - near.astype(np.longdouble)).max())
        given = float(np.abs((v + constant) - constant - v).max())  # v itself is rounded there
        assert apart <= operator.error(v) + operator.error(v + constant) + 0.9 * given
        seen = max(seen, apart - 0.9 * given)
    assert seen > 0.0


def test_options_mixed_differently_for_each_action_are_rejected():
    """Nature picks the option before it knows the action: its probability is the same for all of them."""
    model = limited_deviations(random_model(5), SRectangular(L1Ball(0.7, support="nominal")), 1)
    operator, v = model.set.operator(model.mdp), np.random.default_rng(0).normal(size=model.mdp.n_states)
    policy = operator.improve(v).policy
    fair = operator.kernel(v, policy)
    assert operator.evidence(fair, True).failure is None
    label = fair.successor // 3
    mixed = np.flatnonzero([len(set(label[fair.entry_row == row])) == 2 for row in range(fair.n_rows)])
    assert len(mixed)  # nature randomises
    gone = (fair.entry_row == mixed[0]) & (label == label[fair.entry_row == mixed[0]][0])
    probability = np.where(gone, 0.0, fair.probability)
    of_row = fair.entry_row == mixed[0]
    probability[of_row] /= probability[of_row].sum()
    found = operator.evidence(replace(fair, probability=probability), True)
    assert "differ between actions" in found.failure
    assert found.excess > 0.01
