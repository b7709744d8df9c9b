"""Likelihoods from prediction errors, by pen and paper."""

import numpy as np
import pytest

from urbe.belief.likelihoods import Evidence, endings, residuals, tolerance
from urbe.belief.state import Watch, begin, observe, used
from urbe.belief.switching import Switching

PREDICTED = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]])


def test_the_tolerance_is_half_the_distance_between_neighbours():
    np.testing.assert_allclose(tolerance(PREDICTED, 3.0, 0.1), [0.1 + 0.5 * 2.0, 0.1])
    np.testing.assert_allclose(tolerance(PREDICTED[:2], 2.0, 0.1), [0.1 + 0.5 * 2.0, 0.1])
    np.testing.assert_allclose(tolerance(PREDICTED[:1], 1.0, 0.1), [0.1, 0.1])


def test_noise_excuses_errors_and_not_surprise():
    """Member 0 is off by (1, 2), where (0.5, 1) is tolerated and the noise has the variances (0.75, 3)."""
    found = residuals(PREDICTED, np.array([1.0, 3.0]), np.array([0.5, 1.0]), np.array([0.75, 3.0]))
    assert found.log_likelihood[0] == pytest.approx(-0.5 * (1.0 / 1.0 + 4.0 / 4.0))
    assert found.surprise[0] == pytest.approx(0.5 * (1.0 / 0.25 - 1.0 + 4.0 / 1.0 - 1.0))


def test_who_is_wrong_about_an_end_is_less_likely():
    found = endings(np.array([True, False]), np.bool_(True), 0.1)
    np.testing.assert_allclose(found, np.log([0.9, 0.1]))
    np.testing.assert_allclose(endings(np.array([True, False]), np.bool_(False), 0.1), np.log([0.1, 0.9]))


def test_noise_and_surprise_are_means_at_first_and_fade_later():
    """The first observations count alike; later ones with one part in `memory`."""
    switching, watch, state = Switching(), Watch(limit=1e9, memory=3), begin(Switching(), 1, 1)
    seen = []
    for t, error in enumerate((1.0, 2.0, 4.0, 5.0)):
        square = np.array([[error**2]])
        evidence = residuals(np.array([[error]]), np.zeros(1), np.ones(1), state.noise)
        state, _ = observe(switching, watch, state, evidence, square)
        seen.append(error**2)
        if t < 3:
            assert state.noise[0] == pytest.approx(np.mean(seen))
            assert state.surprise == pytest.approx(np.mean([0.5 * (each - 1.0) for each in seen]))
    assert state.noise[0] == pytest.approx(np.mean(seen[:3]) * 2 / 3 + 25.0 / 3)


def test_noise_is_what_the_belief_expects_and_not_the_best_members():
    """The nearest member is nearest by chance too: its errors alone would make too little of the noise."""
    state = begin(Switching(), 2, 1)._replace(log_b=np.log([[0.4, 0.6]]))
    square = np.array([[1.0], [9.0]])
    state, _ = observe(Switching(), Watch(), state, Evidence(np.zeros(2), np.zeros(2)), square)
    assert state.noise[0] == pytest.approx(0.4 * 1.0 + 0.6 * 9.0)


def test_the_belief_is_widened_in_proportion_between_one_and_two_limits():
    switching = Switching(prior=(0.75, 0.25))
    state = begin(switching, 2)._replace(log_b=np.log([[0.1, 0.9]]))
    for surprise, share in ((3.0, 0.0), (4.5, 0.5), (6.0, 1.0), (60.0, 1.0)):
        found = used(switching, Watch(limit=3.0), state._replace(surprise=np.asarray(surprise)))
        np.testing.assert_allclose(found, (1 - share) * np.array([0.1, 0.9]) + share * np.array([0.75, 0.25]))
