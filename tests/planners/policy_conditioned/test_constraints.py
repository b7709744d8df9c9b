"""Moments from models and from logs, and logs that are errors."""

import numpy as np
import pytest

import urbe
from urbe.mdp.library import distance_grid
from urbe.paper.table_one.grid_study import direction_features, uniform_log
from urbe.planners.policy_conditioned import MomentConstraints

RIVER = urbe.library.riverswim(4, discount=1.0)


def test_moments_of_a_model_are_those_of_many_runs():
    grid = distance_grid(4)
    phi, even = direction_features(grid, 4), np.full((16, 4), 0.25)
    log = uniform_log(grid, 6, 20_000, np.random.default_rng(0))
    exact = MomentConstraints.of(grid, phi, even, 6)
    found = MomentConstraints.fit(log, grid, phi, 6, reference=even, confidence=1 - 1e-6)
    assert (np.abs(found.moments - exact.moments) <= found.slack).all()
    assert found.slack.max() < 0.06
    assert np.isclose(exact.moments.sum(), 6.0)


def test_slack_covers_the_truth_as_often_as_it_says():
    """300 logs of 50 runs, 90 % for all moments at once: fewer than 54 misses but for a chance of 1e-4."""
    grid = distance_grid(3)
    phi, even = direction_features(grid, 3), np.full((9, 4), 0.25)
    exact = MomentConstraints.of(grid, phi, even, 4).moments
    missed = 0
    for seed in range(300):
        log = uniform_log(grid, 4, 50, np.random.default_rng(seed))
        found = MomentConstraints.fit(log, grid, phi, 4, reference=even, confidence=0.9)
        missed += bool((np.abs(found.moments - exact) > found.slack).any())
    assert missed < 54


def test_a_log_is_read_by_episode_and_step():
    log = urbe.Transitions(
        state=[1, 0, 0, 1, 3], action=[1, 1, 1, 0, 1], reward=np.zeros(5), next_state=[2, 1, 0, 0, 3],
        episode=[7, 7, 9, 9, 7], step=[1, 0, 1, 0, 2],
    )  # fmt: skip
    states = np.eye(4)[:, None, :].repeat(2, axis=1)
    found = MomentConstraints.fit(log, RIVER, states, 2)
    assert found.moments.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert np.asarray(found.reference)[1].tolist() == [0.5, 0.5]
    assert np.asarray(found.reference)[0].tolist() == [0.0, 1.0]
    assert np.asarray(found.reference)[2].tolist() == [0.5, 0.5]  # never seen


def test_early_ends_are_no_gaps():
    log = urbe.Transitions([0, 0], [1, 1], [0.0, 0.0], [1, 1], terminated=[1, 0], episode=[0, 1])
    with pytest.raises(ValueError, match=r"1 steps of episode 1, which did not terminate, expected horizon=2\. 1 of 2"):
        MomentConstraints.fit(log, RIVER, np.ones((4, 2, 1)), 2)
    assert MomentConstraints.fit(log.select([0]), RIVER, np.ones((4, 2, 1)), 2).moments.tolist() == [1.0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"episode": None}, "log has no column episode"),
        ({"next_state": [3]}, r"log\[0\] goes from state 0 by action 1 to state 3"),
        ({"state": [9]}, "log has the state 9"),
    ],
)
def test_refusals(columns, message):
    given = {"state": [0], "action": [1], "reward": [0.0], "next_state": [1], "episode": [0]} | columns
    with pytest.raises(ValueError, match=message):
        MomentConstraints.fit(urbe.Transitions(**given), RIVER, np.ones((4, 2, 1)), 1)
    one = urbe.Transitions(state=[0], action=[1], reward=[0.0], next_state=[1], episode=[0])
    with pytest.raises(ValueError, match="log has one trajectory"):
        MomentConstraints.fit(one, RIVER, np.ones((4, 2, 1)), 1, confidence=0.9)
