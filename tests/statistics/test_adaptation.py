"""Measures of adaptation: pen and paper, plain loops, errors."""

import numpy as np
import pytest

from urbe.statistics import advantage_share, first_episodes, phase_means, recovery_times, relative_regret, worst_lives

RETURNS = np.array([[1.0, 0.0, 0.5, 1.0], [1.0, 1.0, 0.0, 0.0]])


def test_phases_by_hand():
    assert phase_means(RETURNS, (1, 3)).tolist() == [1.0, 2.5 / 6]
    assert first_episodes(RETURNS, (1, 3)).tolist() == [1.0, 0.5]
    assert recovery_times(RETURNS, (1, 3), [1.0, 0.5]).tolist() == [[0, 1], [0, 0]]
    assert recovery_times(RETURNS, (1, 3), [2.0, 1.0]).tolist() == [[1, 2], [1, 0]]
    assert recovery_times(RETURNS, (1, 3), [1.0, 0.5], window=2).tolist() == [[0, 1], [0, 0]]
    assert recovery_times(RETURNS, (4,), [0.75], window=2).tolist() == [[2], [0]]


@pytest.mark.parametrize("seed", range(20))
def test_recovery_is_the_first_window_that_reaches_the_target(seed):
    rng = np.random.default_rng(seed)
    phases = rng.integers(1, 9, size=3)
    returns, targets, window = rng.normal(size=(4, phases.sum())), rng.normal(size=3), int(rng.integers(1, 4))
    found = recovery_times(returns, phases.tolist(), targets, window)
    for n, life in enumerate(returns):
        first = 0
        for k, length in enumerate(phases):
            part, size = life[first : first + length], min(window, length)
            fine = [i for i in range(length - size + 1) if sum(part[i : i + size]) / size >= targets[k]]
            assert found[n, k] == (fine[0] if fine else length)
            first += length


def test_the_worst_lives_are_whole_lives():
    returns = np.repeat(np.arange(20.0)[:, None], 3, axis=1)
    assert worst_lives(returns, 0.05) == 0.0
    assert worst_lives(returns, 0.1) == pytest.approx(0.5)
    assert worst_lives(returns, 1.0) == pytest.approx(9.5)


def test_shares_and_regrets():
    assert advantage_share([[0.3, 0.5]], [[0.8, 0.8]], [[-0.2, -0.2]]) == pytest.approx(0.6)
    assert advantage_share([[-0.3]], [[0.8]], [[-0.2]]) == pytest.approx(-0.1)
    with pytest.raises(ValueError, match=r"oracle earns -0.2 and waiting -0.2, expected the oracle to earn more"):
        advantage_share([[0.0]], [[-0.2]], [[-0.2]])
    regret = relative_regret({"a": [1.0, 0.0, 5.0], "b": [0.5, 0.0, 4.0]}, [2.0, 0.0, 5.0])
    assert regret["a"].tolist() == [2.0, 0.0, 0.0]
    assert regret["b"].tolist() == [3.0, 0.0, 1.0]
    assert relative_regret({"a": [1.0], "b": [1.0]}, [2.0])["a"].tolist() == [np.inf]


def test_refusals():
    with pytest.raises(ValueError, match="phases add up to 3 episodes, expected 4"):
        phase_means(RETURNS, (1, 2))
    with pytest.raises(ValueError, match=r"phases\[1\] is 0, expected a whole number of at least 1"):
        phase_means(RETURNS, (4, 0))
    with pytest.raises(ValueError, match="targets has 1 entries, expected 2, one per phase"):
        recovery_times(RETURNS, (1, 3), [1.0])
    with pytest.raises(ValueError, match="agents has 1 entries, expected at least two"):
        relative_regret({"a": [1.0]}, [1.0])
    with pytest.raises(ValueError, match="agents have 1 worlds, expected 2"):
        relative_regret({"a": [1.0], "b": [2.0]}, [1.0, 2.0])
