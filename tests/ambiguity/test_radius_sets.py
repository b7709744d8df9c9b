"""Tests that hold for every ball around the model's rows, for any divergence."""

import numpy as np
import pytest

from oracles import divergences
from oracles.worst_case import one_row_model
from urbe.ambiguity.chi2 import Chi2Ball
from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l2 import L2Ball
from urbe.ambiguity.likelihood import LikelihoodRegion
from urbe.mdp.model import MDP
from urbe.workers import Workers

ORACLES = {
    Chi2Ball: divergences.chi2,
    KLBall: divergences.kl,
    L2Ball: divergences.l2,
    LikelihoodRegion: divergences.likelihood,
}

each_set = pytest.mark.parametrize("ball", ORACLES, ids=lambda ball: ball.__name__)


@each_set
def test_memory_of_earlier_sweeps_does_not_change_answers(ball):
    rng = np.random.default_rng(0)
    mdp = divergences.sparse_model(rng)
    for radius in (1e-12, 0.1, rng.uniform(0, 2, size=mdp.n_rows)):
        divergences.check_memory(ball(radius), mdp, rng)


@each_set
def test_values_fall_with_the_radius_from_the_mean_to_the_lowest_successor(ball):
    rng = np.random.default_rng(1)
    mdp = divergences.sparse_model(rng)
    divergences.check_radius_laws(ball, mdp, rng.normal(size=mdp.n_states), np.logspace(-15, 1, 33))


@each_set
def test_homogeneous_of_degree_one(ball):
    rng = np.random.default_rng(2)
    mdp = divergences.sparse_model(rng, discount=1.0).with_discount(1.0)
    nature, v = ball(0.2).bind(mdp), rng.normal(size=mdp.n_states)
    unit = nature.values(v) - mdp.rows.reward
    for scale in (1e-8, 3.0, 1e8):
        assert nature.values(scale * v) - mdp.rows.reward == pytest.approx(scale * unit, rel=1e-12, abs=1e-14)


@each_set
def test_long_rows_and_threads(ball):
    rng = np.random.default_rng(3)
    mdp = MDP.from_dense(rng.dirichlet(np.ones(300), size=(300, 8)), rng.normal(size=(300, 8)), discount=0.9)
    v = rng.normal(size=300)
    chosen = ball(rng.uniform(0, 1, size=mdp.n_rows))
    with Workers(2) as workers:
        assert np.array_equal(chosen.bind(mdp).values(v, workers=workers), chosen.bind(mdp).values(v))
    part = chosen.bind(mdp).take(np.arange(0, mdp.n_rows, 40))
    allowed = part.accuracy * np.abs(v).max()
    assert part.values(v) == pytest.approx(part.dual_bound(v), rel=0, abs=allowed + 1e-13)


@each_set
def test_rewards_of_successors_stay_inside_the_minimum(ball):
    transition = np.zeros((3, 1, 3))
    transition[0, 0] = [0.2, 0.3, 0.5]
    reward = np.zeros((3, 1, 3))
    reward[0, 0] = [3.0, 0.0, -1.0]
    mdp = MDP.from_dense(transition, reward, discount=0.5, terminal=[1, 2])
    expected = ORACLES[ball]([0.2, 0.3, 0.5], [4.0, 2.0, 3.0], 0.4)
    assert ball(0.4).bind(mdp).values(np.array([2.0, 4.0, 8.0]))[0] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("ball", [Chi2Ball, KLBall])
def test_mass_outside_the_row_is_infinitely_far(ball):
    nature = ball(0.5).bind(one_row_model([0.5, 0.5, 0.0]))
    stray = one_row_model([0.4, 0.4, 0.2]).rows
    assert nature.excess(stray)[0] >= 0.2


@each_set
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1,), r"radius is -0\.1 for state 0, action 0, expected a number in \[0, inf\]"),
        ((0.1, "some"), "support is 'some'"),
        ((float("nan"),), "radius is nan"),
    ],
)
def test_errors_name_what_is_wrong(ball, arguments, message):
    with pytest.raises(ValueError, match=message):
        ball(*arguments).bind(one_row_model([0.2, 0.3, 0.5]))
