"""Certificates process many rows together: each row gets the result that it gets alone."""

import numpy as np
import pytest

import urbe
from urbe.ambiguity.dual_search import highest_of_each
from urbe.ambiguity.entries import BLOCK, on_entries, row_blocks
from urbe.mdp.rows import Rows

SETS = [
    urbe.L1Ball(0.4, support="all"),
    urbe.L2Ball(0.2),
    urbe.LInfBall(0.1),
    urbe.KLBall(0.3),
    urbe.Chi2Ball(0.3),
    urbe.LikelihoodRegion(0.3, support="all"),
    urbe.Contamination(0.2, support="all"),
    urbe.WeightedL1Ball(0.3, np.linspace(0.5, 2.0, 9)),
]


def rows_of(lengths, rng, n_states=9):
    """One row for each length."""
    start = np.append(0, np.cumsum(lengths))
    successor = np.concatenate([np.sort(rng.permutation(n_states)[:n]) for n in lengths]).astype(np.int32)
    p = np.concatenate([rng.dirichlet(np.ones(n)) for n in lengths])
    return Rows(n_states, start, successor, p, rng.normal(size=len(lengths)))


def test_every_row_is_in_one_block_with_its_entries():
    rows = rows_of([3, 1, 3, 9, 1, 3], np.random.default_rng(0))
    seen = []
    for some, entries in row_blocks(rows):
        for row, own in zip(some, entries, strict=True):
            seen.append(int(row))
            assert own.tolist() == list(range(rows.entry_start[row], rows.entry_start[row + 1]))
    assert sorted(seen) == list(range(6))
    assert [len(some) for some, _ in row_blocks(rows, BLOCK)] == [1] * 6  # no more than fits


@pytest.mark.parametrize("set_", SETS, ids=lambda each: type(each).__name__)
def test_rows_of_many_lengths_are_as_each_alone(set_):
    rng = np.random.default_rng(1)
    rows = rows_of(rng.integers(1, 10, size=18), rng)
    nature = set_.bind(urbe.MDP.from_dense(np.ones((9, 2, 9)) / 9, np.zeros((9, 2)), discount=0.9).with_rows(rows))
    v = rng.normal(size=9)
    kernel = nature.worst_case(rng.normal(size=9)).rows
    half = Rows(9, kernel.entry_start, kernel.successor, kernel.probability * 0.5, kernel.reward)  # no distribution
    for k in range(18):
        alone = nature.take(np.array([k]))
        assert nature.dual_bound(v)[k] == pytest.approx(alone.dual_bound(v)[0], rel=0, abs=1e-15)
        for each in (kernel, half):
            assert nature.excess(each)[k] == pytest.approx(alone.excess(each.take(np.array([k])))[0], abs=1e-15)
    assert nature.dual_bound(v) == pytest.approx(nature.values(v), rel=0, abs=1e-13)
    assert (nature.excess(half) > 0.4).all()


def test_a_kernel_is_read_on_the_entries_of_other_rows():
    rows = Rows(4, np.array([0, 2, 4]), np.array([0, 2, 1, 3]), np.full(4, 0.5), np.zeros(2))
    kernel = Rows(4, np.array([0, 3, 4]), np.array([0, 1, 3, 3]), np.array([0.5, 0.25, -0.125, 1.0]), np.zeros(2))
    q, stray = on_entries(rows, kernel)
    assert q.tolist() == [0.5, 0.0, 0.0, 1.0]
    assert stray.tolist() == [0.375, 0.0]


@pytest.mark.parametrize("copies", [1, 20, 1000])  # many points at once, fewer, golden sections
def test_maxima_are_found_at_kinks_ends_and_in_tiny_numbers(copies):
    peak = np.tile(np.array([-3.0, 0.0, 1e-300, 2.0, 7.0], dtype=np.longdouble), copies)

    def tent(x, peak):
        return -np.abs(x - peak)

    found = highest_of_each(tent, -4.0, 5.0, peak)
    assert found.dtype == np.longdouble
    assert np.array(found, dtype=float) == pytest.approx([0.0, 0.0, 0.0, 0.0, -2.0] * copies, abs=1e-14)
