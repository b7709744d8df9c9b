"""Q-learning and its robust variants against updates by hand and against dynamic programming."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

import urbe
from fixtures.agents import feed, start, steps
from urbe.agents import ContaminationQ, MismatchQ, PolynomialDecay, QLearning, Shape, Task, run
from urbe.agents.q_learning import CONTAMINATION, L1, L2, LINF, penalty_of
from urbe.envs.finite import FiniteEnv
from urbe.mdp.model import MDP

TWO = MDP.from_dense(
    [[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], [[0.0] * 3] * 2],
    [[1.0, 0.0], [2.0, -1.0], [0.0, 0.0]],
    discount=0.5,
    terminal=[2],
    initial=[1.0, 0.0, 0.0],
)


def test_one_step_by_hand():
    agent = start(QLearning(rate=0.5), TWO)
    agent.observe(steps(1, 0, 2.0, 2, terminated=True), 0)
    assert agent.q[0, 0].tolist() == [0.0, 0.0, 1.0, 0.0]
    agent.observe(steps(0, 1, 0.0, 1), 0)
    assert agent.q[0, 0].tolist() == [0.0, 0.25, 1.0, 0.0]  # 0.5 (0 + 0.5 * 1)
    assert agent.v[0].tolist() == [0.25, 1.0, 0.0]


def test_a_cut_is_not_an_end():
    """The same step, ended, cut off or plain: only the end takes the future away."""
    expected = {}
    for name, flags in {"plain": {}, "cut": {"truncated": True}, "ended": {"terminated": True}}.items():
        agent = start(QLearning(rate=1.0, initial=4.0), TWO)
        agent.observe(steps(0, 1, 1.0, 1, **flags), 0)
        expected[name] = agent.q[0, 0, 1]
    assert expected == {"plain": 3.0, "cut": 3.0, "ended": 1.0}


def test_robust_steps_by_hand():
    kinds = {
        ContaminationQ(0.25, rate=1.0): 0.5 * (0.75 * 4.0 + 0.25 * -2.0),
        MismatchQ(0.25, Shape.L1, rate=1.0): 0.5 * (4.0 - 0.25 * 3.0),
        MismatchQ(0.25, Shape.ELLIPSOID, rate=1.0): 0.5 * (4.0 - 0.25 * np.sqrt(np.sum(np.square([-8, 10, -2]) / 9))),
        MismatchQ(0.25, Shape.BOX, rate=1.0): 0.5 * (4.0 - 0.25 * 6.0),
    }
    for kind, future in kinds.items():
        agent = start(kind, TWO)
        agent.v[0] = -2.0, 4.0, 0.0
        agent.observe(steps(0, 1, 1.0, 1), 0)
        assert agent.q[0, 0, 1] == pytest.approx(1.0 + future, abs=1e-15)


def test_nature_interferes_at_the_end_too():
    """The pair that ends surely in the model may be led elsewhere by nature."""
    agent = start(ContaminationQ(0.5, rate=1.0), TWO)
    agent.v[0] = -2.0, 4.0, 0.0
    agent.observe(steps(1, 0, 2.0, 2, terminated=True), 0)
    assert agent.q[0, 0, 2] == 2.0 + 0.5 * 0.5 * -2.0


@given(
    v=st.lists(st.integers(-6, 6), min_size=1, max_size=7),
    radius=st.sampled_from([0.0, 0.3, 2.0]),
    case=st.integers(0, 2),
)
def test_penalties_are_minima_over_their_sets(v, radius, case):
    """min x . v over sum x = 0 and a norm ball: linear programs, and a convex one for the ellipsoid."""
    v, n = np.array(v, dtype=float), len(v)
    found = penalty_of((L1, LINF, L2)[case], v, 0.0, radius)
    if case == 0:  # x = a - b, a and b at least 0
        expected = linprog(
            np.r_[v, -v], np.ones((1, 2 * n)), [radius], np.r_[np.ones(n), -np.ones(n)][None], [0.0], (0, None)
        )
        assert found == pytest.approx(expected.fun, abs=1e-7)
    elif case == 1:
        expected = linprog(v, None, None, np.ones((1, n)), [0.0], (-radius, radius))
        assert found == pytest.approx(expected.fun, abs=1e-7)
    else:  # projecting the gradient on sum x = 0 is what the closed form does; the optimiser does not know
        ball = [
            {"type": "eq", "fun": lambda x: x.sum()},
            {"type": "ineq", "fun": lambda x: radius**2 - x @ x},
        ]
        expected = minimize(lambda x: x @ v, np.zeros(n), constraints=ball, method="SLSQP", options={"ftol": 1e-12})
        x = expected.x - expected.x.mean()  # SLSQP stops slightly outside, and what lies outside may be lower
        x *= min(1.0, radius / max(float(np.linalg.norm(x)), 1e-300))
        assert found <= x @ v + 1e-9
        assert found == pytest.approx(x @ v, abs=1e-3 * (1.0 + abs(found)))


def test_published_penalties():
    v = np.array([1.0, 2.0, 5.0, 4.0])
    assert [penalty_of(kind, v, 0.0, 1.0) for kind in (L1, L2, LINF)] == pytest.approx([-2.0, -3.16227766, -6.0])
    assert penalty_of(CONTAMINATION, v, 5.0, 0.2) == pytest.approx(-0.8)


@pytest.mark.parametrize(
    "kind", [ContaminationQ(0.0), MismatchQ(0.0), MismatchQ(0.0, Shape.ELLIPSOID), MismatchQ(0.0, Shape.BOX)]
)
def test_without_nature_it_is_q_learning(kind):
    mdp = urbe.library.riverswim(4)
    task = Task(urbe.Posterior.before(mdp), 20)
    records = [run(k, FiniteEnv.of(mdp), task, episodes=20, seed=1, replicates=3) for k in (kind, QLearning())]
    assert np.array_equal(records[0].reward, records[1].reward)


GARNET = urbe.library.garnet(6, 2, 3, seed=4, discount=0.8)
AVERAGING = PolynomialDecay(1.0, power=0.6)


def test_contamination_converges_to_the_robust_values():
    expected = urbe.solve(GARNET, urbe.Contamination(0.2, support="all")).value
    agent = start(ContaminationQ(0.2, rate=AVERAGING), GARNET, replicates=10)
    feed(agent, GARNET, np.random.default_rng(0), 1500, 10)
    # replicates spread by 0.014 or less (measured): the mean of 10 is off by 0.02 with a chance below 1e-5
    assert agent.v.mean(axis=0) == pytest.approx(expected, abs=0.02)
    plain = urbe.solve(GARNET).value
    assert np.abs(expected - plain).min() > 0.1  # the test could tell


def test_q_learning_converges_to_the_values():
    agent = start(QLearning(rate=AVERAGING), GARNET, replicates=10)
    feed(agent, GARNET, np.random.default_rng(1), 1500, 10)
    assert agent.v.mean(axis=0) == pytest.approx(urbe.solve(GARNET).value, abs=0.02)


def fixed_point(mdp, loss):
    """V(s) = max_a r + gamma (p . V - loss(V)), iterated."""
    p, r = mdp.to_dense()
    v = np.zeros(mdp.n_states)
    for _ in range(2000):
        v = (r + mdp.discount * (p @ v - loss(v))).max(axis=1)
    return v


@pytest.mark.parametrize(
    ("shape", "radius", "loss"),
    [
        (Shape.L1, 0.2, lambda v: np.ptp(v) / 2),
        (Shape.ELLIPSOID, 0.1, lambda v: np.linalg.norm(v - v.mean())),
        (Shape.BOX, 0.05, lambda v: np.abs(v - np.median(v)).sum()),
    ],
)
def test_mismatch_converges_to_its_fixed_point(shape, radius, loss):
    expected = fixed_point(GARNET, lambda v: radius * loss(v))
    agent = start(MismatchQ(radius, shape, rate=AVERAGING), GARNET, replicates=10)
    feed(agent, GARNET, np.random.default_rng(2), 1500, 10)
    assert agent.v.mean(axis=0) == pytest.approx(expected, abs=0.02)
    assert np.abs(expected - urbe.solve(GARNET).value).min() > 0.05


def test_inside_the_simplex_mismatch_is_the_l1_ball():
    rng = np.random.default_rng(0)
    p = 0.1 + rng.uniform(size=(4, 2, 4))
    mdp = MDP.from_dense(p / p.sum(axis=2, keepdims=True), rng.uniform(size=(4, 2)), discount=0.8)
    radius = 0.9 * mdp.rows.probability.min()
    ball = urbe.solve(mdp, urbe.L1Ball(radius, support="all")).value
    assert fixed_point(mdp, lambda v: radius * np.ptp(v) / 2) == pytest.approx(ball, abs=1e-6)


def test_undiscounted_episodes():
    mdp = urbe.library.grid_world(3, 3, 0.0, discount=1.0)
    task = Task(urbe.Posterior.before(mdp), 50)
    record = run(QLearning(rate=1.0), FiniteEnv.of(mdp), task, episodes=300, seed=0, replicates=4)
    assert np.median(record.reward[:, -50:]) == -4.0


def test_exploration_is_as_often_as_asked_for():
    mdp = MDP.from_dense([[[1.0]] * 4], [[0.0, 0.0, 1.0, 0.0]], discount=0.0)
    agent = start(QLearning(rate=0.0, exploration=[0.0, 1.0, 0.4]), mdp, replicates=3)
    agent.q[:, 0, 2] = 1.0
    who = np.arange(3)
    taken = np.array([agent.act(who, np.zeros(3, dtype=int), 0) for _ in range(4000)])
    assert (taken[:, 0] == 2).all()
    # 5 standard deviations of 4000 draws: false alarms below 1e-5 in all
    assert np.bincount(taken[:, 1], minlength=4) / 4000 == pytest.approx(0.25, abs=5 * np.sqrt(0.25 * 0.75 / 4000))
    assert (taken[:, 2] != 2).mean() == pytest.approx(0.3, abs=5 * np.sqrt(0.3 * 0.7 / 4000))


def test_rates_fall_with_visits():
    agent = start(QLearning(rate=PolynomialDecay(1.0, power=1.0)), MDP.from_dense([[[1.0]]], 0.0, discount=0.0))
    rewards = [3.0, 5.0, 1.0, 7.0]
    for n, reward in enumerate(rewards, start=1):
        agent.observe(steps(0, 0, reward, 0), 0)
        assert agent.q[0, 0, 0] == pytest.approx(np.mean(rewards[:n]), abs=1e-14)


def test_decay():
    decay = PolynomialDecay(0.8, power=0.5, delay=4.0, floor=0.3)
    assert [decay.after(n) for n in (0, 12, 10**9)] == pytest.approx([0.8, 0.4, 0.3], abs=1e-15)
    assert PolynomialDecay(0.1).after(1000) == 0.1
    for wrong, message in [
        (PolynomialDecay(1.5), r"rate\.first is 1\.5, expected a number in \[0, 1\]"),
        (PolynomialDecay(1.0, power=-1.0), r"rate\.power is -1, expected a number in \[0, inf\]"),
        (PolynomialDecay(1.0, delay=0.0), r"rate\.delay is 0, expected a number in \(0, inf\]"),
        (PolynomialDecay(1.0, floor=[0.0, 2.0]), r"rate\.floor\[1\] is 2, expected"),
    ]:
        with pytest.raises(ValueError, match=message):
            wrong.after(0)


def test_parameters_may_differ_between_replicates():
    agent = start(ContaminationQ([0.0, 1.0], rate=[0.5, 1.0], initial=[0.0, 2.0]), TWO, replicates=2)
    agent.observe(steps([0, 0], [1, 1], [1.0, 1.0], [1, 1]), 0)
    assert agent.q[:, 0, 1].tolist() == [0.5, 1.0]  # the second: 1 + 0.5 min V = 1, the terminal state's


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (ContaminationQ(1.5), r"fraction is 1\.5, expected a number in \[0, 1\]"),
        (MismatchQ([-0.1]), r"radius\[0\] is -0\.1, expected a number in \[0, inf\]"),
        (QLearning(exploration=[0.1, 0.2]), r"exploration\.first has shape \(2,\), expected a number or one per"),
        (QLearning(initial=np.nan), "initial is nan, expected a finite number"),
    ],
)
def test_refuses_other_parameters(kind, message):
    with pytest.raises(ValueError, match=message):
        start(kind, TWO)


def test_an_unknown_pair_is_named():
    with pytest.raises(KeyError, match=r"State 0 has no action 5; it has \[0, 1\]"):
        start(QLearning(), TWO).observe(steps(0, 5, 0.0, 0), 0)
