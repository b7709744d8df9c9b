"""The neural soft-robust actor-critic where the best policy is known, resumed, and with both criteria and draws."""

import numpy as np
import pytest

from urbe.deep import load_actor_critic, soft_robust_actor_critic
from urbe.deep.actor_critic.settings import ActorCriticSettings
from urbe.deep.core.networks import Network
from urbe.runs.errors import CheckpointError
from urbe.simulators import SevenStates, SevenStatesParams, UncertaintySet

SEVEN = SevenStates()
SMALL = ActorCriticSettings(
    actor=Network(hidden=(16,)), critic=Network(hidden=(16,)), lanes=16, rollout=4, actor_rate=3e-3, critic_rate=1e-2
)
START = np.eye(7)[0]


def chances(*each):
    import jax.numpy as jnp

    return UncertaintySet(SevenStatesParams(*[jnp.asarray(each, jnp.float32)] * 3), None)


@pytest.mark.parametrize(
    ("shares", "gambles"),
    [((0.47, 0.22, 0.1, 0.09, 0.12), True), ((1.0, 0.0, 0.0, 0.0, 0.0), False), ((0.0, 0.0, 1.0, 0.0, 0.0), True)],
)
@pytest.mark.parametrize(
    ("criterion", "draw"),
    [("discounted", "step"), pytest.param("average", "episode", marks=pytest.mark.slow)],  # another program to compile
)
def test_it_gambles_when_the_mean_chance_is_worth_it(shares, gambles, criterion, draw):
    """The sure reward is .14; chances are .1, .7, .8, .3, .5 with a mean of .368. A gamble takes two steps."""
    members = chances(0.1, 0.7, 0.8, 0.3, 0.5)
    agent = soft_robust_actor_critic(SEVEN, members, shares, seed=0, settings=SMALL, criterion=criterion, draw=draw)
    p = agent.learn(64_000).probabilities(START)
    assert (1.0 - p[0] > 0.9) if gambles else (p[0] > 0.9)
    assert agent.predict(START) == p.argmax()
    if criterion == "average":
        wanted = 0.14 if not gambles else (0.368 if shares[1] else 0.8) / 2.0
        assert agent.gain == pytest.approx(wanted, abs=0.04)


def test_shares_of_one_member_are_that_member_alone_bit_for_bit():
    three, one = chances(0.1, 0.7, 0.8), chances(0.7, 0.7, 0.7)
    first = soft_robust_actor_critic(SEVEN, three, (0.0, 1.0, 0.0), seed=1, settings=SMALL).learn(2000)
    second = soft_robust_actor_critic(SEVEN, one, (0.0, 1.0, 0.0), seed=1, settings=SMALL).learn(2000)
    assert np.array_equal(first.probabilities(np.eye(7)), second.probabilities(np.eye(7)))


def test_a_killed_training_goes_on_bit_for_bit(tmp_path):
    members = chances(0.1, 0.7)
    whole = soft_robust_actor_critic(SEVEN, members, seed=2, settings=SMALL).learn(10_000)
    part = soft_robust_actor_critic(SEVEN, members, seed=2, settings=SMALL).learn(4321)
    part.save(tmp_path / "agent.safetensors")
    again = load_actor_critic(tmp_path / "agent.safetensors").learn(10_000 - 4321)
    assert again.step == whole.step == 10_048
    assert np.array_equal(again.probabilities(np.eye(7)), whole.probabilities(np.eye(7)))
    assert all(np.array_equal(again.log[name], whole.log[name], equal_nan=True) for name in whole.log)
    assert len(whole.log["step"]) == 1


def test_refusals(tmp_path):
    members = chances(0.1, 0.7)
    with pytest.raises(ValueError, match="shares"):
        soft_robust_actor_critic(SEVEN, members, (0.5, 0.6), seed=0, settings=SMALL)
    with pytest.raises(ValueError, match=r"actor_power is 0\.1, expected more than critic_power"):
        ActorCriticSettings(actor_power=0.1)
    agent = soft_robust_actor_critic(SEVEN, members, seed=0, settings=SMALL)
    with pytest.raises(ValueError, match=r"observations has shape \(3,\), expected 7 numbers"):
        agent.predict([0.0, 0.0, 1.0])
    from urbe.runs.tensors import save_tensors

    save_tensors(tmp_path / "other.safetensors", {"w": np.ones(2)}, {"family": "other"})
    with pytest.raises(CheckpointError, match="is not an actor-critic"):
        load_actor_critic(tmp_path / "other.safetensors")
