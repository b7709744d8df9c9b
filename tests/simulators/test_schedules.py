"""Schedules: parameters of each episode, distributions of the random ones, resuming, tracing."""

import re
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from urbe.simulators import (
    Constant,
    Cyclic,
    DomainRandomisation,
    Drift,
    LogUniform,
    MarsRover,
    Normal,
    RandomJumps,
    RandomWalk,
    Sawtooth,
    StepChange,
    Uniform,
)
from urbe.simulators.schedules import reflect


class Params(NamedTuple):
    length: float = 0.5
    mass: float = 0.1
    gravity: float = 9.8


BASE = Params()


@partial(jax.jit, static_argnums=(0, 2))
def carries(schedule, key, episodes):
    """The carry of every episode, along the first axis."""

    def go(carry, key):
        following = schedule.next(carry, key)
        return following, following

    first_key, *_ = keys = jax.random.split(key, episodes)
    first = schedule.begin(first_key)
    _, later = jax.lax.scan(go, first, keys[1:])
    return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, later)


def played(schedule, episodes, seed=0):
    found = carries(schedule, jax.random.key(seed), episodes)
    assert np.array_equal(found.episode, np.arange(episodes))
    return jax.tree.map(np.asarray, schedule.params(found))


def test_constant():
    assert np.array_equal(played(Constant(BASE), 4), np.float32([[0.5] * 4, [0.1] * 4, [9.8] * 4]))


def test_sudden_changes():
    phases = ((2, BASE), (3, BASE._replace(length=1.0, mass=0.3)), (1, BASE._replace(length=2.0)))
    once, again = played(StepChange(phases), 9), played(StepChange(phases, repeat=True), 9)
    assert once.length.tolist() == [0.5, 0.5, 1, 1, 1, 2, 2, 2, 2]
    assert again.length.tolist() == [0.5, 0.5, 1, 1, 1, 2, 0.5, 0.5, 1]
    assert again.mass.tolist() == np.float32([0.1, 0.1, 0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.3]).tolist()


def test_drifts_up_and_down_at_once():
    found = played(Drift(BASE, {"length": (0.5, 1.5), "mass": (0.3, 0.1)}, episodes=4), 7)
    assert found.length.tolist() == [0.5, 0.75, 1.0, 1.25, 1.5, 1.5, 1.5]
    assert found.mass == pytest.approx([0.3, 0.25, 0.2, 0.15, 0.1, 0.1, 0.1], abs=1e-7)
    assert found.mass[[0, -1]].tolist() == np.float32([0.3, 0.1]).tolist()
    assert (found.gravity == np.float32(9.8)).all()


def test_seasons():
    found = played(Cyclic(BASE, {"length": (1.0, 3.0)}, period=4), 9)
    assert found.length == pytest.approx([1, 2, 3, 2, 1, 2, 3, 2, 1], abs=1e-6)
    assert found.length.max() <= 3.0
    assert found.length.min() >= 1.0


def test_wear_and_repair():
    found = played(Sawtooth(BASE, {"length": (1.0, 2.0)}, period=3), 7)
    assert found.length.tolist() == [1, 1.5, 2, 1, 1.5, 2, 1]


def test_walks_start_at_the_base_and_stay_within_bounds():
    bounds, deviations = {"length": (0.3, 0.8), "mass": (0.1, 0.2)}, {"length": 0.1, "mass": 0.02}
    for edge in (reflect, jnp.clip):
        found = played(RandomWalk(BASE, bounds, deviations, edge), 400)
        assert found.length[0] == np.float32(0.5)
        for name, (low, high) in bounds.items():
            walk = getattr(found, name)
            assert walk.min() >= np.float32(low)
            assert walk.max() <= np.float32(high)
            assert len(np.unique(walk)) > 100
        assert (found.gravity == np.float32(9.8)).all()
        at_a_bound = np.isin(found.length, np.float32([0.3, 0.8])).mean()
        assert at_a_bound > 0.02 if edge is jnp.clip else at_a_bound < 0.02


def test_a_walk_far_from_its_bounds_has_normal_steps():
    """Kolmogorov-Smirnov at 1e-6: a false alarm in a million seeds."""
    found = played(RandomWalk(BASE, {"length": (-1e3, 1e3)}, {"length": 0.25}), 2000)
    steps = np.diff(found.length.astype(np.float64)) / 0.25
    assert stats.kstest(steps, "norm").pvalue > 1e-6


def test_mirrors_are_those_of_geometry():
    low, high = jnp.float32(1.0), jnp.float32(3.0)
    found = [float(reflect(jnp.float32(x), low, high)) for x in (1.5, 0.5, 3.5, -1.5, 5.5, 1.0, 3.0, 9.0)]
    assert found == [1.5, 1.5, 2.5, 2.5, 1.5, 1.0, 3.0, 1.0]


def test_fresh_draws_have_their_laws_and_do_not_depend_on_each_other():
    """Three tests at 1e-6, and a correlation within 5 standard errors: a false alarm in 3e5 seeds."""
    laws = {"length": Uniform(0.5, 2.0), "mass": LogUniform(0.01, 1.0), "gravity": Normal(9.8, 2.0, low=9.0)}
    found = played(DomainRandomisation(BASE, laws), 2000)
    assert stats.kstest(found.length, stats.uniform(0.5, 1.5).cdf).pvalue > 1e-6
    assert stats.kstest(found.mass, stats.loguniform(0.01, 1.0).cdf).pvalue > 1e-6
    assert stats.kstest(found.gravity, stats.truncnorm(-0.4, np.inf, 9.8, 2.0).cdf).pvalue > 1e-6
    assert np.abs(np.corrcoef(np.stack(found))[np.triu_indices(3, 1)]).max() < 5 / np.sqrt(2000)
    alone = played(DomainRandomisation(BASE, {"length": Uniform(0.5, 2.0)}), 2000)
    assert np.array_equal(alone.length, found.length)


def test_jumps_come_at_the_hazard_and_change_all_parameters_together():
    laws = {"length": Uniform(0.5, 2.0), "mass": LogUniform(0.01, 1.0)}
    found = played(RandomJumps(BASE, laws, hazard=0.2), 3000)
    moved = np.diff(found.length) != 0
    assert np.array_equal(moved, np.diff(found.mass) != 0)
    assert abs(moved.mean() - 0.2) < 5 * np.sqrt(0.16 / 2999)
    assert stats.kstest(found.length[1:][moved], stats.uniform(0.5, 1.5).cdf).pvalue > 1e-6
    assert len(set(played(RandomJumps(BASE, laws, hazard=0.0), 50).length)) == 1
    assert len(set(played(RandomJumps(BASE, laws, hazard=1.0), 50).length)) == 50
    with pytest.raises(ValueError, match=r"hazard is 1.5, expected"):
        RandomJumps(BASE, laws, hazard=1.5)


def test_draws_keep_to_their_bounds_in_spite_of_rounding():
    """Of 5000 draws one falls on the last float32 number before 9999.9 unless it is brought back."""
    drawn = Normal(10000.1, 1.0, low=9999.9).sample(jax.random.key(0), (5000,))
    assert float(drawn.min()) == np.float32(9999.9)


RANDOM = RandomWalk(BASE, {"length": (0.3, 0.8)}, {"length": 0.1})


def test_same_key_same_walk_and_another_key_another():
    first, again, other = (played(RANDOM, 20, seed).length for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_carries_are_of_fixed_types_with_and_without_x64():
    every = [
        Constant(BASE),
        StepChange(((1, BASE),), repeat=True),
        Drift(BASE, {"length": (0.5, 1.5)}, 4),
        Cyclic(BASE, {"length": (0.5, 1.5)}, 4),
        Sawtooth(BASE, {"length": (0.5, 1.5)}, 4),
        RANDOM,
        DomainRandomisation(BASE, {"length": Normal(1.0, 0.2), "mass": LogUniform(0.1, 1.0)}),
        RandomJumps(BASE, {"length": Normal(1.0, 0.2)}, hazard=0.1),
    ]
    for schedule in every:
        for x64 in (False, True):
            with jax.enable_x64(x64):
                first = jax.eval_shape(schedule.begin, jax.random.key(0))
                later = jax.eval_shape(schedule.next, first, jax.random.key(0))
                assert first == later
                assert [leaf.dtype.name for leaf in jax.tree.leaves(first)] == ["int32", *["float32"] * 3]


def test_x64_does_not_change_what_is_drawn():
    plain = RANDOM.next(RANDOM.begin(jax.random.key(0)), jax.random.key(5))
    with jax.enable_x64(True):
        other = RANDOM.next(RANDOM.begin(jax.random.key(0)), jax.random.key(5))
    assert float(plain.params.length) == float(other.params.length)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Drift(BASE, {"lenght": (0, 1)}, 5),
            "'lenght' is not among the parameters of Params, which are l",
        ),
        (lambda: Drift(BASE, {}, 5), "No parameter changes, expected some of length, mass, gravity; or use Constant"),
        (lambda: Drift(BASE, {"mass": (1, 1)}, 5), "The bounds of mass are 1 and 1, expected the lower one first and"),
        (lambda: Cyclic(BASE, {"mass": (2, 1)}, 5), "The bounds of mass are 2 and 1, expected the lower one first and"),
        (lambda: Sawtooth(BASE, {"mass": (1, 2)}, 1), "period is 1, expected a whole number of at least 2"),
        (lambda: Sawtooth(BASE, {"mass": (1, float("inf"))}, 3), "high of mass is inf, expected a finite number"),
        (lambda: StepChange(()), "phases is empty, expected at least one (episodes, params)"),
        (lambda: StepChange(((0, BASE),)), "phases[0][0] is 0, expected a whole number of at least 1"),
        (
            lambda: StepChange(((1, BASE), (1, MarsRover().nominal()))),
            "phases[1] has the parameters failure, expected length, mass, gravity as in phases[0]",
        ),
        (lambda: RandomWalk(BASE, {"mass": (1, 2)}, {"mass": 1.0}), "base.mass is 0.1"),
        (lambda: RandomWalk(BASE, {"mass": (0, 2)}, {"length": 1.0}), "deviations has ['length'], expected ['mass']"),
        (lambda: RandomWalk(BASE, {"mass": (0, 2)}, {"mass": 0.0}), "deviations['mass'] is 0.0, expected"),
        (
            lambda: DomainRandomisation(BASE, {"mass": 3.0}),
            "distributions['mass'] is 3.0, expected one such as Uniform(low, high)",
        ),
        (lambda: Uniform(2.0, 1.0), "The bounds are 2 and 1, expected the lower one first and below the other"),
        (lambda: LogUniform(0.0, 1.0), "low is 0.0, expected a number above 0"),
        (lambda: Normal(0.0, -1.0), "deviation is -1.0, expected a number above 0"),
        (
            lambda: Normal(0.0, 1.0, low=5.0),
            "a range into which only 3e-07 of the draws of mean 0 and deviati",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()
