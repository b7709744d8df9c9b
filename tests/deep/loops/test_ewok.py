"""EWoK: the kept draw, against the exact distribution by enumeration of all draws."""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.deep.loops.ewok import WorstKernel
from urbe.deep.settings import Settings
from urbe.simulators import Outcomes

DRAWN = 20_000
P = {"nominal": (0.5, 0.3, 0.2), "other": (0.1, 0.1, 0.8)}
REWARD, TERMINATED = np.array([0.0, 0.5, -0.25]), np.array([False, False, True])
TABLE = np.array([[9.0, 9.0], [1.0, 0.2], [-0.3, 0.4], [5.0, 5.0]])  # Q of the states; the last one ends
DISCOUNT = 0.9
WORTH = REWARD + DISCOUNT * ~TERMINATED * TABLE[1:].max(axis=1)


class ForkParams(NamedTuple):
    first: float = P["nominal"][0]
    second: float = P["nominal"][1]


@dataclass(frozen=True)
class Fork:
    """From state 0 to 1, 2 or 3, whatever is done."""

    n_actions: int = 2
    time_limit: int = 9

    def nominal(self):
        return jax.tree.map(jnp.float32, ForkParams())

    def start(self, _key, _params):
        return jnp.int32(0)

    def outcomes(self, _state, _action, params):
        chances = jnp.stack([params.first, params.second, 1.0 - params.first - params.second])
        return Outcomes(
            chances, jnp.arange(1, 4, dtype=jnp.int32), jnp.asarray(REWARD, jnp.float32), jnp.asarray(TERMINATED)
        )

    def observe(self, state):
        return jax.nn.one_hot(state, 4, dtype=jnp.float32)


@dataclass(frozen=True)
class Table:
    """Q-values in a table, one row per state."""

    n_features: int = 4

    def init(self, _key, obs_size, n_actions):
        return jnp.zeros((obs_size, n_actions), jnp.float32)

    def inputs(self, obs):
        return obs

    def features(self, _weights, obs):
        return obs

    def values(self, weights, phi):
        return phi @ weights

    def training_values(self, weights, obs):
        return obs @ weights

    def sizes(self, weights):
        return weights.shape


SETTINGS = Settings(network=Table(), discount=DISCOUNT)


def exact(chances, kappa, draws):
    """How likely each outcome is kept: a sum over all draws there may be."""
    kept = np.zeros(3)
    for drawn in product(range(3), repeat=draws):
        worth = WORTH[list(drawn)]
        weight = np.exp(-(worth - worth.min()) / kappa)
        for place, share in zip(drawn, weight / weight.sum(), strict=True):
            kept[place] += np.prod([chances[each] for each in drawn]) * share
    return kept


def frequencies(kernel, uncertain=None):
    fork = Fork()

    def one(key):
        return kernel.arrive(
            SETTINGS, jnp.asarray(TABLE, jnp.float32), fork, key, jnp.int32(0), jnp.int32(0), fork.nominal(), uncertain
        )

    arrived = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), DRAWN))
    places = np.asarray(arrived.state) - 1
    np.testing.assert_allclose(arrived.reward, REWARD[places])
    np.testing.assert_array_equal(arrived.terminated, TERMINATED[places])
    return np.bincount(places, minlength=3) / DRAWN


def near(found, expected):
    """Within five deviations of a binomial share: a false alarm in two million."""
    deviation = np.sqrt(expected * (1.0 - expected) / DRAWN)
    assert (np.abs(found - expected) <= 5 * deviation + 1e-12).all(), (found, expected)


@pytest.mark.parametrize(("kappa", "draws"), [(0.3, 1), (0.3, 2), (0.5, 4), (2.0, 3)])
def test_outcomes_are_kept_with_their_exact_probability(kappa, draws):
    near(frequencies(WorstKernel(kappa, draws)), exact(P["nominal"], kappa, draws))


def test_a_high_temperature_leaves_the_dynamics_as_they_are():
    for kappa in (1e6, np.inf):
        near(frequencies(WorstKernel(kappa, 4)), np.array(P["nominal"]))


@pytest.mark.parametrize("kappa", [1e-3, 1e-12, 1e-300])
def test_a_low_temperature_keeps_the_worst_of_the_draws(kappa):
    order = np.argsort(WORTH)  # of three draws, the worst is outcome `order[i]` if none is worse and not all are better
    chances = np.array(P["nominal"])[order]
    tail = np.append(np.cumsum(chances[::-1])[::-1], 0.0)
    expected = np.zeros(3)
    expected[order] = tail[:-1] ** 3 - tail[1:] ** 3
    near(frequencies(WorstKernel(kappa, 3)), expected)


def test_draws_come_from_the_members_where_there_are_some():
    members = ForkParams(*(jnp.asarray([P[name][i] for name in P], jnp.float32) for i in range(2)))
    mixture = np.mean([P[name] for name in P], axis=0)
    near(frequencies(WorstKernel(np.inf, 2), members), mixture)
    near(frequencies(WorstKernel(0.4, 2), members), exact(mixture, 0.4, 2))


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="kappa is 0, expected a positive number"):
        WorstKernel(0.0)
    with pytest.raises(ValueError, match="kappa is -1"):
        WorstKernel(-1.0)
    with pytest.raises(ValueError, match="draws is 0, expected"):
        WorstKernel(1.0, 0)
