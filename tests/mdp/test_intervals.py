"""Interval bounds of transitions: what is kept, the centre, and rescaling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urbe import MDP
from urbe.mdp.intervals import PairError


@st.composite
def rows(draw):
    """Bounds around a distribution, so that they hold at least that one."""
    counts = draw(st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any))
    p = np.array(counts) / sum(counts)
    below = np.array(draw(st.lists(st.floats(0, 1), min_size=len(p), max_size=len(p))))
    above = np.array(draw(st.lists(st.floats(0, 1), min_size=len(p), max_size=len(p))))
    return p, p * below, p + (1 - p) * above


def one_row(probability, lower, upper, **kwargs):
    n = len(lower)
    zeros = np.zeros(n, dtype=int)
    return MDP.from_transitions(
        zeros, zeros, np.arange(n), probability, 0.0,
        discount=0.9, terminal=range(1, n), lower=lower, upper=upper, **kwargs,
    )  # fmt: skip


@settings(deadline=None)
@given(row=rows())
def test_the_centre_is_a_distribution_equally_far_between_its_bounds(row):
    _, lower, upper = row
    mdp = one_row(None, lower, upper)
    p = mdp.rows.probability
    assert p.sum() == pytest.approx(1.0, abs=1e-15 * len(p))
    assert (p >= lower - 1e-15).all()
    assert (p <= upper + 1e-15).all()
    free = upper - lower > 1e-9
    share = (p - lower)[free] / (upper - lower)[free]
    # a share is a difference of probabilities, known to 1e-15, over a width of at least 1e-9
    assert len(share) == 0 or np.ptp(share) <= 1e-5


@settings(deadline=None)
@given(row=rows())
def test_every_entry_and_its_bounds_are_kept(row):
    p, lower, upper = row
    mdp = one_row(p, lower, upper)
    assert mdp.rows.successor.tolist() == list(range(len(p)))
    assert np.abs(mdp.rows.probability - p).max() <= 2.0**-52
    for kept, given_ in zip(mdp.bounds, (lower, upper), strict=True):
        assert np.abs(kept - given_).max() <= 2.0**-50


@settings(deadline=None)
@given(row=rows(), seed=st.integers(0, 2**32 - 1))
def test_bounds_are_sorted_with_their_transitions(row, seed):
    p, lower, upper = row
    order = np.random.default_rng(seed).permutation(len(p))
    zeros = np.zeros(len(p), dtype=int)
    shuffled = MDP.from_transitions(
        zeros, zeros, order, p[order], 0.0,
        discount=0.9, terminal=range(1, len(p)), lower=lower[order], upper=upper[order],
    )  # fmt: skip
    for x, y in zip(shuffled.bounds, one_row(p, lower, upper).bounds, strict=True):
        assert x.tolist() == y.tolist()


def test_bounds_within_the_tolerance_are_made_to_fit():
    lower, upper = one_row(None, [0.6, 0.4 + 1e-7], [0.6, 0.5], row_tolerance=1e-6).bounds
    assert lower.sum() == pytest.approx(1.0, abs=1e-15)
    lower, upper = one_row(None, [0.1, 0.1], [0.6, 0.4 - 1e-7], row_tolerance=1e-6).bounds
    assert upper.sum() == pytest.approx(1.0, abs=1e-15)
    with pytest.raises(PairError, match="hold no distribution"):
        one_row(None, [0.6, 0.4 + 1e-7], [0.6, 0.5])


def test_a_terminal_state_may_only_loop_within_its_interval():
    def model(target):
        return MDP.from_transitions(
            [0, 1], [0, 0], [1, target], None, 0.0, discount=0.9, terminal=[1], lower=[1.0, 1.0], upper=[1.0, 1.0]
        )

    assert model(1).n_rows == 1
    assert model(1).bounds[0].tolist() == [1.0]
    with pytest.raises(ValueError, match="State 1 is declared terminal, but transition 1 leads from it to state 0"):
        model(0)


def test_errors_know_their_pair():
    with pytest.raises(PairError, match=r"sum to 0\.5") as caught:
        MDP.from_transitions([0, 1], [0, 3], [0, 0], [1.0, 0.5], 0.0, discount=0.9)
    assert (caught.value.state, caught.value.action) == (1, 3)
    assert isinstance(caught.value, ValueError)
