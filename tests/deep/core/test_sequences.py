"""The replay of sequences: windows are consecutive and present, and all of them are drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe import memory
from urbe.deep.core.precision import double
from urbe.deep.core.sequences import RecurrentStep, append, init_sequences, windows

CAPACITY, LENGTH = 10, 4


def step_number(t):
    """A step in which every number says when it was."""
    now = jnp.float32(t)
    return RecurrentStep(
        jnp.full(2, now), jnp.int32(t), now, now, jnp.full(2, now + 0.5), jnp.asarray(t % 3 == 0), jnp.full(3, -now)
    )


def filled(count):
    replay = init_sequences(CAPACITY, obs_size=2, units=3)
    for t in range(count):
        replay = append(replay, step_number(t))
    return replay


@pytest.mark.parametrize("count", [4, 7, 10, 13, 25])
def test_windows_are_consecutive_and_all_that_are_present_are_drawn(count):
    with double():
        words = jnp.asarray(np.random.default_rng(0).integers(2**64, size=400, dtype=np.uint64))
        drawn = windows(filled(count), words, LENGTH)
    first = np.asarray(drawn.action[:, 0])
    np.testing.assert_array_equal(drawn.action, first[:, None] + np.arange(LENGTH))
    oldest = max(count - CAPACITY, 0)
    assert sorted(set(first.tolist())) == list(range(oldest, count - LENGTH + 1))
    np.testing.assert_array_equal(drawn.reached[..., 0], drawn.action + 0.5)
    np.testing.assert_array_equal(drawn.hidden[..., 2], -drawn.action)
    np.testing.assert_array_equal(drawn.last, drawn.action % 3 == 0)
    assert drawn.obs.shape == (400, LENGTH, 2)


def test_the_extreme_words_are_the_first_and_the_last_window():
    with double():
        drawn = windows(filled(13), jnp.asarray([0, 2**64 - 1], jnp.uint64), LENGTH)
    assert np.asarray(drawn.action[:, 0]).tolist() == [3, 9]


def test_a_replay_that_does_not_fit_is_refused():
    with pytest.raises(memory.NotEnoughMemory, match="smaller capacity"):
        init_sequences(10**12, 4, 48)


def test_appending_leaves_the_old_replay_as_it_was():
    replay = filled(3)
    before = jax.tree.map(np.array, replay)
    append(replay, step_number(9))
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(replay), strict=True))
