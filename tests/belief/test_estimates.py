"""Estimates under noise: against the joint normal distribution of all observations, and every path of members."""

from itertools import pairwise, product

import numpy as np
import pytest

from urbe.belief import Belief, Switching
from urbe.belief.estimates import (
    Estimates,
    Sensor,
    believed_state,
    corrected_estimates,
    first_estimates,
    mixed_estimates,
    predicted_estimates,
)

MEMBERS = np.array([[[1.0, 0.1], [0.0, 0.95]], [[0.9, 0.3], [-0.2, 1.0]], [[1.0, -0.2], [0.1, 0.8]]])
PROCESS, SENSOR = np.array([0.01, 0.04]), Sensor((0.3, 0.2))


def observations(member, steps, seed=0):
    draws = np.random.default_rng(seed)
    x, seen = np.array([1.0, -0.5]), []
    for _ in range(steps):
        seen.append(x + np.array([0.3, 0.2]) * draws.normal(size=2))
        x = MEMBERS[member] @ x + np.sqrt(PROCESS) * draws.normal(size=2)
    return np.array(seen)


def followed(belief, seen, matrices=MEMBERS):
    estimates = first_estimates(SENSOR, seen[0], len(matrices))
    for observed in seen[1:]:
        if belief.switching.per == "step":
            estimates = mixed_estimates(belief.switching, belief.state.log_b, estimates)
        predicted = np.einsum("kij,kj->ki", matrices, estimates.mean)
        estimates = predicted_estimates(predicted, matrices, PROCESS, estimates)
        estimates, evidence = corrected_estimates(SENSOR, estimates, observed)
        belief.observe(evidence)
    return estimates


def exact_log_likelihood(path, seen):
    """log p(y_2 .. y_T | y_1) from the joint normal of all observations, x_1 being normal around y_1 by its noise.

    `path` names the member of every step. Also the mean of the last state given all of them.
    """
    steps, size = len(seen), 2
    noise = SENSOR.covariance(size)
    mean, blocks = [seen[0]], [[noise]]
    for t, k in enumerate(path):
        a = MEMBERS[k]
        mean.append(a @ mean[-1])
        row = [a @ blocks[t][s] for s in range(t + 1)]
        blocks.append([*row, a @ blocks[t][t] @ a.T + np.diag(PROCESS)])
        for s in range(t + 1):
            blocks[s].append(row[s].T)
    states = np.block(blocks)
    later = slice(size, None)
    covariance = states[later, later] + np.kron(np.eye(steps - 1), noise)
    missed = (seen[1:] - np.array(mean)[1:]).ravel()
    solved = np.linalg.solve(covariance, missed)
    last = mean[-1] + states[-size:, later] @ solved
    return -0.5 * (missed @ solved + np.linalg.slogdet(2.0 * np.pi * covariance)[1]), last


@pytest.mark.parametrize("member", [0, 1, 2])
def test_beliefs_and_states_are_those_of_the_joint_normal_where_the_member_stays(member):
    seen = observations(member, 12, seed=member)
    belief = Belief(3, Switching(0.0, prior=(0.5, 0.3, 0.2)))
    estimates = followed(belief, seen)
    logs, lasts = zip(*(exact_log_likelihood((k,) * 11, seen) for k in range(3)), strict=True)
    mass = np.array([0.5, 0.3, 0.2]) * np.exp(np.array(logs) - max(logs))
    np.testing.assert_allclose(belief.filtered, mass / mass.sum(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(estimates.mean, lasts, rtol=1e-9)
    np.testing.assert_allclose(believed_state(belief.state.log_b, estimates), belief.filtered @ np.array(lasts))


def test_with_jumps_beliefs_are_close_to_those_over_every_path():
    """One normal per member in place of one per path is an approximation: exact after one step, close after six."""
    prior, hazard = np.array([0.5, 0.3, 0.2]), 0.2
    switching = Switching(hazard, prior=tuple(prior.tolist()))
    for steps, tolerance in ((2, 1e-9), (7, 0.03)):
        seen = observations(1, steps, seed=4)
        belief = Belief(3, switching)
        followed(belief, seen)
        mass = np.zeros(3)
        for path in product(range(3), repeat=steps - 1):
            chance = prior[path[0]]
            for one, other in pairwise(path):
                chance *= (1 - hazard) * (one == other) + hazard * prior[other]
            mass[path[-1]] += chance * np.exp(exact_log_likelihood(path, seen)[0])
        np.testing.assert_allclose(belief.filtered, mass / mass.sum(), atol=tolerance)


def test_mixing_keeps_the_mean_and_the_covariance_of_the_whole():
    """The law of total covariance, over where a member came from; nothing happens without a hazard."""
    draws = np.random.default_rng(0)
    factor = draws.normal(size=(3, 2, 2))
    estimates = Estimates(draws.normal(size=(3, 2)), factor @ np.swapaxes(factor, 1, 2))
    log_b = np.log(np.array([[0.1, 0.3, 0.1], [0.2, 0.1, 0.2]]))
    switching = Switching((0.1, 0.6), prior=(0.2, 0.0, 0.8))

    def whole(b, parts):
        mean = b @ parts.mean
        second = np.einsum("k,kde->de", b, parts.covariance + np.einsum("kd,ke->kde", parts.mean, parts.mean))
        return mean, second - np.outer(mean, mean)

    mixed = mixed_estimates(switching, log_b, estimates)
    after = np.exp(switching.jump(log_b)).sum(axis=0)
    for one, other in zip(whole(np.exp(log_b).sum(axis=0), estimates), whole(after, mixed), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    still = mixed_estimates(Switching((0.0, 0.0)), log_b, estimates)
    for one, other in zip(estimates, still, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_member_that_is_ruled_out_keeps_its_estimate():
    estimates = Estimates(np.array([[1.0], [5.0]]), np.ones((2, 1, 1)))
    with np.errstate(divide="ignore"):
        mixed = mixed_estimates(Switching(0.0), np.log(np.array([[1.0, 0.0]])), estimates)
    np.testing.assert_array_equal(mixed.mean, estimates.mean)


def test_surprise_is_zero_where_errors_are_as_large_as_expected():
    """Off by one standard deviation in both entries, 5 = sqrt(16 + 9): neither surprising nor reassuring."""
    ahead = Estimates(np.zeros((1, 2)), 16.0 * np.eye(2)[None])
    _, evidence = corrected_estimates(Sensor(3.0), ahead, np.array([5.0, -5.0]))
    np.testing.assert_allclose(evidence.surprise, [0.0], atol=1e-12)
    _, evidence = corrected_estimates(Sensor(3.0), ahead, np.array([10.0, -5.0]))
    np.testing.assert_allclose(evidence.surprise, [0.5 * (4.0 + 1.0 - 2.0)])


def test_bad_sensors_are_named():
    with pytest.raises(ValueError, match=r"deviation\[1\] is 0"):
        Sensor((0.1, 0.0))
    with pytest.raises(ValueError, match="deviation is -1"):
        Sensor(-1.0)
    with pytest.raises(ValueError, match="deviation has 2 entries, expected 3"):
        SENSOR.covariance(3)
