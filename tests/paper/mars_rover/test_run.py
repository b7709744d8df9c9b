"""Mars Rover: cells, exact test returns against plain Python, test policies as tables, and equal bits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, special, stats

from oracles.rover import rows as plain_rows
from urbe.deep.policies.policy import Policy
from urbe.deep.training.train import train
from urbe.paper.chapter import check_chapters
from urbe.paper.mars_rover import (
    CELLS,
    CHAPTER,
    EPSILON,
    GRID,
    MAIN,
    NOMINAL,
    QUICK_SEEDS,
    REPORTED_SEEDS,
    SMALL,
    TUNING_SEEDS,
    WIDE,
    WORLDS,
    MarsCell,
)
from urbe.paper.mars_rover import run as running
from urbe.paper.mars_rover.agents import make, members_of, rover_of
from urbe.paper.mars_rover.policies import one_hot, table, winning
from urbe.paper.mars_rover.run import _fared, run
from urbe.simulators import MarsRoverParams, performance, to_mdp
from urbe.solvers import solve

TINY = MarsCell("harsh", SMALL, "dqn-urbe", 100, 1_200, episodes=40)
STARTS = [10 * row + column for row in range(3) for column in range(3)]


def test_cells_are_named_and_seeds_are_fresh():
    check_chapters([CHAPTER])
    for scale, cells in CELLS.items():
        learners = [cell for cell in cells if cell.steps]
        seeds = {cell.seed for cell in learners}
        assert seeds == set(QUICK_SEEDS if scale == "quick" else REPORTED_SEEDS)
        assert scale == "quick" or not seeds & set(TUNING_SEEDS)
        assert {cell.tuning_seeds for cell in cells} == {TUNING_SEEDS}  # so that the manifest has them
        kinds = {(cell.world, cell.members, cell.agent) for cell in learners}
        assert len(kinds) * len(seeds) == len(learners)
        for world in {cell.world for cell in learners}:
            assert {agent for w, _, agent in kinds if w == world} >= set(MAIN)
    assert sum(cell.cost for cell in CELLS["quick"]) < 500.0
    assert min(cell.steps for cell in CELLS["paper"] if cell.steps) == 3_000 * 200


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_small_sets_are_the_largest_for_which_exact_planning_travels_from_every_start(world):
    rover = rover_of(world)

    def arrives(p):
        plan = solve(to_mdp(rover, MarsRoverParams(p), discount=0.9)).policy
        return performance(rover, MarsRoverParams(0.0), plan, discount=0.9).visits[rover.goal]

    assert arrives(world.small_end) == pytest.approx(1.0)
    assert arrives(world.small_end + 0.005) < 0.95


def test_sets_hold_the_nominal_member_and_follow_the_seed():
    small, wide = members_of(WORLDS["mild"], SMALL, 3), members_of(WORLDS["mild"], WIDE, 3)
    for members, end in ((small, 0.045), (wide, 1.0)):
        drawn = np.asarray(members.params.failure)
        assert len(drawn) == 16
        assert drawn[0] == np.float32(NOMINAL)
        assert 0.5 * end < drawn.max() < end
    assert not np.array_equal(small.params.failure, members_of(WORLDS["mild"], SMALL, 4).params.failure)


def played_by_hand(world, p, policy):
    """Expected return, chances and visits over 200 steps, by pushing probabilities through plain Python's rows."""
    rows = plain_rows(10, p, *world.rewards, rule=world.risk)
    here = np.zeros(101)
    here[STARTS] = 1.0 / len(STARTS)
    total, visits = 0.0, here.copy()
    for _ in range(200):
        after = np.zeros(101)
        for (state, action), successors in rows.items():
            for target, (probability, reward) in successors.items():
                moved = here[state] * policy[state, action] * probability
                total += moved * reward
                after[target] += moved
        here = after
        visits += here
    return total, visits


@pytest.mark.parametrize("name", ["harsh", "mild", "routes"])
def test_returns_chances_and_visits_are_those_of_plain_python(name, monkeypatch):
    monkeypatch.setattr(running, "GRID", (NOMINAL, 0.2))
    policy = np.random.default_rng(0).dirichlet((0.2, 1.0, 1.0, 0.2), size=101)
    greedy = one_hot(policy.argmax(axis=1), 4)
    cell = replace(TINY, world=name)
    found = list(_fared(cell, "noisy", rover_of(WORLDS[name]), policy, greedy))
    for p in (NOMINAL, 0.2):
        total, visits = played_by_hand(WORLDS[name], p, policy)
        mine = {(row.metric, row.state): row.value for row in found if row.at == p}
        assert mine["return", -1] == pytest.approx(total, rel=1e-9)
        assert mine["goal", -1] == pytest.approx(visits[99], rel=1e-9)
        np.testing.assert_allclose([mine.get(("visits", s), 0.0) for s in range(101)], visits, rtol=1e-9, atol=1e-15)
    (flipped,) = (row.value for row in found if row.metric == "flipped")
    _, visits = played_by_hand(WORLDS[name], NOMINAL, policy)
    assert flipped == pytest.approx(visits[:99] @ (1.0 - policy.max(axis=1))[:99] / visits[:99].sum(), rel=1e-9)


def test_the_optimum_is_that_of_plain_backward_induction_and_the_ceiling_is_the_shortest_path(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "GRID", (NOMINAL, 0.2))
    found = run(replace(TINY, members="none", agent="optimum", steps=0), tmp_path)
    mine = {(row.metric, row.at): row.value for row in found}
    for p in (NOMINAL, 0.2):
        rows = plain_rows(10, p, *WORLDS["harsh"].rewards)
        value = np.zeros(101)
        for _ in range(200):
            q = np.full((101, 4), -np.inf)
            q[99:] = 0.0
            for (state, action), successors in rows.items():
                q[state, action] = sum(x * (r + value[target]) for target, (x, r) in successors.items())
            value = q.max(axis=1)
        assert mine["return", p] == pytest.approx(value[STARTS].mean(), rel=1e-9)
        by_distance = np.mean([(1.0 - p) ** (18 - s // 10 - s % 10) for s in STARTS])
        assert mine["goal", p] == pytest.approx(by_distance, rel=1e-9)


def test_exact_robust_planning_waits_with_the_papers_set_and_travels_with_the_small_one(tmp_path):
    for members, total in ((WIDE, -0.96), (SMALL, 0.7767)):
        found = run(replace(TINY, members=members, agent="exact robust", steps=0), tmp_path)
        assert next(r.value for r in found if (r.metric, r.at) == ("return", NOMINAL)) == pytest.approx(total, abs=1e-4)


def test_winning_chances_are_closed_forms_and_integrals():
    rng = np.random.default_rng(1)
    q, sigma = rng.normal(size=(30, 2)), rng.uniform(0.01, 2.0, size=(30, 2))
    first = special.ndtr((q[:, 0] - q[:, 1]) / np.hypot(*sigma.T))
    np.testing.assert_allclose(winning(q, sigma)[:, 0], first, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(winning(np.zeros((1, 4)), np.full((1, 4), 0.3)), 0.25, rtol=1e-12)
    q, sigma = rng.normal(size=4), 10.0 ** rng.uniform(-2.0, 0.5, size=4)
    for a in range(4):
        others = [b for b in range(4) if b != a]
        laws = [stats.norm(q[b], sigma[b]) for b in range(4)]
        knots = sorted(q[b] + k * sigma[b] for b in range(4) for k in (-4.0, 0.0, 4.0))
        by_scipy, _ = integrate.quad(
            lambda x, a=a, others=others, laws=laws: laws[a].pdf(x) * np.prod([laws[b].cdf(x) for b in others]),
            q.min() - 30.0, q.max() + 30.0, points=knots, limit=500, epsabs=1e-12,
        )  # fmt: skip
        assert winning(q[None], sigma[None])[0, a] == pytest.approx(by_scipy, abs=1e-9)


def test_winning_without_noise_is_the_first_of_the_best():
    q = np.array([[1.0, 2.0, 2.0, 0.0], [3.0, 0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(winning(q, np.zeros_like(q)), [[0, 1, 0, 0], [1, 0, 0, 0]])
    # one action without noise: it wins when all others stay below, independently
    q, sigma = np.array([[0.0, 0.5, -1.0]]), np.array([[0.0, 1.0, 2.0]])
    still = special.ndtr(-0.5) * special.ndtr(0.5)
    assert winning(q, sigma)[0, 0] == pytest.approx(still, rel=1e-11)
    assert winning(q, sigma).sum() == pytest.approx(1.0, rel=1e-15)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A tiny cell, run."""
    folder = tmp_path_factory.mktemp("cell")
    return run(TINY, folder), folder


def test_the_same_cell_gives_the_same_rows(finished, tmp_path_factory):
    rows, folder = finished
    assert rows == run(TINY, tmp_path_factory.mktemp("again"))
    assert rows == run(TINY, folder)  # done already: nothing is learned twice
    other = run(replace(TINY, seed=101), tmp_path_factory.mktemp("other"))
    assert [row._replace(seed=0) for row in other] != [row._replace(seed=0) for row in rows]


def test_an_interrupted_cell_ends_with_the_same_rows(finished, tmp_path):
    agent = make(TINY.agent, WORLDS[TINY.world], TINY.members, TINY.seed)
    train(agent, tmp_path / "run", 900, checkpoint_every=300)
    assert run(TINY, tmp_path) == finished[0]


def test_rows_tell_what_they_claim(finished):
    rows, _ = finished
    assert {row.acting for row in rows} == {"", "greedy", "noisy"}
    by_metric = {metric: [row for row in rows if row.metric == metric] for metric in {row.metric for row in rows}}
    assert [row.value for row in by_metric["steps"]] == [TINY.steps]
    lines = (finished[1] / "run/episodes.csv").read_text().splitlines()
    assert [row.value for row in by_metric["episodes"]] == [len(lines) - 1]
    for metric, ways in (("return", 2), ("goal", 2), ("sampled", 1), ("sampled error", 1)):
        assert len(by_metric[metric]) == ways * len(GRID)
    exact = {row.at: row.value for row in by_metric["return"] if row.acting == "noisy"}
    error = {row.at: row.value for row in by_metric["sampled error"]}
    for row in by_metric["sampled"]:  # five standard errors, and one episode of 40 that ends as no other did
        assert abs(row.value - exact[row.at]) <= 5.0 * error[row.at] + (1.0 + 0.96) / 40
    (greedy,) = (row.value for row in by_metric["flipped"] if row.acting == "greedy")
    assert greedy == 0.0


def test_tables_of_test_policies(finished):
    agent = make(TINY.agent, WORLDS[TINY.world], TINY.members, TINY.seed)
    train(agent, finished[1] / "run", TINY.steps)
    rover = rover_of(WORLDS["harsh"])
    greedy = table(agent.policy, rover, "greedy", EPSILON)
    np.testing.assert_array_equal(greedy.sum(axis=1), 1.0)
    mixed = table(agent.policy, rover, "epsilon", 0.2)
    np.testing.assert_allclose(mixed, 0.8 * greedy + 0.05, rtol=1e-15)
    noisy = table(agent.policy, rover, "noisy", EPSILON)
    np.testing.assert_allclose(noisy.sum(axis=1), 1.0, rtol=1e-14)
    # the policy itself, asked many times: 20000 draws, six standard errors
    seen = np.repeat(np.asarray(rover.observe(np.int32(0)))[None], 20_000, axis=0)
    asked = np.bincount(agent.policy.predict(seen, np.random.default_rng(0)), minlength=4) / 20_000
    np.testing.assert_allclose(asked, noisy[0], atol=6.0 * 0.5 / np.sqrt(20_000))
    bare = Policy(agent.policy.settings, agent.policy.weights._replace(head=None))
    with pytest.raises(ValueError, match="no uncertainty head"):
        table(bare, rover, "noisy", EPSILON)
