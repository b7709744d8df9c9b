"""Continuous observations discretised into cells; rollouts and Minari's datasets as logs."""

import re
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import urbe
from urbe.gym import Cells, from_minari, record


def test_cells_are_where_they_should_be():
    cells = Cells(low=[0.0, -2.0], high=[1.0, 2.0], count=[4, 8])
    rng = np.random.default_rng(0)
    points = rng.uniform([-0.2, -2.5], [1.2, 2.5], size=(500, 2))
    for point, number in zip(points, cells.number(points), strict=True):
        column = min(max(int((point[0] - 0.0) // 0.25), 0), 3)
        row = min(max(int((point[1] + 2.0) // 0.5), 0), 7)
        assert number == 8 * column + row
        assert cells.centre(np.array([number]))[0] == pytest.approx([0.125 + 0.25 * column, -1.75 + 0.5 * row])


def test_the_error_is_stated():
    cells = Cells([0.0], [1.0], 2, names=["height"])
    assert cells.error_notes([[0.25], [0.35], [2.0], [0.75]]) == (
        "Observations fall into 2 cells and differ from their centres by: height 0.338 on average, 1.25 at most. "
        "1 of 4 observations is outside of the box.",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0], [0.0], 3), "expected as many numbers in both, low below high"),
        (([0.0], [1.0, 2.0], 3), "expected as many numbers in both"),
        (([0.0], [1.0], 0), "count[0] is 0, expected at least 1"),
        (([0.0, 0.0], [1.0, 1.0], [2, 3, 4]), "count has 3 entries, expected a number or 2"),
        (([0.0] * 9, [1.0] * 9, 20), "5.12e+11 cells; expected fewer"),
        (([0.0], [1.0], 3, ["a", "b"]), "names has 2 entries, expected 1"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Cells(*arguments)


def test_cells_over_a_space_need_finite_ends():
    space = Box(np.array([0.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64)
    with pytest.raises(ValueError, match="Dimension 1 of the space goes from -inf to inf, expected finite ends"):
        Cells.over(space, 3)
    assert Cells.over(space, 3, low=[0, -1], high=[1, 1]).number([[0.5, 0.0]]).tolist() == [4]


def test_a_rollout_of_cart_pole_becomes_a_model():
    cells = Cells([-2.4, -3.0, -0.21, -3.0], [2.4, 3.0, 0.21, 3.0], [1, 3, 4, 3], names=["x", "v", "angle", "spin"])
    with gymnasium.make("CartPole-v1") as env:
        log = record(env, episodes=40, seed=0, cells=cells)
        again = record(env, episodes=40, seed=0, cells=cells)
        other = record(env, episodes=40, seed=1, cells=cells)
    assert log.state.tolist() == again.state.tolist()
    assert log.state.tolist() != other.state.tolist()
    assert log.labels.states[-1] == "(end)"
    assert log.terminated.sum() == 40
    assert (log.next_state[log.terminated] == len(log.labels.states) - 1).all()
    assert log.notes[0].startswith("Observations fall into 1 x 3 x 4 x 3 cells and differ from their centres by: x ")
    posterior = urbe.Posterior.fit(log, discount=0.95)
    assert posterior.model.labels == log.labels
    assert posterior.model.terminal.tolist() == [False] * (posterior.model.n_states - 1) + [True]


def test_policies_of_cells_see_observations():
    cells = Cells([-2.4, -3.0, -0.21, -3.0], [2.4, 3.0, 0.21, 3.0], 3)
    with gymnasium.make("CartPole-v1") as env:
        long = record(env, lambda _, x: int(x[2] + 0.5 * x[3] > 0.0), episodes=2, seed=0, cells=cells, most_steps=150)
        assert len(long) == 300
        with pytest.raises(ValueError, match="policy is an array, expected None or a function"):
            record(env, [0, 1], episodes=1, seed=0, cells=cells)
        with pytest.raises(ValueError, match="observation_space is Box"):
            record(env, episodes=1, seed=0)


TWO = Discrete(2, start=1)


def dataset(observation_space, episodes, actions=TWO):
    """What Minari's datasets offer."""
    made = [
        SimpleNamespace(
            observations=np.array(seen), actions=np.array(acts), rewards=np.arange(len(acts), dtype=float),
            terminations=np.array([False] * (len(acts) - 1) + [ends]),
            truncations=np.array([False] * (len(acts) - 1) + [not ends]),
        )
        for seen, acts, ends in episodes
    ]  # fmt: skip
    return SimpleNamespace(
        observation_space=observation_space, action_space=actions, iterate_episodes=lambda: iter(made)
    )


def test_a_dataset_of_numbers():
    log = from_minari(dataset(Discrete(9, start=5), [([5, 6, 8], [1, 2], True), ([6, 5], [2], False)]))
    assert log.state.tolist() == [0, 1, 1]
    assert log.next_state.tolist() == [1, 3, 0]
    assert log.action.tolist() == [0, 1, 1]
    assert log.terminated.tolist() == [False, True, False]
    assert log.episode.tolist() == [0, 0, 1]
    assert log.step.tolist() == [0, 1, 0]


def test_ends_in_states_that_are_passed_through_have_a_state_of_their_own():
    log = from_minari(dataset(Discrete(4), [([0, 1], [1], True), ([1, 2], [1], False)]))
    assert log.next_state.tolist() == [4, 2]


def test_a_dataset_of_vectors():
    space = Box(0.0, 1.0, (2,))
    data = dataset(
        space, [([[0.1, 0.1], [0.9, 0.1], [0.9, 0.9]], [1, 2], True), ([[0.2, 0.2], [0.8, 0.2]], [1], False)]
    )
    log = from_minari(data, cells=Cells.over(space, 2))
    assert log.labels.states == ("(0.25, 0.25)", "(0.75, 0.25)", "(end)")
    assert log.state.tolist() == [0, 1, 0]
    assert log.next_state.tolist() == [1, 2, 1]
    assert len(from_minari(data, cells=Cells.over(space, 2), most_episodes=1)) == 2


@pytest.mark.parametrize(
    ("data", "cells", "message"),
    [
        (dataset(Box(0.0, 1.0, (2,)), []), None, "neither Discrete nor discretised by cells; expected cells=urbe.gym."),
        (
            dataset(Discrete(2), []),
            Cells([0.0], [1.0], 2),
            "observation_space is Discrete(2), Discrete; expected no c",
        ),
        (dataset(Discrete(2), [], Box(0.0, 1.0)), None, "expected Discrete(n): a log has finitely many actions."),
        (dataset(Discrete(2), []), None, "There are no episodes, expected at least one with a step."),
    ],
)
def test_datasets_that_are_refused(data, cells, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        from_minari(data, cells=cells)


def test_ids_of_datasets_need_minari(monkeypatch):
    monkeypatch.setattr("urbe.extras.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"Minari datasets by id need minari, .*urbe\[minari\]"):
        from_minari("D4RL/pen/human-v2")


def test_episodes_of_minari_itself():
    minari = pytest.importorskip("minari")
    episode = minari.EpisodeData(
        id=0, observations=np.array([0, 1]), actions=np.array([1]), rewards=np.array([2.0]),
        terminations=np.array([True]), truncations=np.array([False]), infos={},
    )  # fmt: skip
    data = SimpleNamespace(
        observation_space=Discrete(2), action_space=Discrete(2), iterate_episodes=lambda: iter([episode])
    )
    assert from_minari(data).reward.tolist() == [2.0]
