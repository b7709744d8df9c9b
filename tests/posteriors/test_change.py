"""Filtering of changes, against the sum over all histories of changes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import urbe
from urbe.mdp.build import from_dense
from urbe.posteriors.beliefs import Stationary, Visit
from urbe.posteriors.change import ChangePoint
from urbe.posteriors.dirichlet import Posterior


def two_coins(prior=(1.0, 1.0, 1.0, 1.0)):
    """Two states, one action each, either may follow."""
    mdp = from_dense(np.full((2, 1, 2), 0.5), 0.0, discount=0.9)
    return Posterior(mdp, np.array(prior), np.array(prior))


def visit(row, successor, step=0):
    each = lambda x: np.array([x])  # noqa: E731
    return Visit(each(0), each(row), each(2 * row + successor), each(step))


def history_moments(episodes, prior, hazard, row, *, together):
    """Mean and variance of p(row -> 0) now, summed over all sets of episodes after which a jump occurred.

    `episodes` is a list of lists of (row, successor). The likelihood of a regime is that of its Dirichlet-multinomials.
    """
    total, first, second = 0.0, 0.0, 0.0
    for jumps in product((False, True), repeat=len(episodes)):
        chance = np.prod([hazard if jump else 1.0 - hazard for jump in jumps])
        counts = np.array(prior, dtype=float).reshape(2, 2)
        for seen, jump in zip(episodes, jumps, strict=True):
            for r, j in seen:
                if together or r == row:
                    chance *= counts[r, j] / counts[r].sum()
                    counts[r, j] += 1.0
            if jump:
                counts = np.array(prior, dtype=float).reshape(2, 2)
        a, b = counts[row]
        mean, n = a / (a + b), a + b
        total += chance
        first += chance * mean
        second += chance * (mean**2 + mean * (1.0 - mean) / (n + 1.0))
    mean = first / total
    return mean, second / total - mean**2


@given(
    episodes=st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=3), min_size=1, max_size=6),
    hazard=st.floats(0.01, 0.99),
    prior=st.lists(st.floats(0.2, 5.0), min_size=4, max_size=4),
    together=st.booleans(),
)
def test_equals_the_sum_over_all_histories(episodes, hazard, prior, together):
    posterior = two_coins(prior)
    belief = ChangePoint(hazard, together=together).start(posterior, 1)
    for seen in episodes:
        for row, successor in seen:
            belief.observe(visit(row, successor))
        belief.end_episode()
    for row in (0, 1):
        mean, variance = history_moments(episodes, prior, hazard, row, together=together)
        n = belief.total[0, 0, row]
        p = belief.alpha[0, 0, 2 * row] / n
        assert p == pytest.approx(mean, rel=1e-10)
        assert p * (1.0 - p) / (n + 1.0) == pytest.approx(variance, rel=1e-8)


def test_no_hazard_is_a_stationary_world():
    posterior = two_coins()
    jumping, still = ChangePoint(0.0).start(posterior, 1), Stationary().start(posterior, 1)
    rng = np.random.default_rng(0)
    for _ in range(50):
        seen = visit(int(rng.integers(2)), int(rng.integers(2)))
        for belief in (jumping, still):
            belief.observe(seen)
            belief.end_episode()
    np.testing.assert_allclose(jumping.alpha, still.alpha, rtol=1e-11)
    np.testing.assert_allclose(jumping.total, still.total, rtol=1e-11)


def test_certain_jumps_forget_everything():
    belief = ChangePoint(1.0).start(two_coins(), 1)
    for _ in range(5):
        belief.observe(visit(0, 1))
        belief.end_episode()
    np.testing.assert_allclose(belief.alpha[0, 0], 1.0, rtol=1e-12)


def test_a_break_is_noticed_within_a_few_visits_and_an_unvisited_row_goes_back_to_its_prior():
    belief = ChangePoint(0.01).start(two_coins(), 1)
    for _ in range(100):
        belief.observe(visit(0, 0))
        belief.observe(visit(1, 0))
        belief.end_episode()
    assert belief.alpha[0, 0, 0] / belief.total[0, 0, 0] > 0.97
    for _ in range(4):
        belief.observe(visit(0, 1))
        belief.end_episode()
    assert belief.alpha[0, 0, 0] / belief.total[0, 0, 0] < 0.3  # plain counts would still say 0.95
    assert belief.alpha[0, 0, 2] / belief.total[0, 0, 1] > 0.9
    for _ in range(2000):
        belief.end_episode()
    np.testing.assert_allclose(belief.alpha[0, 0], 1.0, atol=1e-6)


def test_evidence_is_shared_where_everything_jumps_together():
    apart, together = (ChangePoint(0.01, together=t).start(two_coins(), 1) for t in (False, True))
    for belief in (apart, together):
        for _ in range(100):
            belief.observe(visit(0, 0))
            belief.observe(visit(1, 0))
            belief.end_episode()
        for _ in range(4):
            belief.observe(visit(0, 1))
            belief.end_episode()
    confident, doubtful = (belief.alpha[0, 0, 2] / belief.total[0, 0, 1] for belief in (apart, together))
    assert confident > 0.9
    assert doubtful < 0.65


@pytest.mark.parametrize("hypotheses", [5, 20])
def test_few_hypotheses_stay_close_to_many(hypotheses):
    few, many = (ChangePoint(0.05, hypotheses=n).start(two_coins(), 1) for n in (hypotheses, 200))
    rng = np.random.default_rng(1)
    for episode in range(120):
        successor = int(rng.random() < (0.9 if episode < 60 else 0.1))
        for belief in (few, many):
            belief.observe(visit(0, successor))
            belief.end_episode()
    p, q = (belief.alpha[0, 0, 0] / belief.total[0, 0, 0] for belief in (few, many))
    assert abs(p - q) < (0.03 if hypotheses == 5 else 0.01)


def test_steps_with_counts_of_their_own_do_not_mix():
    belief = ChangePoint(0.1).start(two_coins(), 1, layers=3)
    lonely = ChangePoint(0.1).start(two_coins(), 1)
    for _ in range(10):
        belief.observe(visit(0, 0, step=1))
        lonely.observe(visit(0, 0))
        belief.end_episode()
        lonely.end_episode()
    np.testing.assert_array_equal(belief.alpha[0, 1], lonely.alpha[0, 0])
    np.testing.assert_allclose(belief.alpha[0, 0], 1.0, rtol=1e-12)


def test_replicates_do_not_see_each_other_and_a_saved_belief_goes_on():
    model = urbe.library.riverswim(4)
    ones = np.ones(model.rows.n_entries)
    prior = Posterior(model, ones, ones)
    rng = np.random.default_rng(3)
    several = ChangePoint([0.1, 0.02, 0.0]).start(prior, 3)
    alone = ChangePoint(0.02).start(prior, 1)
    for episode in range(40):
        row = rng.integers(model.n_rows, size=3)
        entry = model.rows.entry_start[row] + rng.integers(model.rows.length[row])
        several.observe(Visit(np.arange(3), row, entry, np.zeros(3, dtype=int)))
        alone.observe(Visit(np.array([0]), row[1:2], entry[1:2], np.zeros(1, dtype=int)))
        several.end_episode()
        alone.end_episode()
        if episode == 20:
            again = ChangePoint([0.1, 0.02, 0.0]).start(prior, 3)
            again.load(several.state())
            several = again
    np.testing.assert_array_equal(several.alpha[1], alone.alpha[0])
    np.testing.assert_array_equal(several.total[1], alone.total[0])


def test_impossible_successors_are_refused():
    with pytest.raises(ValueError, match=r"The prior of state 1, action 0 is 0 on one of the successors"):
        ChangePoint(0.1).start(two_coins((1.0, 1.0, 0.0, 1.0)), 1)


@pytest.mark.parametrize("together", [False, True])
def test_a_row_with_one_successor_keeps_plain_counts_and_tells_nothing(together):
    mdp = from_dense([[[0.0, 1.0]], [[0.5, 0.5]]], 0.0, discount=0.9)
    prior = Posterior(mdp, np.ones(3), np.ones(3))
    belief = ChangePoint(0.1, together=together).start(prior, 1)
    silent = ChangePoint(0.1, together=together).start(prior, 1)
    for episode in range(30):
        belief.observe(Visit(np.array([0]), np.array([0]), np.array([0]), np.array([0])))
        for each in (belief, silent):
            if episode % 3 == 0:
                each.observe(Visit(np.array([0]), np.array([1]), np.array([2]), np.array([0])))
            each.end_episode()
    assert belief.alpha[0, 0, 0] == belief.total[0, 0, 0] == 31.0
    np.testing.assert_array_equal(belief.alpha[0, 0, 1:], silent.alpha[0, 0, 1:])
