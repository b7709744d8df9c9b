"""UCRL2: extended value iteration against discounting, optimism, epochs, sublinear regret."""

from itertools import product

import numpy as np
import pytest

import urbe
from oracles.plans import random_model
from urbe.agents import UCRL2, Criterion, Run, Steps, Streams, Task
from urbe.agents.extended import extended_value_iteration
from urbe.ambiguity.optimistic import Optimistic
from urbe.envs import FiniteEnv
from urbe.posteriors.beliefs import Forgetting

RIVER = urbe.library.riverswim(4, discount=1.0)


def true_gain(model):
    """The best average reward, by trying every policy: stationary distributions of all of them."""
    p, r = model.to_dense()
    n, best = model.n_states, -np.inf
    for policy in product(range(model.n_actions), repeat=n):
        chain = p[np.arange(n), policy]
        system = np.vstack([chain.T - np.eye(n), np.ones(n)])
        stationary = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]
        best = max(best, stationary @ r[np.arange(n), policy])
    return best


def gain_of(model, alpha, radius, tolerance=1e-9):
    """Extended value iteration for one replicate: gain and values of rows."""
    total = model.rows.row_sums(alpha)
    u, q, gain = np.zeros((1, model.n_states)), np.zeros((1, model.n_rows)), np.zeros(1)
    extended_value_iteration(
        model, np.zeros(1, dtype=int), alpha[None, None], total[None, None], model.rows.row_reward[None],
        np.broadcast_to(radius, (1, model.n_rows)).copy(), np.full(1, tolerance), u, q, gain,
    )  # fmt: skip
    return gain[0], q[0]


@pytest.mark.parametrize("radius", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_gain_is_the_limit_of_discounted_values(seed, radius):
    """(1 - gamma) V -> gain, up to (1 - gamma) times the span of the values, which is at most a few dozen here."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, dense=True, ends=False, rewards_successors=seed == 3)
    alpha = rng.gamma(1.0, 1.0, model.rows.n_entries) + 0.05
    p = alpha / model.rows.row_sums(alpha)[model.rows.entry_row]
    rows = model.rows
    patient = model.with_rows(type(rows)(rows.n_states, rows.entry_start, rows.successor, p, rows.reward))
    gamma = 1.0 - 1e-6
    value = urbe.solve(patient.with_discount(gamma), Optimistic(urbe.L1Ball(radius)), throw=False).value
    gain, q = gain_of(model, alpha, radius)
    assert gain == pytest.approx((1.0 - gamma) * value.max(), abs=1e-4)
    greedy = np.array([q[a:b].argmax() for a, b in zip(model.row_start[:-1], model.row_start[1:], strict=True)])
    assert (greedy >= 0).all()


def test_without_radius_it_is_the_best_gain():
    model = RIVER
    gain, _ = gain_of(model, model.rows.probability, 0.0)
    assert gain == pytest.approx(true_gain(model), abs=1e-8)


def test_a_cycle_has_a_gain_too():
    """Two states in turn: plain value iteration would go to and fro for ever."""
    model = urbe.MDP.from_dense([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]], discount=1.0)
    assert gain_of(model, np.ones(2), 0.0)[0] == pytest.approx(0.5)


@pytest.mark.parametrize("prize", [0.1, 0.9])
def test_an_end_is_a_restart_that_takes_no_time(prize):
    """0.14 at once, or a prize after two steps."""
    model = urbe.MDP.from_transitions(
        [0, 0, 1], [0, 1, 0], [2, 1, 2], [1.0, 1.0, 1.0], [0.14, 0.0, prize], discount=1.0, n_states=3, terminal=[2],
        initial=[1.0, 0.0, 0.0],
    )  # fmt: skip
    gain, _ = gain_of(model, np.ones(3), 0.0)
    assert gain == pytest.approx(max(0.14, prize / 2.0), abs=1e-7)


def test_parts_that_do_not_meet_are_refused():
    model = urbe.MDP.from_dense(np.eye(2)[:, None], [[0.0], [1.0]], discount=1.0)
    with pytest.raises(RuntimeError, match="the optimistic gain of replicate 0 still differs between states"):
        gain_of(model, np.ones(2), 0.0)


def start(kind, model, horizon, replicates=1, rewards=None):
    return kind.start(Task(urbe.Posterior.before(model, 1.0, rewards), horizon), Streams(0, np.arange(replicates)))


def test_radii_are_those_of_the_paper():
    """With the criterion of an episode the plan is backward induction over the stated balls."""
    model, horizon, delta = urbe.library.riverswim(3), 5, 0.1
    agent = start(UCRL2(0.3, criterion=Criterion.EPISODE, delta=delta), model, horizon)
    env = FiniteEnv.of(model).start([np.random.default_rng(0)])
    state, counts, visits, strategy = (
        env.begin(0),
        np.zeros(model.rows.n_entries),
        np.zeros(model.n_rows),
        agent.strategy,
    )
    who, n_epochs = np.zeros(1, dtype=int), 0
    no = np.zeros(1, dtype=bool)
    for t in range(1, 200):
        over = bool(strategy.epochs.over[0])
        action = agent.act(who, state, (t - 1) % horizon)
        if over:
            n_epochs += 1
            n = np.maximum(visits, 1.0)
            radius = np.minimum(0.3 * np.sqrt(14 * 3 * np.log(2 * 2 * t / delta) / n), 2.0)
            centre = np.where(visits[model.rows.entry_row] > 0, np.maximum(counts, 1e-200), 1.0)
            p = centre / model.rows.row_sums(centre)[model.rows.entry_row]
            rows = model.rows
            centred = model.with_rows(type(rows)(3, rows.entry_start, rows.successor, p, rows.reward))
            ball = Optimistic(urbe.L1Ball(radius))
            solution = urbe.solve(centred, ball, urbe.BackwardInduction(horizon))
            np.testing.assert_allclose(strategy._plan.v[0], solution.value, rtol=1e-11, atol=1e-12)
            begun = visits.copy()
        arrival = env.step(who, state, action)
        row = model.row_of(int(state[0]), int(action[0]))
        entry = model.rows.entry_start[row] + int(
            np.searchsorted(
                model.rows.successor[model.rows.entry_start[row] : model.rows.entry_start[row + 1]],
                arrival.next_state[0],
            )
        )
        counts[entry] += 1.0
        visits[row] += 1.0
        agent.observe(Steps(who, state, action, arrival.reward, arrival.next_state, no, no), (t - 1) % horizon)
        doubled = visits[row] - begun[row] >= max(begun[row], 1.0)
        assert bool(strategy.epochs.over[0]) == bool(doubled)
        state = arrival.next_state
    assert n_epochs == strategy.epochs.index[0] > 5


def test_uncertain_rewards_have_a_bonus():
    """Three arms in one state, two of them tried: posterior means plus the stated radius."""
    bandit, delta = urbe.MDP.from_dense(np.ones((1, 3, 1)), 0.0, discount=1.0), 0.1
    kind = UCRL2(0.5, criterion=Criterion.EPISODE, delta=delta, span=2.0)
    agent, who, no = start(kind, bandit, 1, rewards=urbe.NormalGamma(mean=1.0)), np.zeros(1, int), np.zeros(1, bool)
    for arm in (0, 1, 1, 1):
        agent.observe(Steps(who, who, np.array([arm]), np.array([4.0]), who, no, no), 0)
    agent.act(who, who, 0)
    n, t = np.array([1.0, 3.0, 0.0]), 5
    means = (1.0 + 4.0 * n) / (1.0 + n)
    radius = 0.5 * 2.0 * np.sqrt(7.0 * np.log(2 * 1 * 3 * t / delta) / (2.0 * np.maximum(n, 1.0)))
    np.testing.assert_allclose(agent.strategy.q[0, 0], means + radius, rtol=1e-13)


@pytest.mark.parametrize("rewards", [None, urbe.NormalGamma(0.5, 1.0, 2.0, 0.1)], ids=["known", "uncertain"])
def test_optimism_epochs_and_regret(rewards):
    """In the river: every epoch's gain is at least the true one; SA log T epochs; regret slows down."""
    model, replicates, steps, length = RIVER, 4, 12_000, 500
    env, gain = FiniteEnv.of(model), true_gain(model)
    task = Task(urbe.Posterior.before(model, 1.0, rewards), length)
    run = Run(UCRL2(), env, task, episodes=steps // length, seed=0, replicates=np.arange(replicates))
    strategy = run.agent.strategy
    while not run.done:
        run.episode()
        assert (strategy.gain >= gain).all()
    pairs = model.n_states * model.n_actions
    assert (strategy.epochs.index <= pairs * np.log2(8.0 * steps / pairs)).all()
    assert (strategy.epochs.index >= np.log2(steps / pairs)).all()


def test_regret_of_two_states_is_sublinear():
    """Stay for 0.2, or move to where staying pays 1: the last quarter loses far less than the first."""
    transition = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.1, 0.9], [0.7, 0.3]]])
    model = urbe.MDP.from_dense(transition, [[0.2, 0.0], [1.0, 0.3]], discount=1.0, initial=[1.0, 0.0])
    env, gain, length = FiniteEnv.of(model), true_gain(model), 500
    run = Run(UCRL2(), env, Task(urbe.Posterior.before(model), length), episodes=48, seed=0, replicates=np.arange(10))
    while not run.done:
        run.episode()
    regret = gain * length - run.record.reward.mean(axis=0)
    assert regret[:12].sum() > 100.0
    assert regret[-12:].sum() < 0.25 * regret[:12].sum()


def test_old_counts_may_fade():
    model, env = RIVER, FiniteEnv.of(RIVER)
    task = Task(urbe.Posterior.before(model), 50)
    run = Run(UCRL2(0.2, Forgetting(0.5)), env, task, episodes=40, seed=0, replicates=np.arange(2))
    while not run.done:
        run.episode()
    strategy = run.agent.strategy
    assert (strategy.epochs.visits.sum(axis=1) < 110.0).all()
    assert (strategy.epochs.index > 40).all()


def test_refusals():
    ends = urbe.MDP.from_dense([[[0.0, 1.0]], [[0.0, 0.0]]], 0.0, discount=1.0, terminal=[1])
    with pytest.raises(ValueError, match="terminal states but no initial distribution"):
        start(UCRL2(), ends, 3)
    start(UCRL2(criterion=Criterion.EPISODE), ends, 3)
    with pytest.raises(ValueError, match=r"delta is 0, expected a number in \(0, 1\)"):
        start(UCRL2(delta=0.0), RIVER, 3)
    with pytest.raises(ValueError, match="scale is -1"):
        start(UCRL2(scale=-1.0), RIVER, 3)
