"""Presets: the nature and variance of each agent, and the arguments they pass on."""

from types import SimpleNamespace

import pytest

from urbe.deep import presets
from urbe.deep.core.last_layer import LastLayer, calibrated
from urbe.deep.core.natures import Average, CVaR, Soft, Worst
from urbe.deep.core.variances import NoVariance
from urbe.deep.presets import dqn, dqn_ube, dqn_urbe, robust_dqn, soft_robust_dqn
from urbe.deep.settings import Settings
from urbe.simulators import CartPole, Constant, UncertaintySet

POLE = CartPole()
POLES = UncertaintySet.grid(POLE, half_length=(0.25, 1.0))
HEAD = LastLayer(beta=0.1)


@pytest.fixture
def asked(monkeypatch):
    """What the trainer is made of, instead of a trainer."""
    calls = []

    def make(env, uncertain, settings, schedule, seed, record_every, keep_states):
        assert not keep_states
        calls.append(SimpleNamespace(env=env, uncertain=uncertain, settings=settings, schedule=schedule, seed=seed))
        calls[-1].record_every, calls[-1].deciders = record_every, 1
        return calls[-1]

    monkeypatch.setattr(presets, "make_trainer", make)
    return calls


@pytest.mark.parametrize(
    ("preset", "args", "name", "nature", "variance", "members"),
    [
        (dqn, (), "dqn", Average(), NoVariance(), None),
        (dqn_ube, (), "dqn-ube", Average(), LastLayer(), None),
        (robust_dqn, (POLES,), "robust-dqn", Worst(), NoVariance(), 3),
        (dqn_urbe, (POLES,), "dqn-urbe", Worst(), LastLayer(), 3),
        (soft_robust_dqn, (POLES,), "soft-robust-dqn", Average(), NoVariance(), 3),
        (soft_robust_dqn, (POLES, (0.5, 0.0, 0.5)), "soft-robust-dqn", Soft((0.5, 0.5)), NoVariance(), 2),
    ],
)
def test_each_is_one_choice_of_nature_and_variance(asked, preset, args, name, nature, variance, members):
    agent = preset(POLE, *args, seed=7, batch=3, log_every=50)
    (call,) = asked
    assert agent.name == name
    assert agent.seed == call.seed == 7
    assert agent.log_every == call.record_every == 50
    assert call.settings == Settings(nature=nature, variance=variance, batch=3)
    assert (None if call.uncertain is None else len(call.uncertain)) == members
    assert call.schedule is None


def test_members_without_weight_are_left_out_in_order(asked):
    soft_robust_dqn(POLE, POLES, (0.25, 0.0, 0.75), seed=0)
    kept = asked[0].uncertain.describe()["parameters"]["half_length"]
    assert kept == [0.5, 1.0]
    assert asked[0].settings.nature == Soft((0.25, 0.75))


def test_the_head_of_the_settings_is_kept_and_changes_win(asked):
    settings = Settings(variance=HEAD, discount=0.5)
    dqn_urbe(POLE, POLES, seed=0, settings=settings)
    dqn_ube(POLE, seed=0, settings=settings, variance=calibrated())
    dqn(POLE, seed=0, settings=settings)
    robust_dqn(POLE, POLES, seed=0, settings=settings, nature=CVaR(0.5), discount=0.7)
    urbe, ube, plain, robust = (call.settings for call in asked)
    assert urbe.variance == HEAD
    assert urbe.discount == 0.5
    assert ube.variance == calibrated()
    assert plain.variance == NoVariance()
    assert (robust.nature, robust.discount) == (CVaR(0.5), 0.7)


def test_a_schedule_is_handed_on(asked):
    schedule = Constant(POLE.nominal())
    dqn(POLE, seed=0, schedule=schedule)
    assert asked[0].schedule is schedule


def test_what_is_no_field_is_refused(asked):
    with pytest.raises(TypeError, match="learning_rates"):
        dqn(POLE, seed=0, learning_rates=1.0)
    assert not asked
