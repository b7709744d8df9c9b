"""The learning step against the paper's listing in plain float64, transition by transition.

Both get the same transitions, first weights, noise and minibatches; actions must be equal, numbers to rounding.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles.learner_random import Randomness
from oracles.paper_agent import PaperAgent, as_lists
from urbe.deep.core.keys import root_key
from urbe.deep.core.last_layer import LastLayer
from urbe.deep.core.learner import begin, init_learner, observe
from urbe.deep.core.natures import Average, CVaR, Soft, Worst
from urbe.deep.core.precision import double
from urbe.deep.core.replay import Successors, Transition
from urbe.deep.settings import Adam, CopyEvery, Decay, Epsilon, Network, Settings

OBS, ACTIONS, STEPS = 3, 3, 50
RATE = 0.01
PLAIN = Settings(
    network=Network((7, 6)),
    discount=0.8,
    learning_rate=RATE,
    batch=9,
    capacity=32,  # smaller than the run: the oldest transitions are overwritten
    warm_up=4,
    copy=CopyEvery(updates=7),
    epsilon=Epsilon(0.5, 0.1, 30),
    clip_norm=None,
)
CLIPPED = 3.0
HEAD = LastLayer(beta=1.5, mu=0.3, hidden=(5,), learning_rate=RATE)
CALIBRATED = replace(
    HEAD, non_negative=True, residual_decay=0.9, forget=0.9, refresh_every=6, normalise=True, constant=True
)
# settings, members, outcomes, environments side by side
FAST = {
    "dqn": (PLAIN, 1, 1, 1),
    "robust, huber, every second step, three environments": (
        replace(PLAIN, nature=Worst(), huber=0.3, train_every=2, copy=CopyEvery(episodes=3)), 4, 2, 3,
    ),
    "ube": (replace(PLAIN, variance=HEAD, copy=CopyEvery(episodes=2)), 1, 1, 1),
    "urbe, calibrated, two environments": (replace(PLAIN, nature=Worst(), variance=CALIBRATED), 3, 2, 2),
    "soft, double, scaled, raw, replayed, rebuilt": (
        replace(
            PLAIN,
            nature=Soft((0.2, 0.5, 0.3)),
            double=True,
            network=Network((7, 6), (2.0, 0.5, 1.0)),
            variance=replace(HEAD, raw_input=True, replayed=4, rebuild_every=8),
        ), 3, 2, 1,
    ),
    "clipped, cosine, three steps every fourth": (
        replace(PLAIN, clip_norm=CLIPPED, decay=Decay(0.2, 40, cosine=True), train_every=4, gradient_steps=3), 2, 1, 1,
    ),
    "ube, clipped, linear, averaged target, two environments": (
        replace(
            PLAIN, variance=HEAD, clip_norm=CLIPPED, decay=Decay(0.0, 60), copy=CopyEvery(updates=2, tau=0.3),
            train_every=3, gradient_steps=2,
        ), 1, 1, 2,
    ),
}  # fmt: skip
SLOW = {
    "clipped": (replace(PLAIN, clip_norm=CLIPPED), 1, 1, 1),
    "linear decay": (replace(PLAIN, decay=Decay(0.1, 30)), 1, 1, 1),
    "cosine decay": (replace(PLAIN, decay=Decay(0.1, 30, cosine=True)), 1, 1, 1),
    "averaged target": (replace(PLAIN, copy=CopyEvery(updates=1, tau=0.1)), 1, 1, 1),
    "averaged target, double, after episodes": (
        replace(PLAIN, double=True, copy=CopyEvery(episodes=1, tau=0.5)), 2, 1, 1,
    ),
    "five steps every other": (replace(PLAIN, train_every=2, gradient_steps=5), 1, 1, 1),
    "robust": (replace(PLAIN, nature=Worst()), 4, 2, 1),
    "soft robust": (replace(PLAIN, nature=Average()), 4, 1, 1),
    "cvar": (replace(PLAIN, nature=CVaR(0.6)), 4, 2, 1),
    "double": (replace(PLAIN, double=True), 1, 1, 1),
    "other moments": (replace(PLAIN, optimiser=Adam(0.8, 0.95, 1e-3)), 1, 1, 1),
    "urbe": (replace(PLAIN, nature=Worst(), variance=HEAD), 4, 2, 1),
    "calibrated": (replace(PLAIN, variance=CALIBRATED), 1, 1, 1),
    "softplus": (replace(PLAIN, variance=replace(HEAD, non_negative=True)), 1, 1, 1),
    "raw input": (replace(PLAIN, variance=replace(HEAD, raw_input=True)), 1, 1, 1),
    "linear head": (replace(PLAIN, variance=replace(HEAD, hidden=())), 1, 1, 1),
    "replayed": (replace(PLAIN, variance=replace(HEAD, replayed=4)), 1, 1, 1),
    "rebuilt": (replace(PLAIN, variance=replace(HEAD, rebuild_every=8)), 1, 1, 1),
    "forgetting": (replace(PLAIN, variance=replace(HEAD, forget=0.8, refresh_every=3)), 1, 1, 1),
    "five environments": (replace(PLAIN, variance=replace(HEAD, refresh_every=2, forget=0.9)), 2, 1, 5),
}  # fmt: skip


def make_entry(rng, obs, action, k, j):
    """A transition as both agents understand it; one in ten ends, one in ten is cut off."""
    fate = rng.choice(["goes on", "ends", "cut"], p=[0.8, 0.1, 0.1])
    p = rng.dirichlet(np.ones(j), size=k)
    over = rng.random((k, j)) < (1.0 if fate == "ends" and k * j == 1 else 0.15)
    reward = rng.normal(size=(k, j))
    weight = (PLAIN.discount * p * ~over).astype(np.float32)
    successors = ((p * reward).sum(-1).astype(np.float32), weight, rng.normal(size=(k, j, OBS)).astype(np.float32))
    return {"obs": obs, "action": action, "successors": successors, "last": fate != "goes on"}


def stacked(entries):
    leaves = zip(*(e["successors"] for e in entries), strict=True)
    successors = Successors(*(jnp.asarray(np.stack(leaf)) for leaf in leaves))
    return Transition(
        jnp.asarray(np.stack([e["obs"] for e in entries])),
        jnp.asarray([e["action"] for e in entries], jnp.int32),
        successors,
        jnp.asarray([e["last"] for e in entries]),
    )


def assert_close(layers, expected, tolerance):
    for layer, arrays in zip(layers, expected, strict=True):
        for found, wanted in zip(layer, arrays, strict=True):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=tolerance)


def run_both(settings, k, j, n, seed=0):
    """Lets both agents live through the same run; yields (learner, oracle, progress, reported) after every step."""
    rng = np.random.default_rng(seed)
    with double():
        key = root_key(seed)
        learner = init_learner(settings, key, OBS, ACTIONS, k, j)
        head = None if learner.head is None else as_lists(learner.head.layers)
        oracle = PaperAgent(settings, as_lists(learner.q), head, Randomness(key))
        obs = rng.normal(size=(n, OBS)).astype(np.float32)
        actions = begin(settings, learner, jnp.asarray(obs)).tolist()
        assert actions == oracle.act(obs, -1)[0]
        # rounding is all that compilation may change: the quick compiler is good enough
        step = jax.jit(partial(observe, settings), compiler_options={"xla_backend_optimization_level": 0})
        for _ in range(STEPS):
            entries = [make_entry(rng, o, a, k, j) for o, a in zip(obs, actions, strict=True)]
            obs = rng.normal(size=(n, OBS)).astype(np.float32)
            learner, chosen, progress = step(learner, stacked(entries), jnp.asarray(obs))
            expected, reported = oracle.observe(entries, obs)
            assert chosen.tolist() == expected
            yield learner, oracle, progress, reported
            actions = expected


def check_variant(settings, k, j, n):
    head_used = isinstance(settings.variance, LastLayer)
    flips, lag = 0.0, 0.0
    for learner, oracle, progress, expected in run_both(settings, k, j, n):
        # float32 keeps 7 digits; a dozen sums and fifty steps of Adam cost two to three of them
        for name, value in expected.items():
            assert float(getattr(progress, name)) == pytest.approx(value, rel=2e-3, abs=1e-5), name
        flips += expected["flipped"]
        lag = max(lag, float(jnp.abs(learner.q[0].weight - learner.target[0].weight).max()))
        assert int(learner.step) == oracle.seen
        assert int(learner.updates) == oracle.updates
        assert int(learner.episodes) == oracle.episodes
        assert int(learner.version) == oracle.copies
    assert oracle.updates > 20
    assert oracle.copies >= 2
    assert len(oracle.replay) == settings.capacity
    # each step of Adam moves a weight by up to the rate: a thousandth of one way of all steps
    assert_close(learner.q, oracle.q, 1e-3 * RATE * oracle.updates)
    assert_close(learner.target, oracle.target, 1e-3 * RATE * oracle.updates)
    assert lag > RATE
    if settings.clip_norm is not None:
        assert 5 < oracle.q_adam.clipped < oracle.updates  # some gradients were long, and some were not
    if head_used:
        assert flips > 0
        assert_close(learner.head.layers, oracle.head, 1e-3 * RATE * STEPS * (2 if settings.variance.replayed else 1))
        precision = np.array(oracle.precision)
        np.testing.assert_allclose(learner.head.gram.precision, precision, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(learner.head.gram.sigma, np.linalg.inv(precision), rtol=1e-3, atol=1e-5)
        if settings.variance.residual_decay is not None:
            np.testing.assert_allclose(learner.head.residual, oracle.squares, rtol=1e-3)
            np.testing.assert_allclose(learner.head.residual_weight, oracle.weight, rtol=1e-9)


@pytest.mark.parametrize("name", FAST)
def test_learns_as_the_listing_says(name):
    check_variant(*FAST[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_learns_as_the_listing_says_with_each_choice_alone(name):
    check_variant(*SLOW[name])
