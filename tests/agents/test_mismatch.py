"""Robust SARSA and TD under mismatch against dynamic programming, and the condition for a contraction."""

import numpy as np
import pytest

import urbe
from fixtures.agents import feed, start, steps
from urbe.agents import MismatchSARSA, MismatchTD, PolynomialDecay, QLearning, Shape, Task, mismatch_modulus, run
from urbe.ambiguity.closed_form.deviation import total_variation
from urbe.envs.finite import FiniteEnv
from urbe.mdp.evaluate import policy_value

GARNET = urbe.library.garnet(6, 2, 3, seed=4, discount=0.8)
AVERAGING = PolynomialDecay(1.0, power=0.6)
LOSS = {
    Shape.L1: lambda v: np.ptp(v) / 2,
    Shape.ELLIPSOID: lambda v: np.linalg.norm(v - v.mean()),
    Shape.BOX: lambda v: np.abs(v - np.median(v)).sum(),
}
SHAPES = [(Shape.L1, 0.2), (Shape.ELLIPSOID, 0.08), (Shape.BOX, 0.04)]


def q_fixed_point(mdp, value_of, loss):
    """Q = r + gamma (p . V - loss(V)) with V = value_of(Q), iterated."""
    p, r = mdp.to_dense()
    v = np.zeros(mdp.n_states)
    for _ in range(3000):
        v = value_of(r + mdp.discount * (p @ v - loss(v)))
    return v


@pytest.mark.parametrize(("shape", "radius"), SHAPES)
def test_sarsa_converges_to_its_fixed_point(shape, radius):
    explored = q_fixed_point(
        GARNET, lambda q: 0.7 * q.max(axis=1) + 0.3 * q.mean(axis=1), lambda v: radius * LOSS[shape](v)
    )
    agent = start(MismatchSARSA(radius, shape, rate=AVERAGING, exploration=0.3), GARNET, replicates=10)
    feed(agent, GARNET, np.random.default_rng(2), 1500, 10)
    assert agent.v.mean(axis=0) == pytest.approx(explored, abs=0.02)
    greedy = q_fixed_point(GARNET, lambda q: q.max(axis=1), lambda v: radius * LOSS[shape](v))
    assert np.abs(explored - greedy).max() > 0.05  # the test could tell SARSA from Q-learning


@pytest.mark.parametrize(("shape", "radius"), SHAPES)
def test_td_converges_to_its_fixed_point(shape, radius):
    policy = np.full((6, 2), [0.25, 0.75])
    expected = q_fixed_point(GARNET, lambda q: (policy * q).sum(axis=1), lambda v: radius * LOSS[shape](v))
    agent = start(MismatchTD(policy, radius, shape, rate=AVERAGING), GARNET, replicates=10)
    p, r = GARNET.to_dense()
    rng, who = np.random.default_rng(5), np.arange(10)
    for _ in range(1500):
        for s in range(6):
            action = agent.act(who, np.full(10, s), 0)
            following = (rng.uniform(size=(10, 1)) > np.cumsum(p[s, action], axis=1)).sum(axis=1).clip(max=5)
            agent.observe(steps([s] * 10, action, r[s, action], following), 0)
    assert agent.v.mean(axis=0) == pytest.approx(expected, abs=0.02)


def test_td_without_nature_is_td_and_visits_follow_the_policy():
    mdp = urbe.library.riverswim(3, discount=0.8)
    agent = MismatchTD([1, 1, 1], radius=0.0, rate=AVERAGING)
    record = run(agent, FiniteEnv.of(mdp), Task(urbe.Posterior.before(mdp), 200), episodes=60, seed=0, replicates=8)
    assert record.reward.shape[0] == 8
    learner = start(agent, mdp, replicates=8)
    feed_actions = np.random.default_rng(0)
    p, r = mdp.to_dense()
    for _ in range(3000):
        for s in range(3):
            following = feed_actions.choice(3, size=8, p=p[s, 1])
            learner.observe(steps([s] * 8, [1] * 8, [r[s, 1]] * 8, following), 0)
    assert learner.v.mean(axis=0) == pytest.approx(policy_value(mdp, [1, 1, 1]), abs=0.02)


def test_without_exploration_and_nature_sarsa_is_q_learning():
    mdp = urbe.library.riverswim(4)
    task = Task(urbe.Posterior.before(mdp), 20)
    kinds = (MismatchSARSA(0.0, exploration=0.0, initial=2.0), QLearning(exploration=0.0, initial=2.0))
    records = [run(k, FiniteEnv.of(mdp), task, episodes=20, seed=1, replicates=3) for k in kinds]
    assert np.array_equal(records[0].reward, records[1].reward)


def test_the_fixed_point_is_that_of_the_closed_form_set():
    """Two roads to one equation: learning needs no model, the set gives it certified bounds."""
    fixed = q_fixed_point(GARNET, lambda q: q.max(axis=1), lambda v: 0.05 * LOSS[Shape.ELLIPSOID](v))
    solution = urbe.solve(GARNET, urbe.TwiceRegularised(0.05, norm=2, support="all"))
    assert (solution.lower <= fixed + 1e-12).all()
    assert (fixed <= solution.upper + 1e-12).all()


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_modulus_is_that_of_the_sets(n):
    for shape, norm in ((Shape.L1, 1.0), (Shape.ELLIPSOID, 2.0), (Shape.BOX, np.inf)):
        expected = 0.9 * (1.0 + 0.1 * total_variation(np.array(float(n)), norm, False))
        assert mismatch_modulus(0.1, shape, n, 0.9) == pytest.approx(float(expected))


def test_refuses_radii_that_need_not_contract():
    with pytest.raises(ValueError, match=r"radius\[0\] is 0\.3.*Give less than 0\.25"):
        start(MismatchSARSA(0.3), GARNET)
    with pytest.raises(ValueError, match=r"radius\[1\] is 0\.1.*is 1\.28.*Give less than 0\.0417"):
        start(MismatchTD([0] * 6, [0.0, 0.1], Shape.BOX), GARNET, replicates=2)
    start(MismatchSARSA(0.3, check=False), GARNET)
    with pytest.raises(ValueError, match="policy"):
        start(MismatchTD([5] * 6), GARNET)


def test_policies_are_followed_with_their_probabilities_and_never_elsewhere():
    mdp = urbe.MDP.from_dense([[[1.0]] * 4], [[0.0] * 4], discount=0.0)
    agent = start(MismatchTD([[0.0, 0.3, 0.7, 0.0]]), mdp, replicates=1)
    taken = np.array([agent.act(np.zeros(1, int), np.zeros(1, int), 0)[0] for _ in range(4000)])
    assert np.bincount(taken, minlength=4)[[0, 3]].tolist() == [0, 0]
    assert (taken == 1).mean() == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 4000))


@pytest.mark.parametrize("action", [0, 7])
def test_steps_of_other_policies_are_errors(action):
    """They would be learned from as if the policy had taken them."""
    agent = start(MismatchTD([1] * 6), GARNET)
    agent.observe(steps(0, 1, 1.0, 2), 0)
    before = agent.v.copy()
    with pytest.raises(
        (ValueError, KeyError), match=r"action 0 was taken in state 0, but the policy never|no action 7"
    ):
        agent.observe(steps(0, action, 1.0, 2), 0)
    assert np.array_equal(agent.v, before)


def test_states_are_taken_up():
    for kind in (MismatchTD([0] * 6), MismatchSARSA(0.05)):
        one, two = start(kind, GARNET), start(kind, GARNET)
        if isinstance(kind, MismatchSARSA):
            feed(one, GARNET, np.random.default_rng(0), 3)
        for state in range(6):
            one.observe(steps(state, 0, 1.0, 5 - state), 0)
        one.act(np.zeros(1, int), np.zeros(1, int), 0)
        two.load(one.state())
        np.testing.assert_array_equal(one.v, two.v)
        acts = [[x.act(np.zeros(1, int), np.zeros(1, int), 0)[0] for _ in range(30)] for x in (one, two)]
        assert acts[0] == acts[1]
