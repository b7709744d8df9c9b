"""The minimum of several Q-functions, as one network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.deep import DuelingNetwork, Network
from urbe.deep.core.minimum import Minimum, MinimumWeights, at_place, placed
from urbe.deep.core.networks import q_values
from urbe.testing import check_network

OBS = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)), jnp.float32)


@pytest.mark.parametrize("network", [Network((6, 4)), DuelingNetwork((6, 4))], ids=["plain", "dueling"])
def test_it_is_a_network(network):
    check_network(Minimum(3, network))


def test_values_are_the_lowest_of_those_that_count():
    network = Minimum(3, Network((6, 4)))
    each = network.init(jax.random.key(0), 3, 2).each
    q = np.stack([q_values(network.network, at_place(each, jnp.int32(k)), OBS) for k in range(3)])
    for counts in ([1, 1, 1], [1, 0, 1], [0, 1, 0]):
        found = q_values(network, MinimumWeights(each, jnp.asarray(counts, jnp.float32)), OBS)
        np.testing.assert_allclose(found, q[np.flatnonzero(counts)].min(axis=0), rtol=1e-5, atol=1e-6)


def test_weights_are_placed_where_they_are_found():
    network = Minimum(3, Network((6, 4)))
    each = network.init(jax.random.key(0), 3, 2).each
    one = network.network.init(jax.random.key(7), 3, 2)
    changed = placed(each, jnp.int32(1), one)
    for k, expected in enumerate((at_place(each, jnp.int32(0)), one, at_place(each, jnp.int32(2)))):
        pairs = zip(jax.tree.leaves(at_place(changed, jnp.int32(k))), jax.tree.leaves(expected), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="members is 0, expected"):
        Minimum(0)
    with pytest.raises(ValueError, match="network is None, expected a Network"):
        Minimum(2, None)
