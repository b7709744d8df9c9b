"""Schedules of domain randomisation: how often each member is drawn, and for how long."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.simulators import RandomMember


class Params(NamedTuple):
    length: float = 1.0
    mass: float = 0.1


class Others(NamedTuple):
    width: float = 1.0


MEMBERS = (Params(1.0, 0.1), Params(2.0, 0.2), Params(4.0, 0.4))


@partial(jax.jit, static_argnums=(0, 1))
def played(schedule, episodes, key):
    def one(carry, own):
        return schedule.next(carry, own), schedule.params(carry)

    return jax.lax.scan(one, schedule.begin(key), jax.random.split(key, episodes))[1]


def test_members_are_equally_likely_and_drawn_whole():
    found = played(RandomMember(MEMBERS), 3000, jax.random.key(0))
    counts = [int((found.length == np.float32(member.length)).sum()) for member in MEMBERS]
    assert sum(counts) == 3000
    # a binomial count with p = 1/3 is within 5 deviations but for one seed in a million
    assert all(abs(count - 1000) < 5 * (3000 * 2 / 9) ** 0.5 for count in counts)
    np.testing.assert_array_equal(found.mass, np.asarray(found.length, np.float32) * np.float32(0.1))
    assert found.length.dtype == jnp.float32


def test_draws_of_successive_episodes_are_independent():
    length = np.asarray(played(RandomMember(MEMBERS[:2]), 4000, jax.random.key(1)).length)
    same = (length[1:] == length[:-1]).mean()
    assert abs(same - 0.5) < 5 * 0.5 / 4000**0.5


@pytest.mark.parametrize("hazard", [0.0, 0.05, 0.5, 1.0])
def test_members_are_drawn_afresh_with_their_probability(hazard):
    members = tuple(Params(float(k)) for k in range(50))
    length = np.asarray(played(RandomMember(members, hazard), 4000, jax.random.key(2)).length)
    changed, expected = (length[1:] != length[:-1]).mean(), hazard * 49 / 50  # the same one may be drawn again
    assert abs(changed - expected) <= 5 * (expected * (1 - expected) / 4000) ** 0.5


def test_the_episode_is_counted():
    schedule = RandomMember(MEMBERS, 0.5)
    carry = schedule.begin(jax.random.key(0))
    for episode in range(3):
        assert int(carry.episode) == episode
        carry = schedule.next(carry, jax.random.key(episode))


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="members is empty, expected at least one set of parameters"):
        RandomMember(())
    with pytest.raises(ValueError, match=r"members\[1\] has the parameters width, expected length, mass"):
        RandomMember((MEMBERS[0], Others()))
    with pytest.raises(ValueError, match=r"hazard is 1\.5, expected"):
        RandomMember(MEMBERS, 1.5)
