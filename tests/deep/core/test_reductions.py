"""Agents that must be equal are equal bit for bit: weights, replay, actions, random numbers.

On simulators with random outcomes a member's target is an expectation where DQN's is a sample, so that one nominal
member is a better informed agent than DQN, and another one; what must hold there is that no noise is robust DQN, and
the ends of CVaR.
"""

import numpy as np
import pytest

from fixtures.deep_runs import arrays, pole_rig, rover_rig, same_bits

STEPS = 250


def outcome(rig, seed=0):
    """What an agent has become, without the caches that its kind alone has."""
    run = rig.after(seed, STEPS)
    learner = run.learner
    assert int(learner.version) > 20
    assert int(learner.episodes) > 10
    lived = (learner.replay.obs, learner.replay.action, learner.replay.last)
    return (learner.q, learner.target, learner.optimiser, lived, run.world, run.episodes)


def assert_same(rigs, a, b):
    first, second = outcome(rigs(a)), outcome(rigs(b))
    assert same_bits(first, second)
    assert not same_bits(first, outcome(rigs(a), seed=1))


def test_one_nominal_member_is_dqn():
    assert_same(pole_rig, "single", "observed")


def test_urbe_without_noise_is_robust_dqn():
    assert_same(pole_rig, "urbe without noise", "robust")


def test_urbe_with_noise_and_robust_dqn_are_not_dqn():
    """The equalities above are none of everything."""
    observed, robust = outcome(pole_rig("observed")), outcome(pole_rig("robust"))
    assert not same_bits(observed[0], robust[0])
    assert not same_bits(outcome(pole_rig("urbe"))[0], robust[0])


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [("one-hot", "observed"), ("cvar of one", "robust"), ("cvar of all", "average")])
def test_other_natures_at_their_ends(a, b):
    assert_same(pole_rig, a, b)


@pytest.mark.slow
def test_members_without_weight_change_roundings_alone():
    """Three members are evaluated in one product, whose sums run in another order than those of one member."""
    one, three = (pole_rig(kind).after(0, 60).learner for kind in ("observed", "one-hot of three"))
    assert same_bits(one.replay.action, three.replay.action)
    for a, b in zip(arrays(one.q), arrays(three.q), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)  # fifty steps of a thousandth


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b"), [("urbe without noise", "robust"), ("cvar of one", "robust"), ("cvar of all", "average")]
)
def test_where_outcomes_are_random_too(a, b):
    assert_same(rover_rig, a, b)


@pytest.mark.slow
def test_members_of_a_random_world_are_expected_and_not_sampled():
    """Why one nominal member is not DQN there: its targets have both outcomes, weighted, DQN's only what happened."""
    run = rover_rig("single").after(0, 90)
    replay = run.learner.replay
    assert np.asarray(replay.successors.weight).shape == (96, 1, 2)
    gains = np.asarray(replay.successors.gain)[:90, 0]
    assert ((gains < -0.005) & (gains > -0.02)).any()  # .995 of a step and .005 of a failure
    seen = np.asarray(rover_rig("observed").after(0, 90).learner.replay.successors.gain)[:90, 0]
    assert set(np.unique(seen.round(6))) <= {np.float32(-0.0048), np.float32(1.0), np.float32(-1.0)}
    assert len(arrays(run)) > 10
