"""Named streams and buffered draws: each replicate reads its own sequence."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urbe.rng import Draws, stream, streams


def test_same_names_same_bits_other_names_other_bits():
    names = [(), ("a",), ("b",), ("a", 1), ("a", 2), ("a", "1"), (1, "a"), ("a1",), ("a", "b"), ("ab",), ("", "a")]
    draws = [stream(7, *name).integers(2**63, size=4).tolist() for name in names]
    assert draws == [stream(7, *name).integers(2**63, size=4).tolist() for name in names]
    assert len({tuple(draw) for draw in draws}) == len(names)
    assert len({stream(seed, "a").integers(2**63) for seed in [0, 1, 2**32, 2**64, 10**30]}) == 5


def test_a_stream_is_the_same_in_every_version():
    """Published results name a seed: these bits may never change."""
    assert stream(0).integers(2**63, size=2).tolist() == [5778368825450618046, 2625115921631712415]
    assert stream(7, "noise", 3).integers(2**63, size=2).tolist() == [1541493193691078313, 2285974999948599031]


def test_numpy_integers_name_the_same_stream():
    assert stream(7, "x", np.int32(3)).random() == stream(7, "x", 3).random()
    a, b = streams(7, "x", np.array([3, 5]))
    assert (a.random(), b.random()) == (stream(7, "x", 3).random(), stream(7, "x", 5).random())


@pytest.mark.parametrize("name", [True, 1.0, None, "a\x1fstr:b", ("a",)])
def test_refuses_names_that_could_be_mistaken(name):
    with pytest.raises(ValueError, match=r"The name of a stream is .* expected a whole number or a text"):
        stream(7, name)


@pytest.mark.parametrize("seed", [-1, 1.0, True, None])
def test_refuses_seeds_that_are_no_whole_numbers(seed):
    with pytest.raises(ValueError, match=r"seed is .*, expected a whole number of at least 0"):
        stream(seed, "a")


def take(draws, b, n):
    """The next n numbers of replicate b."""
    out = draws.values[b, draws.at[b] : draws.at[b] + n].copy()
    draws.at[b] += n
    return out


def sequence(kind, replicate, n):
    generator = stream(3, "draws", replicate)
    return generator.random(n) if kind == "uniform" else generator.standard_normal(n)


requests = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


@given(kind=st.sampled_from(["uniform", "normal"]), ahead=st.integers(0, 8), asked=requests)
def test_each_replicate_reads_its_own_sequence(kind, ahead, asked):
    """Whoever runs beside it, however much is asked for at once, however large the buffer grows."""
    draws = Draws(streams(3, "draws", np.array([10, 11, 12])), kind, ahead)
    read = [[], [], []]
    for b, more, used in asked:
        assert draws.need(used + more) is draws
        assert (draws.values.shape[1] - draws.at >= used + more).all()
        read[b] += take(draws, b, used).tolist()
    for b, numbers in enumerate(read):
        assert numbers == sequence(kind, 10 + b, len(numbers)).tolist()


def test_growth_keeps_what_is_left():
    draws = Draws(streams(3, "draws", np.array([10])), "normal", 4)
    before = take(draws.need(3), 0, 3)
    draws.need(100)
    assert draws.values.shape[1] >= 100
    assert [*before, *take(draws, 0, 100)] == sequence("normal", 10, 103).tolist()


@given(kind=st.sampled_from(["uniform", "normal"]), used=st.integers(0, 20), ahead=st.integers(1, 6))
def test_goes_on_bit_for_bit_after_loading(kind, used, ahead):
    replicates = np.array([10, 11])
    draws = Draws(streams(3, "draws", replicates), kind, ahead)
    for _ in range(used):
        draws.need(1)
        take(draws, 0, 1)
    saved = draws.state()
    later = [take(draws.need(15), b, 15).tolist() for b in (0, 1)]
    other = Draws(streams(99, "another", replicates), kind, 3)
    other.load(saved)
    assert [take(other.need(15), b, 15).tolist() for b in (0, 1)] == later
    assert later[0] == sequence(kind, 10, used + 15)[used:].tolist()


def test_a_state_is_arrays_and_stays_as_it_was(tmp_path):
    draws = Draws(streams(3, "draws", np.array([10])), "uniform", 4)
    take(draws.need(2), 0, 2)
    state = draws.state()
    np.savez(tmp_path / "state.npz", **state)
    copies = {name: array.copy() for name, array in state.items()}
    wanted = [x for _ in range(25) for x in take(draws.need(2), 0, 2).tolist()]  # the buffer is filled in place
    assert all(np.array_equal(state[name], copies[name]) for name in copies)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as stored:
        again = Draws(streams(0, "x", np.array([0])), "uniform", 4)
        again.load(stored)
    assert take(again.need(50), 0, 50).tolist() == wanted


def test_refuses_a_state_of_others():
    state = Draws(streams(3, "draws", np.array([1, 2])), "uniform").state()
    with pytest.raises(ValueError, match="state has 2 replicates, expected 1"):
        Draws(streams(3, "draws", np.array([1])), "uniform").load(state)


def test_refuses_other_kinds():
    with pytest.raises(ValueError, match=re.escape("kind is 'gamma', expected one of 'uniform', 'normal'.")):
        Draws([], "gamma")
