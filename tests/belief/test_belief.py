"""Online beliefs: filtering, surprise, saving and loading."""

import numpy as np
import pytest

from urbe.belief import Belief, Switching, known_outcomes
from urbe.belief.state import Watch

COINS = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])


def test_the_true_member_wins_and_changes_are_followed():
    rng, belief = np.random.default_rng(0), Belief(3, Switching(hazard=0.01))
    for true in (0, 2):
        course = []
        for _ in range(200):
            belief.observe_outcome(COINS, int(rng.random() > COINS[true, 0]))
            course.append(belief.probability[true])
        assert np.mean(course[100:]) > 0.8
        assert belief.outside == 0.0


def test_surprise_has_mean_zero_under_the_true_member():
    evidence = [known_outcomes(COINS, np.asarray(j)) for j in (0, 1)]
    for k in range(3):
        mean = sum(COINS[k, j] * evidence[j].surprise[k] for j in (0, 1))
        assert mean == pytest.approx(0.0, abs=1e-12)


def predictions(x, gains):
    return np.array([[x, x + gain] for gain in gains])


def follow(belief, gain, gains, steps=200, seed=0, sigma=0.0):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        x = rng.normal()
        observed = np.array([x, x + gain]) + sigma * rng.normal(size=2)
        belief.observe_prediction(predictions(x, gains), observed, floor=1e-3)


def test_a_parameter_between_members_is_shared_by_its_neighbours_and_no_surprise():
    gains = (-1.0, -0.5, 0.5, 1.0)
    belief = Belief(4, Switching(hazard=0.01))
    follow(belief, 0.75, gains)
    np.testing.assert_allclose(belief.probability[2:], 0.5, atol=0.05)
    assert belief.outside == 0.0


def test_a_parameter_outside_the_set_is_noticed_and_widens_the_belief():
    belief = Belief(4, Switching(hazard=0.01))
    follow(belief, 4.0, (-1.0, -0.5, 0.5, 1.0))
    assert belief.filtered[3] > 0.9
    assert belief.outside == 1.0
    np.testing.assert_allclose(belief.probability, 0.25, atol=1e-6)
    follow(belief, 0.5, (-1.0, -0.5, 0.5, 1.0))
    assert belief.outside == 0.0
    assert belief.probability[2] > 0.9


def test_noise_is_learned_and_does_not_condemn_the_true_member():
    belief = Belief(2, Switching(hazard=0.01), Watch(limit=1e6))
    follow(belief, 0.5, (0.5, 1.5), sigma=1.0, steps=400)
    np.testing.assert_allclose(belief.state.noise, 1.0, rtol=0.7)
    assert belief.probability[0] > 0.8


def test_impossible_observations_are_surprising_and_lose_nothing():
    belief = Belief(2, Switching())
    belief.observe_outcome([[1.0, 0.0], [1.0, 0.0]], 1)
    assert belief.last_surprise == 100.0
    np.testing.assert_allclose(belief.filtered, 0.5)
    assert belief.outside == 1.0


def test_it_goes_on_from_its_arrays_bit_for_bit():
    one = Belief(2, Switching(hazard=(0.01, 0.1)))
    follow(one, 0.5, (0.5, 1.5), steps=10)
    other = Belief(2, Switching(hazard=(0.01, 0.1)))
    other.load_arrays(one.arrays())
    for belief in (one, other):
        follow(belief, 1.5, (0.5, 1.5), steps=5, seed=1)
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[name])
    with pytest.raises(ValueError, match="3 members"):
        Belief(3).load_arrays(one.arrays())


def test_episodes_are_when_members_change_if_so_assumed():
    belief = Belief(2, Switching(hazard=0.5, per="episode"))
    belief.observe_outcome([[1.0, 0.0], [0.0, 1.0]], 0)
    np.testing.assert_allclose(belief.probability, [1.0, 0.0])
    belief.new_episode()
    np.testing.assert_allclose(belief.probability, [0.75, 0.25])


def test_where_members_change_before_steps_an_end_changes_nothing():
    belief = Belief(2, Switching(hazard=0.5, per="step"))
    belief.observe_outcome([[1.0, 0.0], [0.0, 1.0]], 0)
    belief.new_episode()
    np.testing.assert_allclose(belief.probability, [1.0, 0.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.observe_outcome([[1.0]], 0), "probability has 1 rows, expected 2"),
        (lambda b: b.observe_outcome(COINS[:2], 2), "outcome is 2"),
        (lambda b: b.observe_prediction([[0.0]], [0.0, 1.0]), r"predicted has shape \(1, 1\), expected \(2, 2\)"),
        (lambda b: b.observe_outcome([[0.5, 0.6], [0.5, 0.5]], 0), r"probability\[0\]"),
        (lambda b: b.observe_prediction([[0.0], [1.0]], [0.0], floor=0.0), "floor is 0"),
        (lambda b: b.observe_prediction([[0.0], [1.0]], [0.0], parameters=0), "parameters is 0"),
        (lambda b: b.observe_prediction([[0.0], [1.0]], [0.0], ended_predicted=[True]), "ended_predicted has shape"),
        (lambda b: b.observe_prediction([[0.0], [1.0]], [0.0], ended_predicted=[True] * 2, flip=0.0), "flip is 0"),
        (lambda b: b.credible(1.0), "alpha is 1"),
        (lambda b: b.credible(1.5), "alpha is 1.5"),
    ],
)
def test_bad_observations_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(Belief(2))
