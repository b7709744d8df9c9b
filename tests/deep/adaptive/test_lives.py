"""Lives: targets of actions that change nothing."""

import jax
import jax.numpy as jnp
import numpy as np

from urbe.belief import Switching
from urbe.deep.adaptive.learner import init_run
from urbe.deep.adaptive.lives import _draw_truth, _ratio, begin_life, inputs_of_life, live, params_of
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.deep.core.dueling import DuelingNetwork
from urbe.simulators import CartPole, MarsRover, UncertaintySet
from urbe.simulators.mars_rover import one_hot

ROVER = MarsRover(size=4, start_zone=(1, 1), encoding=one_hot, step_reward=-0.001, time_limit=20)
MODEL = BeliefModel.of(
    ROVER, UncertaintySet.grid(ROVER, include_nominal=False, failure=(0.1, 0.6)), Switching(0.2, "episode")
)
SETTINGS = AdaptiveSettings(network=DuelingNetwork((8,)), lives=2, minibatches=1, restart=0.0)
BELIEF = np.array([0.9, 0.1])


def bump(q):
    """A step against the upper border, where the values of actions are `q`."""
    run = init_run(SETTINGS, MODEL, jax.random.key(0))
    life = begin_life(SETTINGS, MODEL, jax.random.key(1))
    life = life._replace(state=jnp.int32(2), log_b=jnp.log(jnp.asarray([BELIEF], jnp.float32)), elapsed=jnp.int32(3))
    x = inputs_of_life(SETTINGS, MODEL, life)
    return life, *live(SETTINGS, MODEL, run.q, life, x, jnp.asarray(q), jnp.int32(0), jax.random.key(2))


def test_a_greedy_wait_lasts_until_the_end_of_the_episode():
    _, after, seen = bump([1.0, 0.0, 0.0, 0.0])
    assert bool(seen.ended)
    assert float(seen.finished_length) == 3 + ROVER.time_limit
    assert float(seen.ratio) == np.float32(SETTINGS.boundary)
    assert int(after.state) == 0
    np.testing.assert_allclose(np.exp(after.log_b[0]), 0.8 * BELIEF + 0.2 * 0.5, rtol=1e-5)  # the hazard was applied


def test_a_wait_that_is_not_greedy_is_learned_about_and_taken_back():
    before, after, seen = bump([0.0, 1.0, 0.0, 0.0])
    for now, then in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(now, then)
    assert not bool(seen.ended)
    assert float(seen.ratio) == 0.0
    assert float(seen.target) == float(bump([1.0, 0.0, 0.0, 0.0])[2].target)


def test_ratios_are_of_the_mixtures_and_at_most_one():
    """nature / data = (0.5 0.2 + 0.5 0.8) / (0.9 0.2 + 0.1 0.8); where nature expects more of what happened, 1."""
    likelihood, believed, nature = np.array([0.2, 0.8]), np.array([0.9, 0.1]), np.array([0.5, 0.5])
    up = _ratio(*(jnp.asarray(each, jnp.float32) for each in (np.log(likelihood), nature, believed)))
    down = _ratio(*(jnp.asarray(each, jnp.float32) for each in (np.log(likelihood), believed, nature)))
    assert float(up) == 1.0
    np.testing.assert_allclose(down, 0.26 / 0.5, rtol=1e-6)
    impossible = jnp.full(2, -jnp.inf)
    assert float(_ratio(impossible, jnp.asarray(nature), jnp.asarray(believed))) == 1.0


def test_true_parameters_are_members_or_lie_between_neighbours():
    gains = (-4.0, -3.0, 1.0, 2.5, 5.0)
    members = UncertaintySet.grid(CartPole(), include_nominal=False, force=gains)
    prior = (0.4, 0.1, 0.2, 0.0, 0.3)
    model = BeliefModel.of(CartPole(), members, Switching(0.1, prior=prior))
    u = np.random.default_rng(0).random((2000, 4)).astype(np.float32)
    for share in (0.0, 0.6):
        settings = AdaptiveSettings(between=share)
        truth = np.asarray(jax.vmap(lambda one, of=settings: _draw_truth(of, model, one))(jnp.asarray(u)))
        np.testing.assert_allclose(truth.sum(axis=1), 1.0, rtol=1e-5)
        certain = (truth == 1.0).any(axis=1)
        assert abs(certain.mean() - (1.0 - share)) < 0.05
        np.testing.assert_allclose(np.bincount(truth[certain].argmax(axis=1), minlength=5) / certain.sum(), prior,
                                   atol=0.05)  # fmt: skip
        force = np.array([float(params_of(model, jnp.asarray(one)).force) for one in truth[~certain][:40]])
        assert ((force > -4.0) & (force < 5.0)).all()
        nearest = {0: (1, 2), 1: (0, 2), 2: (3, 4), 3: (2, 4), 4: (3, 2)}
        for one in truth[~certain]:
            pair = np.flatnonzero(one)
            assert len(pair) == 2
            assert pair[1] in nearest[pair[0]] or pair[0] in nearest[pair[1]]
