"""The contracts of natures over a belief and of acting rules, and agents with parts from outside of urbe."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

from fixtures import deep_parts as theirs
from urbe.belief import Switching, Watch
from urbe.deep import AdaptiveAgent, BeliefCVaR, BeliefMean, CredibleWorst, EpisodeCVaR, load_adaptive
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.rules import OnBelief, OnMembers, Thompson
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.deep.core.dueling import DuelingNetwork
from urbe.simulators import MarsRover, UncertaintySet
from urbe.testing import check_belief_nature, check_belief_rule

ROVER = MarsRover(size=4, start_zone=(1, 1), time_limit=20)
MEMBERS = UncertaintySet.grid(ROVER, include_nominal=False, failure=(0.02, 0.5))
NATURES = [BeliefMean(), BeliefCVaR(0.0), BeliefCVaR(0.3), CredibleWorst(0.2), EpisodeCVaR(0.4), theirs.SoftEpisode()]


@pytest.mark.parametrize("nature", NATURES)
def test_natures_over_a_belief_keep_their_contract(nature):
    check_belief_nature(nature)


@pytest.mark.parametrize("rule", [OnBelief(), Thompson(), OnMembers(CredibleWorst(0.1)), theirs.Likeliest()])
def test_acting_rules_keep_their_contract(rule):
    check_belief_rule(rule)


def agent(nature, rule):
    settings = AdaptiveSettings(nature=nature, network=DuelingNetwork((8,)), lives=4, length=8, minibatches=2)
    model = BeliefModel.of(ROVER, MEMBERS, Switching(0.1, "episode"))
    return AdaptiveAgent("theirs", model, MEMBERS, settings, rule, Watch(), seed=0)


def test_an_agent_of_others_parts_learns_is_saved_loaded_and_deployed(tmp_path):
    whole = agent(theirs.SoftEpisode(0.1), theirs.Likeliest()).learn(128)
    assert not np.array_equal(whole._run.lives.tilt, agent(BeliefMean(), theirs.Likeliest()).learn(128)._run.lives.tilt)
    part = agent(theirs.SoftEpisode(0.1), theirs.Likeliest()).learn(64)
    part.save(tmp_path / "agent")
    again = load_adaptive(tmp_path / "agent")
    assert (again.settings, again.rule) == (part.settings, part.rule)
    one, other = whole.tensors(), again.learn(64).tensors()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)
    np.testing.assert_array_equal(again.adapt(ROVER, 2).episode_return, whole.adapt(ROVER, 2).episode_return)
    with pytest.raises(ValueError, match="weights them for whole episodes"):
        whole.learning_policy()


@dataclass(frozen=True)
class Uniform:
    """Forgets the belief."""

    def weights(self, belief, values):  # noqa: ARG002
        return jnp.full_like(values, 1.0 / values.shape[-1])


@dataclass(frozen=True)
class Raised(theirs.SoftEpisode):
    """The belief of an episode does not sum to one."""

    def begin_episode(self, belief, values):
        return 2.0 * super().begin_episode(belief, values)


@dataclass(frozen=True)
class Unbatched:
    """Gives the network a belief without the leading axis."""

    def values(self, evaluate, belief, drawn):  # noqa: ARG002
        return evaluate(belief)


@dataclass(frozen=True)
class Sums:
    """Gives the network sums of beliefs."""

    def values(self, evaluate, belief, drawn):  # noqa: ARG002
        return evaluate(2.0 * belief[None])[0]


@dataclass(frozen=True)
class Lowest:
    """Acts on the lowest values."""

    def values(self, evaluate, belief, drawn):  # noqa: ARG002
        return -evaluate(belief[None])[0]


@pytest.mark.parametrize(
    ("check", "part", "law"),
    [
        (check_belief_nature, Uniform(), "the value by the weights of 2 members, certain of one"),
        (check_belief_nature, Raised(), "the sum of the belief of an episode"),
        (check_belief_nature, Thompson(), "without weights"),
        (check_belief_rule, Unbatched(), "beliefs of 1 members that the network is evaluated at"),
        (check_belief_rule, Sums(), "the sum of beliefs of 1 members"),
        (check_belief_rule, Lowest(), "the action under 1 members that agree"),
        (check_belief_rule, BeliefMean(), "without values"),
    ],
)
def test_contracts_find_what_is_broken(check, part, law):
    with pytest.raises(AssertionError, match=law):
        check(part)
