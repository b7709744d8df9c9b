"""Gradients that must be exactly zero, and losses against plain formulas."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles.paper_agent import PlainAdam
from urbe.deep.core.last_layer import (
    LastLayer,
    head_input,
    head_loss,
    learn_head,
    residual_scale,
    track_residual,
)
from urbe.deep.core.learner import init_learner
from urbe.deep.core.loss import q_loss, q_step
from urbe.deep.core.optimisers import AdamMoments, global_norm, optimise
from urbe.deep.core.precision import double
from urbe.deep.core.replay import Successors, Transition, insert
from urbe.deep.core.schedules import rate_at
from urbe.deep.core.variances import Visits
from urbe.deep.settings import Adam, Decay, Network, Settings

HEAD = LastLayer(hidden=(5,))
SETTINGS = Settings(network=Network((6, 4), (2.0,)), variance=HEAD, batch=4, capacity=8, warm_up=1)


@pytest.fixture(autouse=True)
def _double():
    with double():
        yield


def is_zero(tree):
    return all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(tree))


def is_somewhere(tree):
    """In every layer there is a weight that matters."""
    return all(np.asarray(layer.weight).any() for layer in tree)


@pytest.fixture(scope="module")
def learner():
    with double():
        return jax.jit(lambda key: init_learner(SETTINGS, key, 3, 2, 2, 1))(jax.random.key(1))


@pytest.fixture(scope="module")
def obs():
    return jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 3)), jnp.float32)


ACTION = jnp.asarray([0, 1, 1, 0, 1], jnp.int32)


def visits_of(q, obs):
    phi, next_phi = (SETTINGS.network.features(q, o) for o in obs)
    return Visits(obs[0], phi, ACTION, jnp.zeros(5, bool), obs[1], next_phi, ACTION)


@pytest.mark.parametrize("raw", [False, True])
def test_the_heads_loss_reaches_the_head_and_not_the_trunk(learner, obs, raw):
    variance = replace(HEAD, raw_input=raw)
    head = jax.jit(lambda key: variance.init(SETTINGS, key, 3, 2))(jax.random.key(2))

    def loss(q, layers, wanted):
        return head_loss(SETTINGS, variance, layers, visits_of(q, obs), wanted)

    of_q, of_head, of_target = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(
        learner.q, head.layers, jnp.ones(5, jnp.float32)
    )
    assert is_zero(of_q)
    assert is_somewhere(of_head)
    assert is_zero(of_target)


def test_the_heads_input_stops_gradients_whatever_it_is_used_for(learner, obs):
    def used(q, o):
        return head_input(SETTINGS, HEAD, o, SETTINGS.network.features(q, o)).sum()

    assert is_zero(jax.jit(jax.grad(used, argnums=(0, 1)))(learner.q, obs[0]))


def test_a_step_of_the_head_leaves_everything_else_alone_and_its_target_is_fixed(learner, obs):
    """The step is that of a target computed beforehand: no gradient goes through w(s', a')."""
    visits = visits_of(learner.q, obs)
    settings = replace(SETTINGS, decay=Decay(0.5, 10))
    after, nu = jax.jit(partial(learn_head, settings, HEAD))(learner.head, visits, jnp.int32(5))
    for name in ("gram", "residual", "residual_weight"):
        assert jax.tree.all(jax.tree.map(jnp.array_equal, getattr(after, name), getattr(learner.head, name)))
    sigma = np.asarray(learner.head.gram.sigma)
    x = np.asarray(visits.phi, float)
    nus = [row @ sigma[a] @ row for row, a in zip(x, ACTION, strict=True)]
    assert float(nu) == pytest.approx(np.mean(nus))
    # by hand, with numbers for targets
    w = np.asarray(jax.nn.relu(visits.next_phi @ learner.head.layers[0].weight) @ learner.head.layers[1].weight)
    y = np.array(nus) + 0.81 * np.maximum(w[np.arange(5), ACTION], 0.0)
    gradient = jax.grad(lambda layers: head_loss(SETTINGS, HEAD, layers, visits, jnp.asarray(y, jnp.float32)))(
        learner.head.layers
    )
    rate = jnp.float32(0.75 * HEAD.learning_rate)  # half way to half of it
    moved, _ = optimise(settings.optimiser, rate, learner.head.layers, learner.head.optimiser, gradient, None)
    for mine, theirs in zip(jax.tree.leaves(after.layers), jax.tree.leaves(moved), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-7)


def test_the_q_loss_reaches_all_of_the_network_and_nothing_through_its_target(learner, obs):
    def loss(q, wanted):
        return q_loss(SETTINGS, q, obs[0], ACTION, wanted)[0]

    of_q, of_target = jax.jit(jax.grad(loss, argnums=(0, 1)))(learner.q, jnp.ones(5, jnp.float32))
    assert is_somewhere(of_q)
    assert is_zero(of_target)


def test_a_q_step_leaves_the_head_alone(learner, obs):
    replay = learner.replay
    transition = Transition(
        obs[0], ACTION, Successors(jnp.ones((5, 2)), jnp.ones((5, 2, 1)), jnp.ones((5, 2, 1, 3))), jnp.zeros(5, bool)
    )
    replay = jax.jit(insert)(replay, transition, obs[1], ACTION, jnp.zeros((5, 2), jnp.float32), jnp.int32(-1))
    rate = jnp.float32(SETTINGS.learning_rate)
    step = jax.jit(lambda x, r, p: q_step(SETTINGS, x.q, x.target, x.optimiser, x.head, r, x.version, p, rate))(
        learner, replay, jnp.arange(4, dtype=jnp.int32)
    )
    assert jax.tree.all(jax.tree.map(jnp.array_equal, step.head, learner.head))
    assert not jnp.array_equal(step.q[0].weight, learner.q[0].weight)


@pytest.mark.parametrize("limit", [None, 0.5])
def test_the_loss_is_squared_and_linear_beyond_the_limit_with_no_jump(learner, obs, limit):
    settings = replace(SETTINGS, huber=limit)
    q = np.asarray(
        jax.nn.relu(jax.nn.relu(obs[0] / 2 @ learner.q[0].weight) @ learner.q[1].weight) @ learner.q[2].weight
    )
    chosen = q[np.arange(5), ACTION]
    td = np.array([-3.0, -0.5, 0.2, 0.5, 3.0])
    wanted = jnp.asarray(chosen + td, jnp.float32)
    loss, found = jax.jit(partial(q_loss, settings))(learner.q, obs[0], ACTION, wanted)
    np.testing.assert_allclose(found, td, atol=1e-6)
    if limit is None:
        assert float(loss) == pytest.approx((9 + 0.25 + 0.04 + 0.25 + 9) / 5, rel=1e-5)
        return
    # the integral of min(2 |d|, 2 limit): .25 up to the limit, then .5 * 2 * 2.5 more
    assert float(loss) == pytest.approx((2 * (0.25 + 2.5) + 0.25 + 0.04 + 0.25) / 5, rel=1e-5)

    # raising every output by x lowers every error by x
    def raised(x):
        last = learner.q[-1]._replace(bias=learner.q[-1].bias + x)
        return q_loss(settings, (*learner.q[:-1], last), obs[0], ACTION, wanted)[0]

    slope = jax.jit(jax.grad(raised))(jnp.float32(0.0))
    assert float(slope) == pytest.approx(-2 * np.clip(td, -0.5, 0.5).mean(), abs=1e-6)
    assert float(jax.jit(jax.grad(raised))(jnp.float32(2.0))) == pytest.approx(
        -2 * np.clip(td - 2.0, -0.5, 0.5).mean(), abs=1e-6
    )


@pytest.mark.parametrize("limit", [None, 500.0])
def test_adam_is_that_of_the_paper_over_hundreds_of_steps(limit):
    rng = np.random.default_rng(4)
    adam, rate = Adam(0.85, 0.99, 1e-6), 0.05
    weights = [(rng.normal(size=(3, 2)), rng.normal(size=2))]
    # some gradients vanish for long, some are tiny
    scale = [(np.array([[1.0, 1e-7], [0.0, 5.0], [1e3, 1.0]]), np.array([1.0, 0.0]))]
    mine = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), weights)
    moments, plain, expected = adam.init(mine), PlainAdam(adam, rate, limit), weights
    step = jax.jit(lambda w, m, g: optimise(adam, jnp.float32(rate), w, m, g, limit))
    for t in range(400):
        gradient = [tuple(s * rng.normal(size=s.shape) * (t % 50 < 40) for s in pair) for pair in scale]
        mine, moments = step(mine, moments, jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), gradient))
        expected = plain.step(expected, gradient)
    assert isinstance(moments, AdamMoments)
    assert int(moments.steps) == 400
    assert 100 < plain.clipped < 300 or limit is None
    for found, wanted in zip(jax.tree.leaves(mine), jax.tree.leaves(expected), strict=True):
        assert found.dtype == jnp.float32
        # 400 additions of float32 numbers of size up to 10, each rounded to 5e-7
        np.testing.assert_allclose(found, wanted, atol=2e-4)


def test_a_norm_is_that_of_all_arrays_together():
    rng = np.random.default_rng(0)
    tree = [(rng.normal(size=(5, 300)), rng.normal(size=300)), (rng.normal(size=(300, 2)), np.zeros(2))]
    wanted = np.linalg.norm(np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(tree)]))
    found = jax.jit(global_norm)(jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree))
    assert float(found) == pytest.approx(wanted, rel=1e-6)


def test_gradients_up_to_the_limit_are_left_alone_to_the_last_bit():
    """And a longer one keeps its direction."""
    gradient = (jnp.asarray([3.0, -4.0], jnp.float32),)
    weights, moments = (jnp.zeros(2, jnp.float32),), Adam().init(gradient)
    step = partial(optimise, Adam(), jnp.float32(0.1), weights, moments, gradient)
    for limit in (5.0, 7.0):
        assert jax.tree.all(jax.tree.map(jnp.array_equal, step(limit), step(None)))
    (first,), _, _ = step(2.5)[1]
    np.testing.assert_allclose(first, 0.1 * np.array([1.5, -2.0]), rtol=1e-6)


def test_a_rate_falls_to_its_last_value_and_stays_there():
    steps = jnp.arange(0, 131, 10, dtype=jnp.int32)
    linear = [float(rate_at(Decay(0.2, 100), 0.5, step)) for step in steps]
    np.testing.assert_allclose(linear, np.interp(steps, [0, 100], [0.5, 0.1]), rtol=1e-6)
    cosine = [float(rate_at(Decay(0.2, 100, cosine=True), 0.5, step)) for step in steps]
    assert cosine[0] == 0.5
    np.testing.assert_allclose([cosine[5], *cosine[10:]], [0.3, *[0.1] * 4], rtol=1e-6)
    slopes = np.diff(cosine[:11])
    assert (slopes < 0).all()
    np.testing.assert_allclose(slopes, slopes[::-1], atol=1e-7)  # the same at both ends, where it is slow
    assert slopes[0] > linear[1] - linear[0]
    # a third of the way is 60 degrees, whose cosine is a half
    third = rate_at(Decay(0.0, 3, cosine=True), 1.0, jnp.int32(1))
    assert float(third) == pytest.approx(0.75, rel=1e-6)
    assert float(rate_at(Decay(), 0.3, jnp.int32(10**6))) == np.float32(0.3)


def test_the_residual_of_an_action_is_the_decayed_mean_of_its_squared_errors():
    variance = LastLayer(residual_decay=0.9)
    head = variance.init(SETTINGS, jax.random.key(0), 3, 3)
    assert residual_scale(variance, head).tolist() == [1.0, 1.0, 1.0]  # nothing known
    batches = [([0, 0, 1], [1.0, 3.0, 2.0]), ([1, 1, 1], [1.0, 1.0, 1.0]), ([0, 0, 0], [0.0, 0.0, 0.0])]
    for action, td in batches:
        head = track_residual(variance, head, jnp.asarray(action, jnp.int32), jnp.asarray(td, jnp.float32))
    weights = np.array([0.1 * 0.9, 0.1])  # of the earlier and the later of two batches
    expected = [np.average([5.0, 0.0], weights=weights), np.average([4.0, 1.0], weights=weights), 1.0]
    np.testing.assert_allclose(residual_scale(variance, head), expected, rtol=1e-12)
    assert residual_scale(LastLayer(), head).tolist() == [1.0, 1.0, 1.0]
    assert track_residual(LastLayer(), head, ACTION, jnp.ones(5, jnp.float32)) is head
