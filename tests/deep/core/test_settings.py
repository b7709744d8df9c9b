"""Settings: invalid ones raise errors that name the field; descriptions of agents are values."""

from dataclasses import replace

import numpy as np
import pytest

from urbe.deep import paper
from urbe.deep.core.last_layer import LastLayer, calibrated
from urbe.deep.core.natures import Worst
from urbe.deep.core.variances import NoVariance
from urbe.deep.policies.policy import Policy, Weights
from urbe.deep.presets import soft_robust_dqn
from urbe.deep.settings import Adam, CopyEvery, Decay, Epsilon, Network, Settings
from urbe.simulators import CartPole, UncertaintySet

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("kind", "field", "values"),
    [
        (Settings, "discount", [-0.1, 1.1, NAN, "x", None]),
        (Settings, "learning_rate", [0.0, -1.0, NAN, INF]),
        (Settings, "batch", [0, 1.5, True, -3]),
        (Settings, "capacity", [0, 10.0]),
        (Settings, "warm_up", [0, 100_000]),
        (Settings, "train_every", [0]),
        (Settings, "gradient_steps", [0, 1.5]),
        (Settings, "huber", [0.0, -1.0, NAN, INF]),
        (Settings, "clip_norm", [0.0, -1.0, NAN, INF]),
        (Settings, "decay", [0.1, None, Decay]),
        (Settings, "nature", ["worst", Worst, None]),
        (Settings, "variance", ["none", LastLayer, None]),
        (Settings, "network", [(16, 16), None]),
        (Settings, "copy", [10, None]),
        (Settings, "epsilon", [0.1, None]),
        (Settings, "optimiser", [1e-3, None]),
        (Network, "hidden", [(), (0,), (8, 1.5), (8, -1)]),
        (Network, "scale", [(), (0.0,), (1.0, NAN), (1.0, -2.0), (INF,)]),
        (Epsilon, "first", [-0.1, 1.1, NAN]),
        (Epsilon, "last", [-0.1, 1.1, NAN]),
        (Epsilon, "steps", [0, 1.5]),
        (Adam, "first_decay", [-0.1, 1.0, NAN]),
        (Adam, "second_decay", [-0.1, 1.0, NAN]),
        (Adam, "offset", [0.0, -1.0, NAN]),
        (CopyEvery, "episodes", [0, 2.5, True]),
        (CopyEvery, "updates", [0, -1]),
        (Decay, "last", [-0.1, 1.1, NAN]),
        (Decay, "steps", [0, 1.5]),
        (Decay, "cosine", ["yes", 1]),
        (LastLayer, "beta", [-0.1, NAN, INF]),
        (LastLayer, "mu", [0.0, -1.0, NAN, INF]),
        (LastLayer, "hidden", [(0,), (4, 0.5)]),
        (LastLayer, "learning_rate", [0.0, NAN]),
        (LastLayer, "residual_decay", [0.0, 1.0, -1.0, NAN]),
        (LastLayer, "forget", [0.0, 1.1, NAN]),
        (LastLayer, "refresh_every", [0, 1.5]),
        (LastLayer, "rebuild_every", [-1, 1.5]),
        (LastLayer, "replayed", [-1, 1.5]),
    ],
)
def test_bad_values_are_refused_by_name(kind, field, values):
    for value in values:
        with pytest.raises(ValueError, match=rf"\b{field}\b"):
            kind(**{field: value})


def test_a_copy_has_one_unit():
    with pytest.raises(ValueError, match="given neither, expected exactly one of episodes and updates"):
        CopyEvery()
    with pytest.raises(ValueError, match="given episodes and updates, expected exactly one"):
        CopyEvery(episodes=1, updates=1)


@pytest.mark.parametrize("tau", [0.0, -0.1, 1.1, NAN])
def test_a_target_follows_by_a_share(tau):
    with pytest.raises(ValueError, match=r"\btau\b"):
        CopyEvery(updates=1, tau=tau)


def test_published_agents_do_not_clip_and_all_others_do():
    assert Settings().clip_norm == 10.0
    assert paper.CARTPOLE.clip_norm is paper.MARS_ROVER.clip_norm is None


def test_ends_of_ranges_are_allowed():
    Settings(discount=0.0, batch=1, capacity=1, warm_up=1, huber=None)
    Settings(discount=1.0)
    Settings(clip_norm=None)
    Epsilon(0.0, 1.0, 1)
    Decay(0.0, 1)
    CopyEvery(updates=1, tau=1.0)
    Adam(0.0, 0.0, 1e-12)
    LastLayer(beta=0.0, hidden=(), forget=1.0, replayed=0, rebuild_every=0)


def test_lists_are_as_good_as_tuples():
    """Settings are hashed, for the compiled functions that depend on them."""
    a = Settings(network=Network([8, 4], [1.0, 2.0]), variance=LastLayer(hidden=[3]))
    b = Settings(network=Network((8, 4), (1.0, 2.0)), variance=LastLayer(hidden=(3,)))
    assert a == b
    assert hash(a) == hash(b)
    layers = tuple((np.zeros((i, o), np.float32), np.zeros(o, np.float32)) for i, o in ((2, 8), (8, 4), (4, 3)))
    from urbe.deep.core.networks import Layer

    policy = Policy(replace(a, variance=NoVariance()), Weights(tuple(Layer(*layer) for layer in layers), None))
    assert policy.predict([0.0, 1.0]) == 0


def test_calibrated_is_a_last_layer_with_a_scale():
    found = calibrated(2.0, hidden=(7,), learning_rate=0.5, residual_decay=0.9, forget=0.8)
    assert found == LastLayer(
        beta=2.0,
        mu=1.0,
        hidden=(7,),
        learning_rate=0.5,
        non_negative=True,
        residual_decay=0.9,
        forget=0.8,
        refresh_every=100,
        normalise=True,
        constant=True,
    )


def test_a_scale_must_fit_what_is_seen():
    settings = Settings(network=Network((4,), (1.0, 2.0)), capacity=10, warm_up=1)
    with pytest.raises(ValueError, match=r"scale has 2 entries, expected 1 or 4"):
        soft_robust_dqn(CartPole(), UncertaintySet.single(CartPole()), seed=0, settings=settings)


def test_shares_must_fit_the_set():
    poles = UncertaintySet.grid(CartPole(), half_length=(0.2, 1.0))
    with pytest.raises(ValueError, match="shares has 2 entries, expected 3"):
        soft_robust_dqn(CartPole(), poles, (0.5, 0.5), seed=0)
    with pytest.raises(ValueError, match=r"shares sums to 1\.5, expected 1"):
        soft_robust_dqn(CartPole(), poles, (0.5, 0.5, 0.5), seed=0)
