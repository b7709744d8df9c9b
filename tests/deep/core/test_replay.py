"""The replay against a Python deque; its sampling against the uniform distribution."""

from collections import deque
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from oracles.learner_random import ALL, GOLDEN, split_mix
from urbe.deep.core.keys import words
from urbe.deep.core.precision import double
from urbe.deep.core.replay import Successors, Transition, init_replay, insert, sample

D, K, J = 2, 3, 2
QUICK = {"xla_backend_optimization_level": 0}


@pytest.fixture(autouse=True)
def _double():
    with double():
        yield


def transition(rng, n):
    """n random transitions, their next observations, next actions and targets."""
    return (
        Transition(
            jnp.asarray(rng.normal(size=(n, D)), jnp.float32),
            jnp.asarray(rng.integers(5, size=n), jnp.int32),
            Successors(
                jnp.asarray(rng.normal(size=(n, K)), jnp.float32),
                jnp.asarray(rng.normal(size=(n, K, J)), jnp.float32),
                jnp.asarray(rng.normal(size=(n, K, J, D)), jnp.float32),
            ),
            jnp.asarray(rng.random(n) < 0.3),
        ),
        jnp.asarray(rng.normal(size=(n, D)), jnp.float32),
        jnp.asarray(rng.integers(5, size=n), jnp.int32),
        jnp.asarray(rng.normal(size=(n, K)), jnp.float32),
    )


def rows(step, *others):
    """What one call inserts, as plain tuples, oldest first."""
    leaves = [step.obs, step.action, *step.successors, step.last, *others]
    return [tuple(np.asarray(leaf)[i].tolist() for leaf in leaves) for i in range(len(step.action))]


def held(replay):
    """What the ring holds, oldest first."""
    after = (replay.next_obs, replay.next_action, replay.target)
    leaves = [np.asarray(x) for x in (replay.obs, replay.action, *replay.successors, replay.last, *after)]
    capacity, inserted = len(replay.stamp), int(replay.inserted)
    places = [i % capacity for i in range(max(0, inserted - capacity), inserted)]
    return [tuple(leaf[i].tolist() for leaf in leaves) for i in places]


@pytest.mark.parametrize(("capacity", "n"), [(1, 1), (7, 3), (6, 4), (3, 3)])
def test_it_holds_what_a_deque_holds(capacity, n):
    rng = np.random.default_rng(capacity + n)
    replay, judge, versions = init_replay(capacity, D, K, J), deque(maxlen=capacity), []
    assert held(replay) == []
    put = jax.jit(insert, compiler_options=QUICK)
    for step in range(2 * capacity // n + 3):
        new = transition(rng, n)
        replay = put(replay, *new, np.int32(step))
        judge.extend(rows(*new))
        assert held(replay) == list(judge)
        assert int(replay.inserted) == (step + 1) * n
        versions.extend([step] * n)
        expected = np.full(capacity, -1)
        for number in range(max(0, len(versions) - capacity), len(versions)):
            expected[number % capacity] = versions[number]
        assert np.asarray(replay.stamp).tolist() == expected.tolist()  # -1: nothing is kept of a row never written


def test_types_are_kept():
    empty = init_replay(4, D, K, J)
    full = jax.jit(insert, compiler_options=QUICK)(empty, *transition(np.random.default_rng(0), 2), jnp.int32(0))
    for before, after in zip(jax.tree.leaves(empty), jax.tree.leaves(full), strict=True):
        assert (before.dtype, before.shape) == (after.dtype, after.shape)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(empty)} == {"float32", "int32", "bool"}


@partial(jax.jit, static_argnums=2)
def draw(replay, seed, count):
    """Places of a minibatch, as the learner draws them."""
    return sample(replay, words(jax.random.key(seed), jnp.int32(seed), count))


@pytest.mark.parametrize(("inserted", "present"), [(1, 1), (2, 2), (3, 3), (37, 37), (50, 50), (51, 50), (1234, 50)])
def test_sampling_is_uniform_over_what_is_there(inserted, present):
    replay = init_replay(50, D, K, J)._replace(inserted=jnp.int32(inserted))
    places = np.asarray(draw(replay, inserted, 100_000))
    assert places.dtype == np.int32
    assert places.min() >= 0
    assert places.max() < present  # never a row that was not written
    if present > 1:
        # one in a million keys would fail here by chance
        assert chisquare(np.bincount(places, minlength=present)).pvalue > 1e-6
        pairs = np.bincount(places[:-1:2] % 2 * 2 + places[1::2] % 2, minlength=4)
        odd = (present // 2) / present
        expected = np.outer([1 - odd, odd], [1 - odd, odd]).ravel() * (len(places) // 2)
        assert chisquare(pairs, expected).pvalue > 1e-6


def test_the_ends_of_what_is_there_are_reached_by_the_ends_of_the_words():
    replay = init_replay(50, D, K, J)._replace(inserted=jnp.int32(7))
    ends = jnp.asarray([0, 2**32 - 1, 2**64 - 1], jnp.uint64)
    assert sample(replay, ends).tolist() == [0, 0, 6]


def test_words_are_split_mix():
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    generator = split_mix(1234567)
    assert [next(generator) for _ in published] == published
    key = jax.random.key(5)
    high, low = jax.random.key_data(key).tolist()
    generator = split_mix((((high << 32) + low - 1) * GOLDEN) & ALL)
    in_batches = np.concatenate([jax.jit(words, static_argnums=2)(key, jnp.int32(i), 8) for i in range(3)])
    assert in_batches.tolist() == [next(generator) for _ in range(24)]  # one stream, none twice


def test_the_key_decides():
    replay = init_replay(50, D, K, J)._replace(inserted=jnp.int32(50))
    a, b, c = (draw(replay, seed, 64) for seed in (0, 0, 1))
    assert jnp.array_equal(a, b)
    assert not jnp.array_equal(a, c)
    assert len(set(a.tolist())) < 64  # with repetition: 64 of 50
