"""L1 plans against the library's solver and a slow recursion; incremental plans equal fresh ones bit for bit."""

import numpy as np
import pytest

import urbe
from oracles.plans import Problem, random_model, random_problem, slow_plan
from urbe.agents.l1_plan import L1Plan
from urbe.agents.l1_rows import sort_down
from urbe.agents.set_plan import CALIBRATED, COUNT, DIRICHLET, LocalUncertainty
from urbe.mdp.rows import Rows

FORMS = {"count": COUNT, "dirichlet": DIRICHLET, "calibrated": CALIBRATED}
KINDS = {
    "sparse": {},
    "dense": {"dense": True},
    "rewards of successors": {"rewards_successors": True},
    "dense, rewards of successors": {"dense": True, "rewards_successors": True},
    "no end": {"ends": False},
    "long rows": {"states": 40, "longest": 30},
    "one state": {"states": 1},
}
kinds = pytest.mark.parametrize("kind", KINDS)


def fresh(problems, horizon, optimistic=False, **options):
    """A full plan of several replicates of one model."""
    plan = L1Plan(problems[0].model, horizon, len(problems), optimistic=optimistic)
    update(plan, problems, np.ones((len(problems), problems[0].model.n_rows), dtype=bool), **options)
    return plan


def update(plan, problems, touched, which=None, **options):
    stacked = [np.stack([getattr(x, name) for x in problems]) for name in ("alpha", "total", "reward", "radius")]
    plan.update(np.arange(len(problems)) if which is None else which, *stacked, touched, **options)


def same_bits(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("q", "u", "v", "w"))


@kinds
@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_backward_induction(kind, seed):
    rng = np.random.default_rng(seed)
    model, horizon = random_model(rng, **KINDS[kind]), 5
    problem = random_problem(rng, model)
    rows = model.rows
    p = problem.alpha[0] / problem.total[0][rows.entry_row]
    reward = rows.reward if rows.rewards_successors else problem.reward
    centred = model.with_rows(Rows(model.n_states, rows.entry_start, rows.successor, p, reward))
    solution = urbe.solve(centred, urbe.L1Ball(problem.radius), urbe.BackwardInduction(horizon))
    plan = fresh([problem], horizon)
    np.testing.assert_allclose(plan.v[0], solution.value, rtol=1e-12, atol=1e-12)
    assert not plan.u.any()
    assert not plan.w.any()


@kinds
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_everything_against_a_slow_recursion(kind, form, seed):
    rng = np.random.default_rng([seed, 7])
    model, horizon = random_model(rng, **KINDS[kind]), 4
    layers, scale = (horizon if seed == 2 else 1), 0.7
    problem = random_problem(rng, model, layers)
    bonus, variance = rng.random(model.n_rows), rng.random(model.n_rows)
    cap = np.array([4.0, 3.0, 2.0, 1.0]) if seed == 1 else None
    slow = slow_plan(problem, horizon, form, scale, variance, bonus, cap, optimistic=seed == 0)
    local = LocalUncertainty(FORMS[form], np.array([scale]), variance[None])
    plan = fresh([problem], horizon, local=local, bonus=bonus[None], cap=cap, optimistic=seed == 0)
    for name in ("q", "u", "v", "w"):
        np.testing.assert_allclose(getattr(plan, name)[0], getattr(slow, name), rtol=1e-11, atol=1e-11, err_msg=name)
    assert (plan.u >= 0.0).all()


@kinds
def test_without_radius_it_is_ordinary_dynamic_programming(kind):
    rng = np.random.default_rng(3)
    model, horizon = random_model(rng, **KINDS[kind]), 4
    problem = random_problem(rng, model)._replace(radius=np.zeros(model.n_rows))
    rows, v = model.rows, np.zeros(model.n_states)
    p = problem.alpha[0] / problem.total[0][rows.entry_row]
    plan = fresh([problem], horizon)
    for h in range(horizon - 1, -1, -1):
        of_entry = model.discount * v[rows.successor] + (rows.reward if rows.rewards_successors else 0.0)
        q = rows.row_sums(p * of_entry) + (0.0 if rows.rewards_successors else problem.reward)
        np.testing.assert_allclose(plan.q[0, h], q, rtol=1e-13, atol=1e-13)
        for s in np.flatnonzero(~model.terminal):
            v[s] = q[model.row_start[s] : model.row_start[s + 1]].max()


@kinds
@pytest.mark.parametrize("whole", [False, True], ids=["any masses", "masses that meet radii"])
@pytest.mark.parametrize("layers", [1, 6])
def test_incremental_plans_are_fresh_plans_bit_for_bit(kind, whole, layers):
    rng = np.random.default_rng([layers, whole])
    model, replicates, horizon = random_model(rng, **KINDS[kind]), 3, 6
    problems = [random_problem(rng, model, layers, whole=whole) for _ in range(replicates)]
    local = LocalUncertainty(CALIBRATED, np.array([1.0, 0.5, 2.0]))
    plan = fresh(problems, horizon, local=local)
    for _ in range(12):
        touched = rng.random((replicates, model.n_rows)) < rng.choice([0.0, 0.1, 0.5])
        for b in range(replicates):
            other = random_problem(rng, model, layers, whole=whole)
            entries = touched[b][model.rows.entry_row]
            problems[b] = Problem(
                model,
                np.where(entries, other.alpha, problems[b].alpha),
                np.where(touched[b], other.reward, problems[b].reward),
                np.where(touched[b], other.radius, problems[b].radius),
            )
        update(plan, problems, touched, local=local)
        assert same_bits(plan, fresh(problems, horizon, local=local))


@kinds
@pytest.mark.parametrize("whole", [False, True])
def test_replicates_do_not_see_each_other(kind, whole):
    rng = np.random.default_rng(11)
    model, horizon = random_model(rng, **KINDS[kind]), 5
    problems = [random_problem(rng, model, whole=whole) for _ in range(5)]
    together = fresh(problems, horizon, local=LocalUncertainty(CALIBRATED, np.ones(5)))
    backwards = fresh(problems[::-1], horizon, local=LocalUncertainty(CALIBRATED, np.ones(5)))
    for b, problem in enumerate(problems):
        alone = fresh([problem], horizon, local=LocalUncertainty(CALIBRATED, np.ones(1)))
        for name in ("q", "u", "v", "w"):
            assert np.array_equal(getattr(together, name)[b], getattr(alone, name)[0])
            assert np.array_equal(getattr(backwards, name)[4 - b], getattr(alone, name)[0])


def test_only_those_asked_for_are_planned_again():
    rng = np.random.default_rng(5)
    model = random_model(rng)
    problems = [random_problem(rng, model) for _ in range(4)]
    plan = fresh(problems, 3)
    before = plan.q.copy()
    others = [random_problem(rng, model) for _ in range(4)]
    update(plan, others, np.ones((4, model.n_rows), dtype=bool), which=np.array([2]))
    assert np.array_equal(plan.q[[0, 1, 3]], before[[0, 1, 3]])
    assert np.array_equal(plan.q[2], fresh(others, 3).q[2])


def test_a_single_row_and_several_replicates():
    """Where the absence of a bonus could be mistaken for one."""
    model = urbe.MDP.from_dense([[[1.0]]], [[1.0]], discount=1.0)
    problems = [Problem(model, np.ones((1, 1)), np.full(1, float(b)), np.zeros(1)) for b in range(40)]
    plan = fresh(problems, 3, local=LocalUncertainty(COUNT, np.full(40, 2.0)))
    assert plan.v[:, 0, 0].tolist() == [3.0 * b for b in range(40)]
    assert (plan.u == 4.0 * np.array([3.0, 2.0, 1.0])[None, :, None]).all()


def test_variance_of_a_chain_by_hand():
    """One action, one successor: w = sum_i gamma^(2 i) nu."""
    gamma, horizon = 0.9, 5
    chain = np.roll(np.eye(3), 1, axis=1)[:, None]
    model = urbe.MDP.from_dense(chain, np.zeros((3, 1)), discount=gamma)
    problem = Problem(model, np.full((1, 3), 4.0), np.zeros(3), np.full(3, 0.5))
    plan = fresh([problem], horizon, local=LocalUncertainty(COUNT, np.array([2.0])))
    np.testing.assert_allclose(plan.w[0, 0], sum(gamma ** (2 * i) for i in range(horizon)))
    assert not fresh([problem], horizon, local=LocalUncertainty(CALIBRATED, np.array([2.0]))).w.any()
    assert not fresh([problem], horizon, local=LocalUncertainty(DIRICHLET, np.array([2.0]))).w.any()


@kinds
def test_laws(kind):
    """Wider balls are worse, more data leave less variance, and variance grows with the square of the scale."""
    rng = np.random.default_rng(21)
    model = random_model(rng, **KINDS[kind])
    problem = random_problem(rng, model)
    wider = problem._replace(radius=np.minimum(problem.radius + 0.2, 2.0))
    one, two = (fresh([x], 4, local=LocalUncertainty(COUNT, np.ones(1))) for x in (problem, wider))
    assert (two.v <= one.v + 1e-12).all()
    assert (fresh([problem], 4, optimistic=True).v >= one.v - 1e-12).all()
    three = fresh([problem], 4, local=LocalUncertainty(COUNT, np.full(1, 3.0)))
    np.testing.assert_allclose(three.u, 9.0 * one.u)
    more = fresh([problem._replace(alpha=2.0 * problem.alpha)], 4, local=LocalUncertainty(COUNT, np.ones(1)))
    assert (more.u <= one.u + 1e-12).all()
    assert np.array_equal(more.q, one.q)  # a power of two changes no mean
    assert (one.u >= 1.0 / problem.total).all()


@pytest.mark.parametrize("listed", [4, 5], ids=["sparse", "dense"])
def test_among_equals_mass_leaves_the_first_and_goes_to_the_first(listed):
    """States 1, 2 are worth 0 and states 3, 4 are worth 1; their variances are 1, 1/2, 1/4, 1/8."""
    transition = np.zeros((5, 1, 5))
    transition[0, 0, 5 - listed :] = 1.0 / listed
    transition[1:, 0] = np.eye(5)[0] if listed == 4 else 0.2
    model = urbe.MDP.from_dense(transition, [[0.0], [0.0], [0.0], [1.0], [1.0]], discount=1.0)
    alpha = np.ones(model.rows.n_entries)
    rows = model.rows
    for row in range(1, 5):
        at = slice(rows.entry_start[row], rows.entry_start[row + 1])
        alpha[at] = 2.0 ** (row - 1) / (at.stop - at.start)
    start = np.array([0.2] * 5 if listed == 5 else [0.25] * 4)
    alpha[: len(start)] = start
    radius = np.array([0.6, 0.0, 0.0, 0.0, 0.0])
    plan = fresh(
        [Problem(model, alpha[None], rows.reward.copy(), radius)], 2, local=LocalUncertainty(COUNT, np.ones(1))
    )
    w = np.array([1.0, 1.0, 0.5, 0.25, 0.125])  # at the last step: 1 / N
    moved = np.zeros(5)
    if listed == 5:  # state 0 is worth nothing too, and comes first
        moved[[0, 3, 4]] = 0.3, -0.2, -0.1
    else:
        moved[[1, 3, 4]] = 0.3, -0.25, -0.05
    x = transition[0, 0] + moved
    assert plan.w[0, 0, 0] == pytest.approx(1.0 + x @ w, rel=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_dense_and_sparse_rows_agree_where_masses_meet_radii(seed):
    """Eighths are exact, so both ways must stop at the same successor; one more state makes rows sparse."""
    rng = np.random.default_rng(seed)
    dense = random_model(rng, dense=True)
    n, rows = dense.n_states, dense.rows
    sparse = urbe.MDP(
        np.append(dense.row_start, dense.row_start[-1]),
        dense.action,
        Rows(n + 1, rows.entry_start, rows.successor, rows.probability, rows.reward),
        dense.discount,
    )
    alpha = np.concatenate([rng.multinomial(8, np.full(n, 1.0 / n)) for _ in range(dense.n_rows)]).astype(float)
    radius = rng.choice([0.0, 0.25, 0.5, 1.0, 2.0], dense.n_rows)
    one, two = (
        fresh([Problem(x, alpha[None], rows.reward, radius)], 6, local=LocalUncertainty(CALIBRATED, np.ones(1)))
        for x in (dense, sparse)
    )
    for name in ("q", "u"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 7, 200])
def test_sorting_does_not_depend_on_the_guess(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        z, order = rng.integers(-3, 4, n).astype(float), rng.permutation(n)
        sort_down(z, order)
        assert order.tolist() == sorted(range(n), key=lambda j: (-z[j], j))


def test_state_is_taken_up():
    rng = np.random.default_rng(2)
    model = random_model(rng)
    problems = [random_problem(rng, model) for _ in range(3)]
    plan, nobody = (
        fresh(problems, 4, local=LocalUncertainty(COUNT, np.ones(3))),
        np.zeros((3, model.n_rows), dtype=bool),
    )
    other = L1Plan(model, 4, 3)
    other.load(plan.state())
    update(other, problems, nobody, local=LocalUncertainty(COUNT, np.ones(3)))
    assert same_bits(plan, other)
    saved = plan.state()
    plan.q[:] = 0.0
    assert saved["q"].any()
