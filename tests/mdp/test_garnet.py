"""Random models: distribution, seeds, errors. Seeds are fixed, so no statistical test fails by chance."""

import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, chisquare, kstest

from oracles.mdp import same_model
from urbe import MDP
from urbe.mdp import library

LEAST = 1e-3
"""Smallest p-value accepted at the fixed seeds; a wrong law gives far less at these sample sizes."""


def successors(mdp: MDP, k: int) -> np.ndarray:
    return mdp.rows.successor.reshape(-1, k)


def band(s: int, n: int, width: int) -> list[int]:
    """The min(n, 2 width + 1) states nearest to s, among 0, ..., n - 1; the lower ones of a tie."""
    nearest = sorted(range(n), key=lambda t: (abs(t - s), t))
    return sorted(nearest[: 2 * width + 1])


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), a=st.integers(1, 3), data=st.data())
def test_garnet_has_the_shape_it_was_asked_for(seed: int, n: int, a: int, data: Any) -> None:
    k = data.draw(st.integers(1, n))
    mdp = library.garnet(n, a, k, seed=seed, discount=0.5)
    assert (mdp.n_states, mdp.n_rows, mdp.rows.n_entries, mdp.discount) == (n, n * a, n * a * k, 0.5)
    assert np.array_equal(mdp.action, np.tile(np.arange(a), n))
    drawn = successors(mdp, k)
    assert (np.diff(drawn, axis=1) > 0).all()
    assert drawn.min() >= 0
    assert drawn.max() < n
    assert np.abs(mdp.rows.row_sums(mdp.rows.probability) - 1.0).max() <= k * 2.0**-52
    assert mdp.rows.probability.min() > 0.0
    assert mdp.rows.reward.shape == (n * a,)
    for array in (mdp.row_start, mdp.action, mdp.rows.entry_start, mdp.rows.successor):
        assert array.dtype == np.int32


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), width=st.integers(0, 8), data=st.data())
def test_banded_garnet_stays_near(seed: int, n: int, width: int, data: Any) -> None:
    k = data.draw(st.integers(1, min(n, 2 * width + 1)))
    mdp = library.banded_garnet(n, 2, k, width=width, seed=seed)
    drawn = successors(mdp, k)
    assert (np.diff(drawn, axis=1) > 0).all()
    for s, line in zip(mdp.row_state, drawn, strict=True):
        assert set(line.tolist()) <= set(band(int(s), n, width))


@pytest.mark.parametrize(("n", "k"), [(6, 1), (6, 2), (6, 3), (6, 4), (6, 5)])
def test_successors_are_uniform_subsets(n: int, k: int) -> None:
    """Both ways of drawing: members for 2 k <= n, those left out otherwise."""
    drawn = successors(library.garnet(n, 2000, k, seed=1), k)
    counts = Counter(map(tuple, drawn.tolist()))
    assert chisquare([counts[subset] for subset in combinations(range(n), k)]).pvalue > LEAST
    assert sum(counts.values()) == 12000


def test_banded_successors_are_uniform_subsets_of_the_band() -> None:
    drawn = successors(library.banded_garnet(9, 3000, 2, width=2, seed=1), 2).reshape(9, 3000, 2)
    for s in range(9):
        counts = Counter(map(tuple, drawn[s].tolist()))
        expected = [counts[subset] for subset in combinations(band(s, 9, 2), 2)]
        assert chisquare(expected).pvalue > LEAST
        assert sum(expected) == 3000


@pytest.mark.parametrize("make", [library.garnet, library.banded_garnet])
def test_probabilities_are_uniform_on_the_simplex_and_rewards_on_the_unit(make: Callable[..., MDP]) -> None:
    mdp = make(2000, 4, 4, seed=2)
    p = mdp.rows.probability.reshape(-1, 4)
    for j in range(4):  # each part of Dirichlet(1, 1, 1, 1) is Beta(1, 3)
        assert kstest(p[:, j], beta(1, 3).cdf).pvalue > LEAST
    # and a sum of two is Beta(2, 2): the parts depend on each other as they must
    assert kstest(p[:, 0] + p[:, 1], beta(2, 2).cdf).pvalue > LEAST
    assert kstest(mdp.rows.reward, "uniform").pvalue > LEAST


@pytest.mark.parametrize("make", [library.garnet, library.banded_garnet])
def test_seeds(make: Callable[..., MDP]) -> None:
    one, again, other = make(50, 3, 4, seed=7), make(50, 3, 4, seed=7), make(50, 3, 4, seed=8)
    assert same_model(one, again)
    assert not np.array_equal(one.rows.successor, other.rows.successor)
    assert not np.array_equal(one.rows.probability, other.rows.probability)
    assert not np.array_equal(one.rows.reward, other.rows.reward)
    assert same_model(one, make(50, 3, 4, seed=np.random.default_rng(7)))
    rng = np.random.default_rng(7)
    assert same_model(one, make(50, 3, 4, seed=rng))
    assert not same_model(one, make(50, 3, 4, seed=rng))


def test_global_random_state_is_left_alone() -> None:
    before = np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002
    library.garnet(50, 3, 4, seed=0)
    library.banded_garnet(50, 3, 4, seed=0)
    assert np.array_equal(np.random.get_state(legacy=False)["state"]["key"], before)  # noqa: NPY002


@pytest.mark.parametrize("make", [library.garnet, library.banded_garnet])
def test_more_than_one_block(make: Callable[..., MDP]) -> None:
    mdp = make(120_000, 3, 3, seed=0)  # 1.08 million entries: two blocks
    drawn = successors(mdp, 3)
    assert (np.diff(drawn, axis=1) > 0).all()
    assert mdp.rows.probability.min() > 0.0
    assert mdp.rows.mass_error <= 4 * 2.0**-52
    last = mdp.row_state[-1000:, None]
    if make is library.banded_garnet:
        assert np.abs(drawn[-1000:] - last).max() <= 30  # 15 to each side, 30 to one side at the very end
        assert np.abs(drawn[15 * 3 : -15 * 3] - mdp.row_state[15 * 3 : -15 * 3, None]).max() == 15
    else:
        assert np.abs(drawn[-1000:] - last).max() > 100_000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: library.garnet(3, 1, 4, seed=0), "n_successors is 4, expected at most the number of states, 3."),
        (lambda: library.garnet(3, 0, 1, seed=0), "n_actions is 0, expected a whole number of at least 1."),
        (lambda: library.garnet(0, 1, 1, seed=0), "n_states is 0, expected a whole number of at least 1."),
        (lambda: library.garnet(3, 1, 0, seed=0), "n_successors is 0, expected a whole number of at least 1."),
        (lambda: library.garnet(3, 1, 1, seed=None), "seed is None, expected a whole number of at least 0."),  # type: ignore[arg-type]
        (lambda: library.garnet(3, 1, 1, seed=-1), "seed is -1, expected a whole number of at least 0."),
        (lambda: library.garnet(2**31, 1, 1, seed=0), "n_states is 2147483648, expected below 2147483648."),
        (lambda: library.garnet(3, 1, 1, seed=0, discount=3), "discount is 3, expected a number in [0, 1]."),
        (
            lambda: library.banded_garnet(9, 1, 6, width=2, seed=0),
            "n_successors is 6, but a window of width 2 has only 5 states.",
        ),
        (
            lambda: library.banded_garnet(3, 1, 4, width=8, seed=0),
            "n_successors is 4, but a window of width 8 has only 3 states.",
        ),
        (
            lambda: library.banded_garnet(3, 1, 1, width=-1, seed=0),
            "width is -1, expected a whole number of at least 0.",
        ),
    ],
)
def test_refuses(call: Callable[[], MDP], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
