"""One-step lookahead against enumeration, and the agents to which it reduces."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.belief import Switching
from urbe.deep import BeliefCVaR, BeliefMean
from urbe.deep.adaptive.inputs import inputs
from urbe.deep.adaptive.lookahead import Discounts, _is_idle, _Listed, lookahead
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.core.dueling import DuelingNetwork
from urbe.deep.core.networks import q_values
from urbe.deep.core.replay import Successors
from urbe.deep.core.settings import Settings
from urbe.deep.core.targets import member_targets
from urbe.simulators import Acrobot, CartPole, MarsRover, MarsRoverParams, UncertaintySet
from urbe.simulators.mars_rover import one_hot

FAILURES = (0.01, 0.1, 0.6)
ROVER = MarsRover(size=4, start_zone=(1, 1), encoding=one_hot, step_reward=-0.001, time_limit=20)
NO = jnp.bool_(False)
DISCOUNTS = Discounts(0.9, 0.5)
NETWORK = DuelingNetwork((8,))


def rovers(switching, failures=FAILURES):
    return BeliefModel.of(ROVER, UncertaintySet.grid(ROVER, include_nominal=False, failure=failures), switching)


def log_of(belief):
    return jnp.log(jnp.asarray([belief], jnp.float32))


def ahead(model, state, belief, action, first=0, cut=NO, truth=0.2, discounts=DISCOUNTS, **named):
    params, state, action, first = MarsRoverParams(jnp.float32(truth)), *map(jnp.int32, (state, action, first))
    return lookahead(model, discounts, state, log_of(belief), action, params, first, cut, **named)


@pytest.mark.parametrize("per", ["step", "episode"])
def test_mars_rover_is_enumerated_exactly(per):
    model, hazard = rovers(Switching(0.2, per, prior=(0.5, 0.3, 0.2))), 0.2
    prior, belief = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
    assert model.shared
    for state, action, cut in itertools.product((0, 6, 11, 14), range(4), (False, True)):
        found = ahead(model, state, belief, action, first=3, cut=jnp.bool_(cut))
        np.testing.assert_allclose(found.belief, belief, rtol=1e-6)
        for j in range(2):
            each = [ROVER.outcomes(jnp.int32(state), jnp.int32(action), MarsRoverParams(p)) for p in FAILURES]
            likelihood = np.array([float(one.probability[j]) for one in each])
            np.testing.assert_allclose(found.probability[:, j], likelihood, rtol=1e-6)
            stays = all(int(after) == state for after, p in zip(each[0].state, each[1].probability, strict=True) if p)
            idle = per == "episode" and stays  # bumps into the border, and learns nothing
            assert bool(found.idle) == idle
            ended = bool(each[0].terminated[j]) or cut or idle
            joint = belief * likelihood
            after = joint / joint.sum() if joint.sum() else belief
            if per == "step" or ended:
                after = (1 - hazard) * after + hazard * prior
            np.testing.assert_allclose(np.exp(found.log_b[j, 0]), after, rtol=1e-5)
            assert int(found.state[j]) == (3 if ended else int(each[0].state[j]))
            if not idle:
                assert float(found.discount[j]) == pytest.approx(0.5 if ended else 0.9)
                assert float(found.reward[j]) == float(each[0].reward[j])
        true = ROVER.outcomes(jnp.int32(state), jnp.int32(action), MarsRoverParams(0.2))
        np.testing.assert_allclose(found.drawn, true.probability, rtol=1e-6)


@pytest.mark.parametrize("step", [1.0, 0.9])
def test_an_idle_action_stands_for_its_repetition_until_the_time_limit(step):
    """Against the sum over the time at which the episode is cut, with a chance of 1 / 20 after each step."""
    model = rovers(Switching(0.2, "episode"))
    found = ahead(model, 1, [0.2, 0.5, 0.3], 0, first=5, discounts=Discounts(step, 0.5))
    assert bool(found.idle)
    assert bool(found.ended.all())
    chance = 1 / ROVER.time_limit
    last = np.arange(1, 20_000)  # the step after which it is cut
    probability = chance * (1 - chance) ** (last - 1)
    earned = np.cumsum(-0.001 * step ** (last - 1))
    np.testing.assert_allclose(found.drawn @ found.reward, probability @ earned, rtol=1e-5)
    np.testing.assert_allclose(found.discount, probability @ (0.5 * step ** (last - 1)), rtol=1e-5)
    assert np.asarray(found.state).tolist() == [5, 5]
    for action in (1, 2, 3):  # risky moves say something, and a safe one leads elsewhere
        assert not bool(ahead(model, 1, [0.2, 0.5, 0.3], action).idle)


def values(model, found, weights):
    obs = jax.vmap(model.simulator.observe)(found.state)
    v = q_values(NETWORK, weights, inputs(model, obs, found.log_b)).max(axis=-1)
    return found.probability @ (found.reward + found.discount * v)


def weights_of(model, seed=0):
    size = inputs(
        model, model.simulator.observe(jnp.int32(0)), jnp.asarray(model.switching.begin(model.n_members))
    ).size
    return NETWORK.init(jax.random.key(seed), size, 4)


def test_one_member_gives_the_targets_of_dqn():
    model = rovers(Switching(), (0.1,))
    weights = weights_of(model)
    for state, action in itertools.product((0, 6, 11, 14), range(4)):
        found = ahead(model, state, [1.0], action, discounts=Discounts(0.9, 0.0), repeat=False)
        one = ROVER.outcomes(jnp.int32(state), jnp.int32(action), MarsRoverParams(jnp.float32(0.1)))
        obs = inputs(model, jax.vmap(ROVER.observe)(one.state), jnp.zeros((2, 1, 1)))
        kept = Successors(
            (one.probability @ one.reward)[None, None],
            (0.9 * one.probability * ~one.terminated)[None, None],
            obs[None, None],
        )
        usual = member_targets(Settings(network=NETWORK), weights, weights, kept)[0]
        np.testing.assert_allclose(values(model, found, weights), usual, rtol=1e-5)


def test_hazard_one_and_the_worst_member_are_robust_whatever_was_observed():
    model = rovers(Switching(1.0))
    weights, prior = weights_of(model), [1 / 3] * 3
    found = ahead(model, 6, prior, 2)
    np.testing.assert_allclose(np.exp(found.log_b), np.full((2, 1, 3), 1 / 3), rtol=1e-5)  # nothing is ever learned
    y = values(model, found, weights)
    robust = float(y.min())
    assert (
        float(BeliefCVaR(0.0).weights(found.belief, y) @ y) == robust < float(BeliefMean().weights(found.belief, y) @ y)
    )


def test_a_certainty_stays_and_gives_the_value_of_that_member_alone():
    model = rovers(Switching())
    certain = jnp.asarray([0.0, 1.0, 0.0])
    found = ahead(model, 6, certain, 2)
    np.testing.assert_array_equal(np.exp(found.log_b), np.broadcast_to(certain, (2, 1, 3)))
    y = values(model, found, weights_of(model))
    assert float(BeliefMean().weights(found.belief, y) @ y) == float(y[1])


def test_a_temper_is_a_power_of_the_likelihoods():
    model, belief = rovers(Switching()), np.array([0.2, 0.5, 0.3])
    sharp, soft = (ahead(model, 6, belief, 2, temper=temper) for temper in (1.0, 0.5))
    for j in range(2):
        likelihood = np.exp(np.asarray(sharp.log_b[j, 0], np.float64)) / belief
        after = belief * np.sqrt(likelihood)
        np.testing.assert_allclose(np.exp(soft.log_b[j, 0]), after / after.sum(), rtol=1e-5)


def test_an_action_that_tells_something_is_not_idle():
    """It stays where it is and pays 1 or nothing, by which members differ; it is idle where they agree."""
    model, here = rovers(Switching(0.2, "episode")), jnp.full(2, 6, jnp.int32)
    for win, idle in (((0.9, 0.5, 0.2), False), ((0.5, 0.5, 0.5), True)):
        each = jnp.asarray([[p, 1.0 - p] for p in win])
        listed = _Listed(each, each[0], jnp.asarray([1.0, 0.0]), jnp.zeros(2, bool), here, jnp.log(each.T))
        assert bool(_is_idle(model, jnp.int32(6), listed)) == idle


def test_outcomes_differ_by_what_is_seen_by_reward_or_by_an_end():
    obs, reward, ends = jnp.zeros((4, 2)).at[1, 0].set(0.1), jnp.asarray([0.0, 0.0, 0.5, 0.0]), jnp.arange(4) == 3
    np.testing.assert_array_equal(BeliefModel.resemble(obs, reward, ends, obs, reward, ends), np.eye(4, dtype=bool))


def test_outcomes_that_look_alike_are_one():
    model = rovers(Switching())
    found = model.outcomes(jnp.int32(ROVER.goal), jnp.int32(0), model.params)  # the goal is never left, either way
    np.testing.assert_allclose(found.probability, [[1.0, 0.0]] * 3)


@pytest.mark.parametrize(
    ("simulator", "vary"), [(CartPole(), {"force": (-10.0, 4.0, 10.0)}), (Acrobot(), {"torque": (0.5, 1.0)})]
)
def test_members_that_predict_list_their_own_outcomes_and_the_true_one(simulator, vary):
    members = UncertaintySet.grid(simulator, include_nominal=False, **vary)
    model, k = BeliefModel.of(simulator, members, Switching()), len(members)
    assert not model.shared
    state = simulator.start(jax.random.key(0), simulator.nominal())
    log_b = jnp.asarray(Switching().begin(k), jnp.float32)
    found = lookahead(model, DISCOUNTS, state, log_b, jnp.int32(0), members.members()[0], state, NO)
    np.testing.assert_array_equal(found.probability, np.eye(k, k + 1))
    np.testing.assert_array_equal(found.drawn, np.eye(k + 1)[-1])
    for j, member in enumerate(members.members()):
        np.testing.assert_array_equal(found.state[j], simulator.outcomes(state, jnp.int32(0), member).state[0])
        assert int(found.log_b[j, 0].argmax()) == j
    np.testing.assert_array_equal(found.log_b[-1], found.log_b[0])  # the truth is the first member
    # of two outcomes each, the first has been observed: it counts as often as members expect it
    chance = np.linspace(0.2, 0.8, k)
    two = jnp.broadcast_to(jnp.stack([jnp.zeros(4), jnp.full(4, 50.0)]), (k, 2, 4))[..., : model.magnitude.size]
    two = jnp.concatenate([two, jnp.zeros((k, 2, model.magnitude.size - two.shape[-1]))], axis=-1)
    evidence, _ = model.evidence_of_observation(
        jnp.asarray(np.stack([chance, 1.0 - chance], axis=1)), two, jnp.zeros((k, 2), bool), two[:1, 0], NO[None],
        jnp.zeros((1, model.magnitude.size)),
    )  # fmt: skip
    likelihood = np.exp(np.asarray(evidence.log_likelihood[0], np.float64))
    np.testing.assert_allclose(likelihood / likelihood[0], chance / chance[0], rtol=1e-5)
