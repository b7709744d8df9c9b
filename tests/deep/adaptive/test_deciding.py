"""What a deployed policy decides by: the belief about the coming step, as its nature and its rule see it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from urbe.belief import Switching, Watch
from urbe.deep import AdaptivePolicy, CredibleWorst
from urbe.deep.adaptive.learner import init_run
from urbe.deep.adaptive.model import BeliefModel, _standardised
from urbe.deep.adaptive.policy import evidence_of
from urbe.deep.adaptive.rules import OnMembers
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.deep.core.dueling import DuelingNetwork
from urbe.evaluation.adaptation import Step
from urbe.simulators import MarsRover, MarsRoverParams, UncertaintySet

ROVER = MarsRover(size=4, start_zone=(1, 1), step_reward=-0.001, time_limit=20)
FAILURES = (0.02, 0.1, 0.5)
SET = UncertaintySet.grid(ROVER, include_nominal=False, failure=FAILURES)
SETTINGS = AdaptiveSettings(network=DuelingNetwork((8,)), lives=2, minibatches=1)


@dataclass(frozen=True)
class Echo:
    """Takes the belief itself for the values of the first actions."""

    def values(self, evaluate, belief, drawn):  # noqa: ARG002
        return belief


def policy(switching=Switching(0.2, prior=(0.2, 0.5, 0.3)), rule=Echo()):  # noqa: B008
    model = BeliefModel.of(ROVER, SET, switching)
    return AdaptivePolicy(init_run(SETTINGS, model, jax.random.key(0)).q, model, SETTINGS, rule, Watch())


POLICY = policy()


def memory_of(belief, **changes):
    memory = POLICY.start(jax.random.key(0))
    log_b = jnp.log(jnp.asarray([belief], jnp.float32))
    return memory._replace(belief=memory.belief._replace(log_b=log_b), **changes)


def test_decisions_are_about_the_coming_step_which_a_jump_may_precede():
    coming = 0.8 * np.array([0.0, 0.0, 1.0]) + 0.2 * np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(POLICY.believed(memory_of([0.0, 0.0, 1.0])), coming, rtol=1e-5)
    per_episode = policy(Switching(0.2, "episode", prior=(0.2, 0.5, 0.3)))
    np.testing.assert_allclose(per_episode.believed(memory_of([0.0, 0.0, 1.0])), [0.0, 0.0, 1.0])


def test_the_nature_of_the_episode_tilts_the_belief_that_is_acted_on():
    obs = ROVER.observe(jnp.int32(6))
    for tilt, action in (([0.0, 0.0, 0.0], 2), ([5.0, 0.0, 0.0], 0), ([0.0, 5.0, 0.0], 1)):
        memory = memory_of([0.1, 0.2, 0.7], tilt=jnp.asarray(tilt), begun=jnp.bool_(True))
        assert int(POLICY.act(memory, obs)[0]) == action


def test_a_member_is_drawn_from_the_belief_once_per_episode():
    obs, belief = ROVER.observe(jnp.int32(6)), [0.0, 0.0, 1.0]
    begun = memory_of(belief, member=jnp.int32(1), begun=jnp.bool_(True))
    after = POLICY.begin_episode(begun, obs)
    assert int(after.member) == 1
    np.testing.assert_array_equal(after.words, begun.words)

    def drawn(key):
        words = jax.random.bits(key, (2,), jnp.uint32)
        return POLICY.begin_episode(memory_of(belief, words=words), obs).member

    members = jax.vmap(drawn)(jax.random.split(jax.random.key(1), 4000))
    np.testing.assert_allclose(np.bincount(members) / 4000, POLICY.believed(memory_of(belief)), atol=0.03)


def test_the_worst_member_is_a_credible_one():
    for k in range(3):
        certain = np.full(3, 1e-9)
        certain[k] = 1.0
        found = policy(Switching()).report(memory_of(certain))
        assert found["credible"].tolist() == (np.arange(3) == k).tolist()
        assert int(found["worst"]) == k


def test_an_outcome_is_known_by_its_end_and_reward_before_what_is_seen():
    """What is seen lies nearer to the safe successor, but the episode ended with the reward of a wreck."""
    state, action = jnp.int32(6), jnp.int32(2)
    found = ROVER.outcomes(state, action, MarsRoverParams(jnp.float32(0.1)))
    fails = int(found.terminated.argmax())
    safe = jax.tree.map(lambda leaf: leaf[1 - fails], found.state)
    step = Step(
        ROVER.observe(state), action, found.reward[fails], ROVER.observe(safe), jnp.bool_(True), jnp.bool_(False)
    )
    evidence, square = evidence_of(POLICY.model, step, jnp.zeros(0))
    np.testing.assert_allclose(np.exp(evidence.log_likelihood), FAILURES, rtol=1e-5)
    assert square is None


def test_values_under_members_are_weighed_by_the_nature():
    """Action 0 is better under the members that are likely, action 1 under the worst of them."""
    values = jnp.asarray([[9.0, 2.0], [1.0, 2.0], [-9.0, 2.0]])
    belief = jnp.asarray([0.6, 0.35, 0.05])
    np.testing.assert_allclose(OnMembers().values(lambda _: values, belief, 0), [5.3, 2.0], rtol=1e-5)
    rule = OnMembers(CredibleWorst(0.1))
    np.testing.assert_allclose(rule.values(lambda beliefs: beliefs @ values, belief, 0), [1.0, 2.0], rtol=1e-5)


def test_parameters_of_many_sizes_are_compared_by_their_logarithms():
    of_one = [_standardised(MarsRoverParams(np.array(each, np.float32)), ("failure",)).ravel()
              for each in ((0.01, 0.1, 1.0), (1.0, 2.0, 3.0))]  # fmt: skip
    for found in of_one:
        np.testing.assert_allclose(found, np.sqrt(1.5) * np.array([-1.0, 0.0, 1.0]), atol=1e-5)
