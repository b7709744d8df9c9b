"""The recurrent unit against the textbook equations in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

from urbe.deep.core.gru import GRU, gru_step, init_gru

INPUTS, H = 5, 3


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def by_hand(gru, h, x):
    """One unit after the other, in float64."""
    w, u, b = (np.asarray(part, np.float64) for part in gru)
    after = np.zeros(H)
    for i in range(H):
        z, g, n = i, H + i, 2 * H + i
        keep = sigmoid(x @ w[:, z] + h @ u[:, z] + b[z])
        see = sigmoid(x @ w[:, g] + h @ u[:, g] + b[g])
        after[i] = (1 - keep) * np.tanh(x @ w[:, n] + see * (h @ u[:, n]) + b[n]) + keep * h[i]
    return after


def test_a_step_is_the_textbooks():
    rng = np.random.default_rng(0)
    gru = GRU(*(rng.normal(size=shape).astype(np.float32) for shape in ((INPUTS, 3 * H), (H, 3 * H), (3 * H,))))
    h, x = rng.normal(size=(4, H)).astype(np.float32), rng.normal(size=(4, INPUTS)).astype(np.float32)
    expected = np.stack([by_hand(gru, *pair) for pair in zip(h, x, strict=True)])
    found = gru_step(gru, jnp.asarray(h), jnp.asarray(x))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)  # float32 against float64


def test_arrays_of_another_shape_are_noticed():
    gru = init_gru(jax.random.key(0), INPUTS, H)
    with pytest.raises(TypeCheckError, match="parameter 'x'"):
        gru_step(gru, jnp.zeros((2, H)), jnp.zeros((2, INPUTS), int))


def test_first_weights_are_within_their_bound_and_follow_from_the_key():
    one, again, other = (init_gru(jax.random.key(seed), INPUTS, H) for seed in (0, 0, 1))
    assert np.abs(one.inputs).max() <= H**-0.5
    assert np.array_equal(one.hidden, again.hidden)
    assert not np.array_equal(one.hidden, other.hidden)
    assert not np.array_equal(one.inputs[:H], one.hidden)
