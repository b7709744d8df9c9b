"""Randomised value functions against the equivalent dense regression, and on deep sea."""

import numpy as np
import pytest

import urbe
from fixtures.agents import start, steps
from urbe.agents import RLSVI, QLearning, Task, run
from urbe.envs.finite import FiniteEnv
from urbe.mdp.model import MDP
from urbe.rng import stream

HORIZON = 3


def model(seed=0, discount=0.9):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(4), size=(4, 2))
    return MDP.from_dense(p, rng.normal(size=(4, 2)), discount=discount, terminal=[3], initial=[1.0, 0.0, 0.0, 0.0])


def episodes(mdp, rng, n):
    """Random episodes: lists of (step, row, reward, next_state, terminated)."""
    p, r = mdp.to_dense()
    seen = []
    for _ in range(n):
        s = 0
        for h in range(HORIZON):
            a = int(rng.integers(2))
            t = int(rng.choice(4, p=p[s, a]))
            seen.append((h, s, a, r[s, a] + rng.normal(), t, bool(mdp.terminal[t])))
            if mdp.terminal[t]:
                break
            s = t
    return seen


def taught(kind, mdp, seen, **options):
    agent = start(kind, mdp, HORIZON, **options)
    for h, s, a, reward, t, ended in seen:
        agent.observe(steps(s, a, reward, t, terminated=ended), h)
    return agent


def regression(mdp, seen, q, sigma, lam, pooled):
    """Mean and covariance of theta_h for each h, by the dense formulas, from targets made of the drawn `q`."""
    out = []
    for h in range(HORIZON):
        mine = [x for x in seen if pooled or x[0] == h]
        phi, b = np.zeros((len(mine), mdp.n_rows)), np.zeros(len(mine))
        for i, (_, s, a, reward, t, ended) in enumerate(mine):
            phi[i, mdp.row_of(s, a)] = 1.0
            ahead = 0.0 if ended or h == HORIZON - 1 else q[h + 1, mdp.row_start[t] : mdp.row_start[t + 1]].max()
            b[i] = reward + mdp.discount * ahead
        covariance = np.linalg.inv(phi.T @ phi / sigma**2 + lam * np.eye(mdp.n_rows))
        out.append((covariance @ phi.T @ b / sigma**2, covariance))
    return out


@pytest.mark.parametrize("per_step", [True, False])
@pytest.mark.parametrize(("sigma", "lam"), [(1.0, 1.0), (0.1, 5.0), (3.0, 0.01)])
def test_draws_are_those_of_the_regression(sigma, lam, per_step):
    mdp = model()
    seen = episodes(mdp, np.random.default_rng(1), 10)
    agent = taught(RLSVI(sigma, lam, per_step=per_step), mdp, seen, seed=5)
    agent.act(np.array([0]), np.array([0]), 0)
    q = agent.q[0]
    normals = iter(stream(5, "values", 0).standard_normal(HORIZON * mdp.n_rows))
    fits = regression(mdp, seen, q, sigma, lam, not per_step)
    for h in range(HORIZON - 1, -1, -1):
        mean, covariance = fits[h]
        assert np.array_equal(covariance, np.diag(np.diag(covariance)))
        for row in range(mdp.n_rows):
            drawn = mean[row] + np.sqrt(covariance[row, row]) * next(normals)
            assert q[h, row] == pytest.approx(drawn, rel=1e-12, abs=1e-12)


def test_the_mean_is_shrunk_and_the_variance_known():
    """3 rewards of mean 2 at one pair: mean 6 / (3 + lam sigma^2), variance 1 / (3 / sigma^2 + lam)."""
    one = MDP.from_dense([[[1.0]]], 0.0, discount=1.0)
    n, sigma, lam = 8_000, 0.5, 2.0
    agent = start(RLSVI(sigma, lam), one, 1, replicates=n)
    zeros = np.zeros(n, dtype=int)
    for reward in (1.0, 2.0, 3.0):
        agent.observe(steps(zeros, zeros, np.full(n, reward), zeros, truncated=True), 0)
    agent.act(np.arange(n), zeros, 0)
    variance = 1.0 / (3.0 / sigma**2 + lam)
    # 5 standard errors: false alarms below 1e-6
    assert agent.q.mean() == pytest.approx(6.0 / (3.0 + lam * sigma**2), abs=5 * np.sqrt(variance / n))
    assert agent.q.var() == pytest.approx(variance, rel=5 * np.sqrt(2.0 / n))


def test_without_noise_it_is_least_squares_value_iteration():
    """Where everything was seen, sigma = 0 is dynamic programming on the observed frequencies and mean rewards."""
    mdp = model(2)
    seen = episodes(mdp, np.random.default_rng(3), 300)
    agent = taught(RLSVI(0.0, per_step=False), mdp, seen)
    agent.act(np.array([0]), np.array([0]), 0)
    v = np.zeros(4)
    for h in range(HORIZON - 1, -1, -1):
        new = np.zeros(4)
        for s in range(3):
            for a in range(2):
                mine = [(reward, t) for _, i, j, reward, t, _ in seen if (i, j) == (s, a)]
                value = np.mean([reward + mdp.discount * v[t] for reward, t in mine])
                assert agent.q[0, h, mdp.row_of(s, a)] == pytest.approx(value, abs=1e-12)
                new[s] = value if a == 0 else max(new[s], value)
        v = new
    near = taught(RLSVI(1e-5, per_step=False), mdp, seen)
    near.act(np.array([0]), np.array([0]), 0)
    assert near.q == pytest.approx(agent.q, abs=1e-4)


def test_what_was_never_tried_keeps_its_prior():
    agent = taught(RLSVI(0.0, precision=4.0), model(), [(0, 0, 0, 1.0, 3, True)], replicates=1, seed=0)
    agent.act(np.array([0]), np.array([0]), 0)
    assert agent.q[0, 0, 0] == 1.0
    drawn = stream(0, "values", 0).standard_normal(HORIZON * 6)
    assert agent.q[0, HORIZON - 1] == pytest.approx(drawn[:6] / 2.0, abs=1e-15)


def test_an_end_has_no_future():
    """A process that is said to have ended in a live state is not led on from there."""
    ended, going = (
        taught(RLSVI(0.0), model(), [(1, 1, 0, 5.0, 1, False), (0, 0, 0, 1.0, 1, flag)]) for flag in (True, False)
    )
    for agent in (ended, going):
        agent.act(np.array([0]), np.array([0]), 0)
    assert ended.q[0, 0, 0] == 1.0
    assert going.q[0, 0, 0] >= 1.0 + 0.9 * 5.0


def test_forgetting_fades_all_sums():
    mdp, seen = model(), [(0, 0, 0, 2.0, 1, False)]
    agent = taught(RLSVI(1.0, 1.0, forget=[1.0, 0.5]), mdp, [], replicates=2)
    for h, s, a, reward, t, ended in seen:
        agent.observe(steps([s, s], [a, a], [reward] * 2, [t, t], terminated=[ended] * 2), h)
    agent.end_episode()
    assert agent.n[:, 0, 0].tolist() == [1.0, 0.5]
    assert agent.reward[:, 0, 0].tolist() == [2.0, 1.0]
    assert agent.led.sum(axis=(1, 2)).tolist() == [1.0, 0.5]


def test_a_deep_sea_is_crossed_where_chance_fails():
    sea = urbe.library.deep_sea(10, seed=1)
    task, env = Task(urbe.Posterior.before(sea), 10), FiniteEnv.of(sea)
    deep = run(RLSVI(0.1), env, task, episodes=500, seed=0, replicates=10)
    assert (deep.reward[:, -100:].mean(axis=1) > 0.9).all()
    # by chance a dive succeeds once in 2^10; where all dives cost, Q-learning soon stops trying
    shallow = run(QLearning(), env, task, episodes=500, seed=0, replicates=10)
    assert np.median(shallow.reward[:, -100:].mean(axis=1)) < 0.01


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (RLSVI(-1.0), r"noise is -1, expected a number in \[0, inf\]"),
        (RLSVI(precision=0.0), r"precision is 0, expected a number in \(0, inf\]"),
        (RLSVI(forget=1.1), r"forget is 1\.1, expected a number in \[0, 1\]"),
    ],
)
def test_refuses_other_parameters(kind, message):
    with pytest.raises(ValueError, match=message):
        start(kind, model(), HORIZON)


def test_an_impossible_successor_is_named():
    with pytest.raises(ValueError, match="which the prior rules out"):
        start(RLSVI(), urbe.library.deep_sea(3), 3).observe(steps(0, 0, 0.0, 5), 0)
