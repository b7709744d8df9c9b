"""Balls around rows with zeros contain every feasible successor and no other."""

import numpy as np
import pytest

import urbe
from oracles.worst_case import l1
from urbe.planners import HoeffdingSets, plan
from urbe.planners.l1_balls import TRACE, ball_around
from urbe.posteriors import Posterior

MODEL = urbe.MDP.from_dense(np.full((4, 1, 4), 0.25), 0.0, discount=1.0, terminal=[1, 2, 3])
Z = np.array([5.0, 1.0, 4.0, -3.0])


@pytest.mark.parametrize("centre", [[0.4, 0.3, 0.3, 0.0], [1.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]])
@pytest.mark.parametrize("radius", [0.0, 0.3, 2.0])
def test_worst_case_is_that_of_the_ball_on_all_feasible_successors(centre, radius):
    model, ball = ball_around(Posterior.before(MODEL), np.array(centre), np.array([radius]))
    found = ball.bind(model).values(Z)[0]
    expected = l1(centre, Z, radius, receivers=np.ones(4, bool))
    # a trace more of radius moves that much mass, at most from the highest value to the lowest; 1e-6: the oracle's
    assert expected - 4 * TRACE * np.ptp(Z) - 1e-6 <= found <= expected + 1e-6


def test_impossible_successors_stay_out():
    posterior = Posterior.before(MODEL, [1.0, 1.0, 1.0, 0.0])
    model, ball = ball_around(posterior, np.array([0.5, 0.5, 0.0, 0.0]), np.array([2.0]))
    assert ball.bind(model).values(Z)[0] == pytest.approx(1.0, abs=1e-7)


def test_positive_centres_are_left_alone():
    centre = np.array([0.1, 0.2, 0.3, 0.4])
    model, ball = ball_around(Posterior.before(MODEL), centre, np.array([0.5]))
    assert np.array_equal(model.rows.probability, centre)
    assert ball.radius.tolist() == [0.5]


def test_successors_never_seen_are_possible_for_hoeffding_sets():
    # one coin that always showed heads: n = 50, K = 2, radius sqrt(2 / 50 log(2 / 0.1)); tails pay 0, heads 1
    mdp = urbe.MDP.from_dense([[[0.0, 0.5, 0.5]]] + [[[0.0, 0.0, 1.0]]] * 2, [[[0.0, 0.0, 1.0]]] * 3, discount=0.0,
                              terminal=[1, 2])  # fmt: skip
    posterior = Posterior.before(mdp).with_counts(np.array([0.0, 50.0]))
    found = plan(posterior, confidence=0.9, method=HoeffdingSets(), rng=np.random.default_rng(0))
    radius = np.sqrt(2.0 / 50.0 * np.log(2.0 / 0.1))
    assert found.worst_case[0] == pytest.approx(1.0 - radius / 2.0, abs=1e-6)
