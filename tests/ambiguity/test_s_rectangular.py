"""Budgets shared by the actions of a state: values, policies and kernels against independent solutions."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from oracles.s_rectangular import level_by_bisection, level_by_lp, policy_by_lp, policy_by_search
from oracles.worst_case import LP_TOLERANCE
from urbe.ambiguity.interval import LInfBall
from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.l2 import L2Ball
from urbe.ambiguity.operator import PolicyRows
from urbe.ambiguity.shared_budget.s_rectangular import SRectangular
from urbe.mdp.model import MDP
from urbe.solvers import solve

BALLS = {"l1": L1Ball, "l2": L2Ball, "linf": LInfBall, "kl": KLBall}
BISECTED = 1e-12
"""Relative error of the oracles in extended precision, for budgets of at least 1e-9."""
SLOW = settings(max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
"""For oracles that take a good part of a second; shrinking would take minutes."""


@st.composite
def states(draw, most_actions=4, largest=6):
    """ps, zs: the rows of one state; ties, zeros and equal rows are common."""
    n, n_actions = draw(st.integers(1, largest)), draw(st.integers(1, most_actions))
    coarse = st.integers(-3, 3).map(float)
    values = draw(st.sampled_from([coarse, st.floats(-100, 100, allow_subnormal=False)]))
    ps, zs = [], []
    for _ in range(n_actions):
        counts = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n).filter(any))
        ps.append(np.array(counts) / sum(counts))
        zs.append(draw(st.lists(values, min_size=n, max_size=n)))
    return np.array(ps), np.array(zs, dtype=float)


budgets = st.one_of(
    st.sampled_from([0.0, 1e-300, 1e-18, 1e-9, 1e-4, 0.5, 1.0, 100.0]), st.floats(0, 8, allow_subnormal=False)
)


ordinary_budgets = st.one_of(st.sampled_from([1e-9, 1e-4, 0.5, 1.0, 100.0]), st.floats(1e-6, 4))


def model(ps, zs):
    """A model whose state 0 has the rows ps and rewards zs; the rest is terminal, so that values v = 0 give z."""
    n_actions, n = ps.shape
    p, r = np.zeros((n + 1, n_actions, n + 1)), np.zeros((n + 1, n_actions, n + 1))
    p[0, :, 1:], r[0, :, 1:] = ps, zs
    return MDP.from_dense(p, r, discount=1.0, terminal=range(1, n + 1))


def solved(ps, zs, ball):
    nature = SRectangular(ball).operator(model(ps, zs)).nature
    return nature, nature.improve(np.zeros(ps.shape[1] + 1))


@pytest.mark.parametrize("kind", ["l1", "l2"])
def test_a_budget_for_each_action_is_the_set_rectangular_in_states_and_actions(kind):
    """The choice of an action is a step of its own, into a state of that pair, which has one action and its budget."""
    rng = np.random.default_rng(0)
    n, n_actions, discount = 4, 3, 0.81
    p, r, radius = (
        rng.dirichlet(np.ones(n), size=(n, n_actions)),
        rng.random((n, n_actions)),
        rng.random((n, n_actions)),
    )
    pairs = solve(MDP.from_dense(p, r, discount=discount), BALLS[kind](radius))
    ids = np.arange(n * n_actions)
    choices = [[s, a, n + s * n_actions + a, 1.0, 0.0] for s in range(n) for a in range(n_actions)]
    steps = [[n + k, 0, t, p.reshape(-1, n)[k, t], r.ravel()[k] / 0.9] for k in ids.tolist() for t in range(n)]
    s, a, t, share, reward = map(np.array, zip(*choices, *steps, strict=True))
    split = MDP.from_transitions(s, a, t, share, reward, discount=0.9)  # two steps of 0.9 are one of 0.81
    budget = np.concatenate([np.zeros(n), radius.ravel()])
    states = solve(split, SRectangular(BALLS[kind](budget)))
    assert states.value[:n] == pytest.approx(pairs.value, abs=1e-5)


def facing(nature, weights):
    return nature.against(PolicyRows.of_weights(weights))


def oracle(ps, zs, budget, norm):
    if norm in ("l1", "linf"):
        return level_by_lp(ps, zs, budget, norm, ps > 0)
    return level_by_bisection(ps, zs, budget, norm, ps > 0)


def tolerance(norm, zs):
    return (LP_TOLERANCE if norm in ("l1", "linf") else BISECTED) * max(1.0, np.abs(zs).max())


def expectations(kernel):
    """Value of every row of `kernel`, whose entries carry their rewards."""
    return kernel.row_sums(kernel.probability * kernel.reward) if kernel.rewards_successors else kernel.reward


@pytest.mark.parametrize(
    ("budget", "value"), [(0, 0.74), (0.2, 0.66), (0.5, 0.54), (1, 0.37 / 0.9), (2, 0.17 / 0.9), (3, 0.1), (100, 0.1)]
)
def test_two_actions_by_hand(budget, value):
    ps, zs = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([[0.0, 1.0], [0.1, 0.9]])
    _, found = solved(ps, zs, L1Ball(budget))
    assert found.value[0] == pytest.approx(value, abs=1e-15)
    if budget == 1:
        assert found.weights == pytest.approx([4 / 9, 5 / 9], abs=1e-12)


def test_randomising_beats_every_action():
    """Two mirrored actions: nature ruins one of them for its whole budget, but not both."""
    ps, zs = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    nature, found = solved(ps, zs, L1Ball(1.0))
    assert found.value[0] == pytest.approx(0.25, abs=1e-15)
    assert found.weights == pytest.approx([0.5, 0.5])
    assert facing(nature, np.array([1.0, 0.0])).values(np.zeros(3)) == pytest.approx([0.0], abs=1e-15)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@settings(max_examples=40)
@given(state=states(), budget=budgets)
def test_levels_solve_the_linear_program(norm, state, budget):
    ps, zs = state
    _, found = solved(ps, zs, BALLS[norm](budget))
    assert found.value[0] == pytest.approx(oracle(ps, zs, budget, norm), abs=tolerance(norm, zs))


@pytest.mark.parametrize("norm", ["l2", "kl"])
@settings(SLOW, max_examples=25)
@given(state=states(3, 4), budget=ordinary_budgets)
def test_levels_solve_the_convex_program(norm, state, budget):
    ps, zs = state
    _, found = solved(ps, zs, BALLS[norm](budget))
    assert found.value[0] == pytest.approx(oracle(ps, zs, budget, norm), abs=tolerance(norm, zs))


def policies(draw, n):
    counts = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any))
    return np.array(counts) / sum(counts)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@settings(max_examples=40)
@given(state=states(), budget=budgets, data=st.data())
def test_policies_face_the_linear_program(norm, state, budget, data):
    ps, zs = state
    pi = policies(data.draw, len(ps))
    nature, _ = solved(ps, zs, BALLS[norm](budget))
    value = facing(nature, pi).values(np.zeros(ps.shape[1] + 1))[0]
    assert value == pytest.approx(policy_by_lp(ps, zs, pi, budget, norm, ps > 0), abs=tolerance(norm, zs))


@pytest.mark.parametrize("norm", ["l2", "kl"])
@SLOW
@given(state=states(3, 4), budget=ordinary_budgets, data=st.data())
def test_policies_face_the_convex_program(norm, state, budget, data):
    ps, zs = state
    pi = policies(data.draw, len(ps))
    nature, _ = solved(ps, zs, BALLS[norm](budget))
    value = facing(nature, pi).values(np.zeros(ps.shape[1] + 1))[0]
    assert value == pytest.approx(policy_by_search(ps, zs, pi, budget, norm, ps > 0), abs=tolerance(norm, zs))


@pytest.mark.parametrize("norm", list(BALLS))
@settings(max_examples=40)
@given(state=states(), budget=budgets)
def test_policy_and_kernel_form_a_saddle_point(norm, state, budget):
    """The policy is worth V against nature, and no policy is worth more under nature's kernel: minimax, certified."""
    ps, zs = state
    nature, found = solved(ps, zs, BALLS[norm](budget))
    allowed = nature.accuracy * np.abs(zs).max()
    v = np.zeros(ps.shape[1] + 1)
    assert found.weights.min() >= 0.0
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-14)
    assert facing(nature, found.weights).values(v)[0] == pytest.approx(found.value[0], abs=2 * allowed)
    assert found.weights @ found.q == pytest.approx(found.value[0], abs=2 * allowed)
    kernel = nature.saddle(v)
    # what is left of the divergence's search shows in the budget first
    assert nature.excess(kernel).max() <= 1e-9
    assert expectations(kernel).max() <= found.value[0] + 2 * allowed + 1e-300


@pytest.mark.parametrize("norm", list(BALLS))
@settings(max_examples=40)
@given(state=states(), budget=budgets, data=st.data())
def test_answers_attain_the_worst_case_within_the_budget(norm, state, budget, data):
    ps, zs = state
    pi = policies(data.draw, len(ps))
    nature, _ = solved(ps, zs, BALLS[norm](budget))
    against, v = facing(nature, pi), np.zeros(ps.shape[1] + 1)
    answer = against.answer(v)
    value = (pi[pi > 0] * expectations(answer)).sum()
    assert value == pytest.approx(against.values(v)[0], abs=4 * nature.accuracy * np.abs(zs).max())
    kernel = np.zeros((len(ps), ps.shape[1]))
    kernel[:] = ps
    for row, a, b in zip(np.flatnonzero(pi), answer.entry_start, answer.entry_start[1:], strict=False):
        kernel[row] = 0.0
        kernel[row, answer.successor[a:b] - 1] = answer.probability[a:b]
    spent = sum(nature.distance.measure(q, p) for q, p in zip(kernel, ps, strict=True))
    assert spent <= budget + 1e-12
    assert kernel.min() >= 0.0
    assert kernel.sum(axis=1) == pytest.approx(np.ones(len(ps)), abs=1e-14)


@pytest.mark.parametrize("norm", list(BALLS))
@settings(max_examples=30)
@given(state=states(), budget=budgets, more=st.floats(0, 1))
def test_laws(norm, state, budget, more):
    ps, zs = state
    ball = BALLS[norm]
    before = ps.copy(), zs.copy()
    nature, found = solved(ps, zs, ball(budget))
    allowed = 4 * nature.accuracy * max(np.abs(zs).max(), 1e-300)
    mdp, v = model(ps, zs), np.zeros(ps.shape[1] + 1)
    nominal = (ps * zs).sum(axis=1).max()
    one_each = SRectangular(ball(budget)).relaxed(mdp).bind(mdp).values(v)
    assert found.value[0] <= nominal + allowed
    assert found.value[0] >= one_each.max() - allowed
    assert solved(ps, zs, ball(budget + more))[1].value[0] <= found.value[0] + allowed
    assert solved(ps, zs, ball(0.0))[1].value[0] == pytest.approx(nominal, abs=allowed)
    moved = nature.improve(np.ones(len(v)), shift=2.0).value[0]  # discount 1: values 3 everywhere
    assert moved == pytest.approx(found.value[0] + 3.0, abs=4 * nature.accuracy * (3.0 + np.abs(zs).max()))
    for a in range(len(ps)):  # one action alone has the whole budget
        alone = facing(nature, np.eye(len(ps))[a]).values(v)[0]
        assert alone == pytest.approx(one_each[a], abs=allowed + 1e-300)
    assert np.array_equal(ps, before[0])
    assert np.array_equal(zs, before[1])


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@settings(max_examples=25)
@given(state=states(), budget=budgets, data=st.data())
def test_any_successor_may_receive_mass(norm, state, budget, data):
    """Rewards of the pair alone, values of the states: rows stay sparse or list every state."""
    ps, zs = state
    n_actions, n = ps.shape
    v = zs[0]
    reward = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=n_actions, max_size=n_actions)), dtype=float)
    transition = np.zeros((n + 1, n_actions, n + 1))
    transition[0, :, 1:] = ps
    table = np.zeros((n + 1, n_actions))
    table[0] = reward
    mdp = MDP.from_dense(transition, table, discount=1.0, terminal=range(1, n + 1))
    nature = SRectangular(BALLS[norm](budget, support="all")).operator(mdp).nature
    values = np.append(5.0 + v.max(), v)  # the state itself is the best of all
    found = nature.improve(values)
    full = np.hstack([np.zeros((n_actions, 1)), ps])
    z = values + reward[:, None]
    everywhere = np.ones_like(full, dtype=bool)
    if norm == "l2":
        if budget > 1e-6:  # the oracle's path starts too late for less
            assert found.value[0] == pytest.approx(
                level_by_bisection(full, z, budget, norm, everywhere), abs=tolerance(norm, z)
            )
    else:
        assert found.value[0] == pytest.approx(level_by_lp(full, z, budget, norm, everywhere), abs=tolerance(norm, z))
    saddle = nature.saddle(values)
    assert nature.excess(saddle).max() <= 1e-9
    best = saddle.row_sums(saddle.probability * values[saddle.successor]) + saddle.reward
    assert best.max() == pytest.approx(found.value[0], abs=1e-12 * max(1.0, np.abs(z).max()))
    against = facing(nature, found.weights)
    answer = against.answer(values)
    under = answer.row_sums(answer.probability * values[answer.successor]) + answer.reward
    assert against.weights @ under == pytest.approx(found.value[0], abs=1e-12 * max(1.0, np.abs(z).max()))


@pytest.mark.parametrize("budget", [1e-24, 1e-18, 1e-12])
def test_tiny_divergences_cost_a_standard_deviation(budget):
    """One action: V = mean - sqrt(2 kappa variance) + O(kappa); of two mirrored ones, each gets half the budget."""
    ps, zs = np.array([[0.2, 0.3, 0.5]] * 2), np.array([[-4.0, 1.0, 3.0]] * 2)
    mean = ps[0] @ zs[0]
    deviation = np.sqrt(ps[0] @ (zs[0] - mean) ** 2)
    _, alone = solved(ps[:1], zs[:1], KLBall(budget))
    _, both = solved(ps, zs, KLBall(budget))
    accuracy = 1e-14 + 10 * budget
    assert alone.value[0] == pytest.approx(mean - np.sqrt(2 * budget) * deviation, abs=accuracy)
    assert both.value[0] == pytest.approx(mean - np.sqrt(budget) * deviation, abs=accuracy)
    assert both.weights == pytest.approx([0.5, 0.5], abs=1e-3)


def test_divergence_never_leaves_the_nominal_support():
    ps, zs = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]])
    _, found = solved(ps, zs, KLBall(5.0, support="all"))
    assert found.value[0] == 1.0


def test_budgets_in_every_form():
    ps, zs = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([[0.0, 1.0], [0.1, 0.9]])
    mdp = model(ps, zs)
    for given_as in (1.0, [1.0, 0.0, 0.0], {0: 1.0}):
        value = SRectangular(L1Ball(given_as)).operator(mdp).improve(np.zeros(3)).value
        assert value == pytest.approx([0.37 / 0.9, 0.0, 0.0], abs=1e-15)


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        (-0.1, "radius is -0.1 for state 0, expected a number in .0, inf."),
        ([1.0, 2.0], r"radius has shape \(2,\), expected a number or one budget per state \(3,\)"),
        ({1: 0.5}, "radius has no budget for state 0; give one for every state"),
        ({7: 0.5}, "radius names state 7; the model has the states 0, ..., 2"),
        (np.nan, "radius is nan, expected a finite number"),
    ],
)
def test_bad_budgets_are_named(radius, message):
    mdp = model(np.array([[0.5, 0.5]]), np.array([[0.0, 1.0]]))
    with pytest.raises(ValueError, match=message):
        SRectangular(L1Ball(radius)).operator(mdp)


def test_other_sets_are_refused():
    with pytest.raises(TypeError, match=r"ball is 0\.5, expected one of L1Ball, L2Ball, LInfBall, KLBall"):
        SRectangular(0.5)


def test_rewards_of_unlisted_successors_are_missed():
    mdp = MDP.from_dense(np.array([[[0.5, 0.5, 0]]] + [[[0.0] * 3]] * 2), np.arange(9.0).reshape(3, 1, 3),
                         discount=1.0, terminal=[1, 2])  # fmt: skip
    with pytest.raises(ValueError, match="needs a reward for every successor"):
        SRectangular(LInfBall(0.5, support="all")).operator(mdp)
