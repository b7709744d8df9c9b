"""Acting: the share of random actions, size and sign of the noise, and flipped actions."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, norm

from urbe.deep.core.explore import choose
from urbe.deep.core.last_layer import LastLayer
from urbe.deep.core.networks import Layer
from urbe.deep.core.precision import double
from urbe.deep.core.schedules import epsilon_at
from urbe.deep.settings import Epsilon, Network, Settings

N, A, F = 20_000, 3, 2
GREEDY = Settings(network=Network((F,)), epsilon=Epsilon(0.0, 0.0, 1))


@pytest.fixture(autouse=True)
def _double():
    with double():
        yield


def head_that_says(settings, w):
    """A head whose output is w for any input."""
    head = jax.eval_shape(lambda: settings.variance.init(settings, jax.random.key(0), F, A))
    head = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), head)
    return head._replace(layers=(Layer(jnp.zeros((F, A), jnp.float32), jnp.asarray(w, jnp.float32)),))


@cache
def compiled(settings):
    return jax.jit(partial(choose, settings), compiler_options={"xla_backend_optimization_level": 0})


def chosen(settings, q, w=None, key=0, step=0):
    """What N environments do that all see the values q and the variances w."""
    head = None if w is None else head_that_says(settings, w)
    zeros = jnp.zeros((N, F), jnp.float32)
    values = jnp.broadcast_to(jnp.asarray(q, jnp.float32), (N, A))
    return compiled(settings)(head, jnp.int32(step), jax.random.key(key), zeros, zeros, values)


def with_head(**changes):
    return replace(GREEDY, variance=LastLayer(hidden=(), **changes))


def test_epsilon_is_a_line_and_then_flat():
    law = Epsilon(0.9, 0.1, 8)
    for step, share in ((0, 0.9), (2, 0.7), (4, 0.5), (8, 0.1), (9, 0.1), (2**31 - 1, 0.1)):
        assert float(epsilon_at(law, jnp.int32(step))) == pytest.approx(share, abs=1e-6)
    assert float(epsilon_at(Epsilon(0.0, 0.5, 1), jnp.int32(0))) == 0.0
    assert epsilon_at(law, jnp.int32(0)).dtype == jnp.float32


def test_the_greedy_agent_is_greedy_and_takes_the_first_of_equal_actions():
    assert (chosen(GREEDY, [1.0, 3.0, 2.0]).action == 1).all()
    assert (chosen(GREEDY, [3.0, 1.0, 3.0]).action == 0).all()
    assert not chosen(GREEDY, [1.0, 3.0, 2.0]).flipped.any()


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_random_actions_come_with_their_share_and_are_uniform(share):
    found = chosen(replace(GREEDY, epsilon=Epsilon(share, share, 1)), [1.0, 3.0, 2.0])
    counts = np.bincount(found.action, minlength=A)
    # one key in a million fails by chance
    assert binomtest(int(counts[1]), N, 1 - share * 2 / 3).pvalue > 1e-6
    assert binomtest(int(counts[0]), int(counts[0] + counts[2]), 0.5).pvalue > 1e-6
    if share == 1.0:
        assert chisquare(counts).pvalue > 1e-6
    assert not found.flipped.any()  # chance alone is not the noise's doing
    assert float(found.epsilon) == pytest.approx(share)


def test_the_share_follows_the_step():
    law = replace(GREEDY, epsilon=Epsilon(1.0, 0.0, 10))
    assert (chosen(law, [1.0, 3.0, 2.0], step=10).action == 1).all()
    assert binomtest(int((chosen(law, [1.0, 3.0, 2.0], step=5).action != 1).sum()), N, 1 / 3).pvalue > 1e-6


def test_noise_is_normal_with_beta_standard_deviations_and_independent():
    """Action 0 is above action 1 with probability Phi(gap / beta sqrt(w0 + w1))."""
    found = chosen(with_head(beta=2.0), [0.5, 0.0, -100.0], [0.04, 0.09, 0.0])
    expected = norm.cdf(0.5 / (2.0 * np.sqrt(0.13)))
    assert binomtest(int((found.action == 0).sum()), N, expected).pvalue > 1e-6
    assert np.array_equal(found.flipped, found.action != 0)
    np.testing.assert_allclose(found.w[7], [0.04, 0.09, 0.0], rtol=1e-6)


def test_a_variance_below_zero_is_none():
    found = chosen(with_head(beta=2.0), [1.0, 3.0, 2.0], [-1.0, -2.0, 0.0])
    assert (found.action == 1).all()
    assert not found.flipped.any()
    assert found.w[0].tolist() == [-1.0, -2.0, 0.0]  # reported as it is


def test_beta_zero_is_greedy_and_draws_the_same_random_actions():
    share = Epsilon(0.4, 0.4, 1)
    plain = chosen(replace(GREEDY, epsilon=share), [1.0, 3.0, 2.0])
    none = chosen(replace(with_head(beta=0.0), epsilon=share), [1.0, 3.0, 2.0], [4.0, 4.0, 4.0])
    assert jnp.array_equal(plain.action, none.action)


def test_the_key_decides():
    a, b, c = (chosen(with_head(beta=2.0), [0.0, 0.1, 0.0], [1.0, 1.0, 1.0], key).action for key in (0, 0, 1))
    assert jnp.array_equal(a, b)
    assert not jnp.array_equal(a, c)


def test_values_are_moved_by_the_noise_that_is_handed_in():
    settings = with_head(beta=0.5)
    noise = jnp.asarray([[1.0, -1.0, 2.0]], jnp.float32)
    zeros = jnp.zeros((1, F), jnp.float32)
    head = head_that_says(settings, [4.0, 4.0, -1.0])
    values, w = settings.variance.perturbed(
        settings, head.layers, noise, zeros, zeros, jnp.asarray([[1.0, 1.0, 1.0]], jnp.float32)
    )
    assert values.tolist() == [[2.0, 0.0, 1.0]]
    assert w.tolist() == [[4.0, 4.0, -1.0]]
