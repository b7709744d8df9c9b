"""One CartPole cell: the same bits after any interruption, and tests confirmed by a second implementation."""

from dataclasses import replace

import numpy as np
import pytest

from urbe.deep import load
from urbe.deep.paper import cartpole, cartpole_set
from urbe.evaluation.episodes import draws
from urbe.gym import SimulatorEnv
from urbe.paper.cartpole import (
    ALL,
    CELLS,
    CHANGES,
    EPSILON,
    FRESH_SEEDS,
    LENGTHS,
    NOMINAL,
    TUNING_SEEDS,
    CartPoleCell,
)
from urbe.paper.cartpole import run as cartpole_run
from urbe.paper.cartpole.agents import changed, explores, in_tests, make, settings
from urbe.paper.cartpole.run import run
from urbe.runs.directory import RunDirectory

TINY = CartPoleCell("raw", "dqn", 3, 3_000, 2_000, "steps", (3.0,), test_episodes=4, hidden=(8,), batch=8)


class Killed(BaseException):
    """In place of a signal."""


@pytest.fixture(scope="module", autouse=True)
def small_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cartpole_run, "PART", 1_000)
        yield


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A cell that was never interrupted: its folder and its rows."""
    folder = tmp_path_factory.mktemp("done")
    return folder, run(TINY, folder)


def of(rows, metric, acting="greedy", change=0.0):
    return {row.at: row.value for row in rows if (row.metric, row.acting, row.change) == (metric, acting, change)}


def test_a_finished_folder_gives_the_same_rows_again(done):
    folder, rows = done
    assert run(TINY, folder) == rows


@pytest.mark.parametrize("saves", [2, 5, 6])  # in training, when the change begins, after it
def test_a_cell_that_is_interrupted_gives_the_rows_of_one_that_is_not(done, tmp_path, monkeypatch, saves):
    count, save = 0, RunDirectory.save

    def saving(self, *args, **kwargs):
        nonlocal count
        count += 1
        if count == saves:
            raise Killed
        save(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "save", saving)
        with pytest.raises(Killed):
            run(TINY, tmp_path)
    assert run(TINY, tmp_path) == done[1]


def test_a_cell_whose_tests_are_interrupted_goes_on(done, tmp_path, monkeypatch):
    def failing(*_args, **_kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(cartpole_run, "trace", failing)
        with pytest.raises(Killed):
            run(TINY, tmp_path)
    assert run(TINY, tmp_path) == done[1]


def test_test_returns_are_those_of_playing_step_by_step(done):
    folder, rows = done
    agent = load(folder / "run")
    expected = of(rows, "return")
    assert tuple(expected) == LENGTHS
    for length in (NOMINAL, 3.0):
        env, returns = SimulatorEnv(cartpole(), half_length=length), []
        for seed in draws(TINY.seed, TINY.test_episodes).seeds:
            seen, _ = env.reset(seed=int(seed))
            returns.append(0.0)
            for _ in range(200):
                seen, reward, terminated, _, _ = env.step(agent.predict(seen))
                returns[-1] += reward
                if terminated:
                    break
        assert expected[length] == pytest.approx(np.mean(returns), rel=1e-12)


def test_a_change_to_the_same_pole_is_no_change(done, tmp_path):
    cell = replace(TINY, changes=(NOMINAL,))
    rows = run(cell, tmp_path)
    longer = make(TINY).learn(TINY.training + TINY.after).history.episodes
    ended, returns = longer["step"], longer["return"]
    for metric, value in cartpole_run.windows(ended, returns, TINY.training, TINY.training + TINY.after)[0].items():
        assert of(rows, metric, "training", NOMINAL)[0.0] == value
    assert of(rows, "late", "training", NOMINAL) != of(done[1], "late", "training", 3.0)


def test_after_a_change_training_meets_the_new_pole_from_the_next_episode_on(done):
    folder, _ = done
    agent = load(folder / "run", env=cartpole(), schedule=changed(3.0))
    run = agent.trainer.state()
    assert run.world.schedule.params.half_length == np.float32(NOMINAL)  # the episode under way
    agent.learn(200)
    assert agent.trainer.state().world.schedule.params.half_length == 3.0
    newest = load(folder / "changed-3")
    assert newest.trainer.state().world.schedule.params.half_length == 3.0
    assert newest.step == TINY.training + TINY.after


def test_windows_are_quarters_and_the_episode_under_way_belongs_to_none():
    ended = np.array([50, 90, 100, 105, 110, 125, 130, 150, 176, 200], float)
    returns = np.array([1, 2, 3, 999, 5, 6, 7, 8, 9, 10], float)
    expected, since, earned = cartpole_run.windows(ended, returns, 100, 200)
    assert expected == {"before": 2.5, "early": 5.5, "late": 9.5, "after": 7.5}
    assert since.tolist() == [10, 25, 30, 50, 76, 100]
    assert 999 not in earned


def test_a_curve_holds_the_episodes_that_ended_in_each_bin():
    ended, returns = np.array([1.0, 1000, 1001, 2000, 2500]), np.array([1.0, 3, 5, 7, 100])
    assert cartpole_run.curve(ended, returns, 2_400) == [(1000.0, 2.0), (2000.0, 6.0)]


def test_recovery_is_the_first_time_that_recent_episodes_are_as_good_as_before_nearly():
    since = np.arange(1, 61) * 10.0
    step = np.r_[np.zeros(20), np.full(40, 100.0)]
    assert cartpole_run.recovery(100.0, since, step) == 290.0  # after 9 of 10
    assert cartpole_run.recovery(0.0, since, step) == 100.0
    assert cartpole_run.recovery(112.0, since, step) == float("inf")
    assert cartpole_run.recovery(1.0, since[:9], step[:9]) == float("inf")


def test_episodes_say_how_long_to_train_and_interruptions_do_not(tmp_path, monkeypatch):
    cell = replace(TINY, unit="episodes", training=60, after=20)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    rows = run(cell, whole)
    steps = of(rows, "steps", "training")[0.0]
    ended = load(whole / "run").history.episodes["step"]
    assert steps % cartpole_run.PART == 0
    assert of(rows, "ended", "training")[0.0] == len(ended) >= 60 > np.sum(ended <= steps - cartpole_run.PART)
    assert len(load(whole / "changed-3").history.episodes["step"]) >= len(ended) + 20

    count, save = 0, RunDirectory.save

    def saving(self, *args, **kwargs):
        nonlocal count
        save(self, *args, **kwargs)
        count += 1
        if count == 3:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "save", saving)
        with pytest.raises(Killed):
            run(cell, cut)
    assert run(cell, cut) == rows


def test_agents_differ_from_their_neighbours_in_one_thing():
    shared = {agent: settings(replace(TINY, agent=agent)) for agent in ALL}
    assert all(each == shared["dqn"] for each in shared.values())
    control, plain = (make(replace(TINY, agent=agent)).policy.settings for agent in ("dqn-epsilon", "dqn"))
    assert control.epsilon.last == EPSILON
    assert replace(control, epsilon=plain.epsilon) == plain
    assert [agent for agent in ALL if explores(agent)] == ["dqn-epsilon", "robust-dqn-epsilon"]
    assert settings(replace(TINY, inputs="scaled")).network.scale != (1.0,)


def test_controls_are_tested_with_random_actions_when_noisy_and_the_others_as_they_are():
    agent = make(TINY)
    assert in_tests(TINY, agent) is agent
    control = in_tests(replace(TINY, agent="dqn-epsilon"), agent)
    assert control.is_noisy
    assert control.rule.epsilon == EPSILON
    assert control.rule.rule == agent.policy.rule


def test_agents_of_a_seed_share_the_set_and_the_first_weights():
    plain, robust = (make(replace(TINY, agent=agent)) for agent in ("dqn", "robust-dqn"))
    assert robust.trainer.uncertain.describe() == cartpole_set(TINY.seed).describe()
    for a, b in zip(plain.policy.weights.q, robust.policy.weights.q, strict=True):
        np.testing.assert_array_equal(a.weight, b.weight)


def test_every_scale_has_fresh_seeds_only_and_medium_and_paper_ten_of_them():
    for scale, cells in CELLS.items():
        assert {cell.seed for cell in cells} <= set(FRESH_SEEDS)
        assert not {cell.seed for cell in cells} & set(TUNING_SEEDS)
        assert {cell.tuning_seeds for cell in cells} == {TUNING_SEEDS}
        agents = {(cell.inputs, cell.agent) for cell in cells}
        seeds = 3 if scale == "quick" else 10
        assert len(cells) == len(agents) * seeds
        assert all((cell.hidden, cell.batch, cell.test_episodes) == ((128, 128, 128), 256, 200) for cell in cells)
        for agent in ("robust-dqn", "dqn-urbe"):
            assert {cell.changes for cell in cells if (cell.inputs, cell.agent) == ("raw", agent)} == {CHANGES}
