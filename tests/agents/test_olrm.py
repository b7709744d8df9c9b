"""OLRM: plans with no and with all pairs flagged, its check step by step, and which pairs are flagged."""

import numpy as np
import pytest

import urbe
from oracles.plans import random_model
from urbe.agents import OLRM, UCRL2, Criterion, Run, Steps, Streams, Task
from urbe.envs import FiniteEnv, Phase
from urbe.mdp.rows import Rows
from urbe.posteriors.beliefs import Visit

ONE = np.zeros(1, dtype=int)
NEVER = 1e300
SEVEN = urbe.library.seven_states


def start(kind, model, horizon, replicates=1):
    return kind.start(Task(urbe.Posterior.before(model), horizon), Streams(0, np.arange(replicates)))


def taught(kind, model, horizon, rng, n=200, plans=1):
    """An agent that has seen n transitions from all over the model, and planned; its frequencies and visits."""
    agent = start(kind, model, horizon)
    entries = rng.integers(model.rows.n_entries, size=n)
    for entry in entries:
        row = model.rows.entry_row[entry]
        agent.known.transitions.observe(Visit(ONE, np.array([row]), np.array([entry]), ONE))
    for _ in range(plans):
        agent.strategy.plan(agent.known, ONE)
    counts = np.bincount(entries, minlength=model.rows.n_entries).astype(float)
    visits = model.rows.row_sums(counts)
    seen = visits[model.rows.entry_row] > 0.0
    p = np.where(seen, counts, 1.0)
    return agent.strategy, p / model.rows.row_sums(p)[model.rows.entry_row], visits


def centred(model, p):
    rows = model.rows
    return model.with_rows(Rows(rows.n_states, rows.entry_start, rows.successor, np.maximum(p, 1e-200), rows.reward))


@pytest.mark.parametrize("radius", [0.0, 0.4, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_flagged_everywhere_it_is_robust_dynamic_programming(seed, radius):
    """With a radius of zero (nature has no choice) it is plain dynamic programming on the frequencies."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, rewards_successors=seed == 2)
    strategy, p, _ = taught(OLRM(radii=(radius,), flagged=True), model, 5, rng)
    nature = urbe.L1Ball(radius)
    solution = urbe.solve(centred(model, p), nature, urbe.BackwardInduction(5))
    np.testing.assert_allclose(strategy._plan.v[0], solution.value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("singleton", [{}, {"radii": (0.0,)}, {"sets": (urbe.L1Ball(0.0),)}])
@pytest.mark.parametrize("seed", range(3))
def test_flagged_nowhere_it_is_an_optimistic_planner(seed, singleton):
    """Also if the sets of flagged pairs are single kernels."""
    rng = np.random.default_rng(seed)
    model, horizon, delta, scale = random_model(rng, rewards_successors=seed == 2), 4, 0.1, 0.05
    strategy, p, visits = taught(OLRM(scale, NEVER, delta=delta, **singleton), model, horizon, rng, n=12, plans=3)
    rows, r = model.rows, model.rows.reward
    most, least = max(r.max(), 0.0), min(r.min(), 0.0)
    log = np.log(2 * model.n_states * model.n_actions * horizon * 3**2 / delta)
    v = np.zeros(model.n_states)
    for h in range(horizon - 1, -1, -1):
        cap = sum(most * model.discount**i for i in range(horizon - h))
        new = np.zeros(model.n_states)
        for s in np.flatnonzero(~model.terminal):
            q = []
            for k in range(model.row_start[s], model.row_start[s + 1]):
                at = slice(rows.entry_start[k], rows.entry_start[k + 1])
                z = model.discount * v[rows.successor[at]] + (r[at] if rows.rewards_successors else r[k])
                bonus = scale * horizon * (most - least) * np.sqrt(2.0 / visits[k] * log) if visits[k] else np.inf
                q.append(min(p[at] @ z + bonus, cap))
            new[s] = max(q)
        v = new
        np.testing.assert_allclose(strategy._plan.v[0, h], v, rtol=1e-11, atol=1e-12)


def test_known_adversaries_alone_are_robust():
    rng = np.random.default_rng(0)
    model = random_model(rng)
    flags = {(int(s), int(a)): bool(k == 1) for k, (s, a) in enumerate(zip(model.row_state, model.action, strict=True))}
    strategy, p, _ = taught(OLRM(bonus_scale=0.0, flagged=flags), model, 5, rng)
    radius = np.where(np.arange(model.n_rows) == 1, 2.0, 0.0)
    solution = urbe.solve(centred(model, p), urbe.L1Ball(radius), urbe.BackwardInduction(5))
    np.testing.assert_allclose(strategy._plan.v[0], solution.value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("successors", [False, True])
def test_the_check_step_by_step(successors):
    """Disappointments are added up in plain Python; levels rise exactly when they exceed what is allowed."""
    rng = np.random.default_rng(1)
    model, horizon, delta, scale = random_model(rng, rewards_successors=successors, ends=False), 3, 0.1, 0.001
    radii = (0.0, 0.5, 2.0)
    kind = OLRM(bonus_scale=0.01, check_scale=scale, radii=radii[1:], delta=delta)
    agent = start(kind, model, horizon)
    strategy, rows, r = agent.strategy, model.rows, model.rows.reward
    reach = horizon * (max(r.max(), 0.0) - min(r.min(), 0.0))
    gap, m, level = np.zeros((3, model.n_rows))
    state, no, seen = np.zeros(1, dtype=int), np.zeros(1, dtype=bool), 0
    for t in range(400):
        step = t % horizon
        action = agent.act(ONE, state, step)
        k = model.row_of(int(state[0]), int(action[0]))
        at = slice(rows.entry_start[k], rows.entry_start[k + 1])
        v, p = strategy._plan.v[0, step + 1].copy(), strategy.epochs.alpha[0, 0, at] / strategy.epochs.total[0, 0, k]
        z = model.discount * v[rows.successor[at]] + (r[at] if successors else 0.0)
        left, expected, order = radii[int(level[k])] / 2.0, p.copy(), np.argsort(-z, kind="stable")
        low = z.argmin()
        for j in order:  # mass goes from the best to the worst
            moved = min(left, expected[j]) if z[j] > z[low] else 0.0
            expected[j] -= moved
            expected[low] += moved
            left -= moved
        bad = int(np.argmin(z)) if t % 2 else int(rng.integers(len(z)))
        entry = rows.entry_start[k] + bad
        following = np.array([rows.successor[entry]])
        reward = np.array([r[entry] if successors else r[k]])
        agent.observe(Steps(ONE, state, action, reward, following, no, no), step)
        gap[k] += expected @ z - z[bad]
        m[k] += 1
        allowed = (
            scale
            * 5
            * reach
            * np.sqrt(m[k] * model.n_states * np.log(4 * model.n_states * model.n_actions * horizon * m[k] / delta))
        )
        if gap[k] > allowed and level[k] < 2:
            level[k], gap[k], m[k], seen = level[k] + 1, 0.0, 0, seen + 1
            assert strategy.epochs.over[0]
        assert np.array_equal(strategy.level[0], level)
        state = following if step < horizon - 1 else rng.integers(model.n_states, size=1)
        if step == horizon - 1:
            agent.end_episode()
    assert seen >= 2


@pytest.mark.parametrize(("visits", "flagged"), [(29_000, False), (31_000, True)])
def test_with_the_constants_of_theory_full_disappointments_are_noticed_after_3e4_visits(visits, flagged):
    """T = 3, S = 7, A = 4, delta = 0.05: m > 5 T sqrt(m S log(4 S A T m / delta)) from m = 30,114 on."""
    strategy = start(OLRM(delta=0.05), SEVEN(0.8), 3).strategy
    strategy.plan(start(OLRM(), SEVEN(0.8), 3).known, ONE)
    gamble = 1
    state = strategy.state()
    state["gap"][0, gamble] = state["checks"][0, gamble] = visits - 1
    strategy.load(state)
    strategy._shortfall = lambda visit: np.ones(len(visit.row))  # what was planned never comes
    strategy.observe(Visit(ONE, np.array([gamble]), SEVEN(0.8).rows.entry_start[[gamble]], ONE))
    assert strategy.level[0].tolist() == [int(flagged and row == gamble) for row in range(7)]


def phases(kind, chances, n, replicates=20):
    env = FiniteEnv(tuple(Phase(SEVEN(p), n) for p in chances))
    task = Task(urbe.Posterior.before(env.feasible), 3)
    run = Run(kind, env, task, episodes=n * len(chances), seed=0, replicates=np.arange(replicates))
    while not run.done:
        run.episode()
    return run.record.reward.reshape(replicates, len(chances), n), run.agent.strategy


def test_a_world_that_behaves_is_never_flagged():
    """Scales far below those of theory still leave it alone: 20 replicates, 600 episodes."""
    reward, strategy = phases(OLRM(bonus_scale=0.05, check_scale=0.1), (0.6,), 600)
    assert not strategy.level.any()
    assert reward[:, 0, 300:].mean() == pytest.approx(0.6, abs=0.03)


def test_an_adversary_is_found_and_avoided():
    """After a benign phase gambles never pay again: flags come, and then the safe reward."""
    chances, n = (0.8, 0.0), 300
    reward, strategy = phases(OLRM(bonus_scale=0.01, check_scale=0.02), chances, n)
    assert reward[:, 0, 100:].mean() > 0.75
    assert strategy.level.any(axis=1).all()
    assert reward[:, 1, 150:].mean() > 0.1
    assert reward[:, 1, 250:] == pytest.approx(0.14)  # every replicate takes the sure reward in the end
    other, _ = phases(UCRL2(0.01, criterion=Criterion.EPISODE), chances, n)
    assert other[:, 1, 150:].mean() < 0.02  # its frequencies are of both phases


def test_flags_stay_when_the_world_recovers():
    _, before = phases(OLRM(bonus_scale=0.01, check_scale=0.02), (0.8, 0.0), 300)
    reward, after = phases(OLRM(bonus_scale=0.01, check_scale=0.02), (0.8, 0.0, 0.9), 300)
    assert (after.level >= before.level).all()
    assert reward[:, 2].mean() < 0.5


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (OLRM(radii=(2.5,)), "radii is 2.5, expected a number in"),
        (OLRM(radii=(1.0, 0.5)), "expected increasing radii"),
        (OLRM(delta=1.0), r"delta is 1, expected a number in \(0, 1\)"),
        (OLRM(bonus_scale=-1.0), "bonus_scale is -1"),
        (OLRM(check_scale=[1.0, 2.0]), "check_scale has shape"),
        (OLRM(flagged=[True]), r"flagged has shape \(1,\)"),
    ],
)
def test_refusals(kind, message):
    with pytest.raises(ValueError, match=message):
        start(kind, SEVEN(0.5), 3)


def test_uncertain_rewards_are_refused():
    task = Task(urbe.Posterior.before(SEVEN(0.5), 1.0, urbe.NormalGamma()), 3)
    with pytest.raises(ValueError, match="rewards of the task are uncertain"):
        OLRM().start(task, Streams(0, np.arange(1)))
