"""Alternatives to robust DQN: reductions to DQN, files, splits and seeds, and where a memory is necessary."""

from dataclasses import dataclass
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe import deep
from urbe.deep.compilation import cache_compilation
from urbe.deep.saving.load import load
from urbe.evaluation.adaptation import deploy_lives, parameter_paths
from urbe.gym import EnvMembers, RandomisedParams, SimulatorEnv
from urbe.simulators import (
    CartPole,
    Constant,
    MarsRover,
    Outcomes,
    RandomMember,
    StepChange,
    UncertaintySet,
    Uniform,
)

TINY = {"network": deep.Network(hidden=(16, 16)), "batch": 16, "capacity": 300, "warm_up": 50, "log_every": 50}
POLE = CartPole(time_limit=15)
GAINS = UncertaintySet.grid(POLE, force=(-10.0, 5.0))
SMALL = deep.Memory(units=6, length=4, burn_in=2)


@pytest.fixture(scope="module", autouse=True)
def _compiled_once():
    cache_compilation()


MAKERS = {
    "randomised": lambda seed: deep.domain_randomised_dqn(
        POLE, {"half_length": Uniform(0.2, 1.0)}, seed=seed, hazard=0.5, **TINY
    ),
    "stacked": lambda seed: deep.stacked_dqn(POLE, GAINS, seed=seed, length=3, **TINY),
    "recurrent": lambda seed: deep.recurrent_dqn(POLE, GAINS, seed=seed, memory=SMALL, **TINY),
    "ewok": lambda seed: deep.ewok_dqn(POLE, GAINS, seed=seed, kappa=0.5, draws=3, **TINY),
    "iwocs": lambda seed: deep.iwocs_dqn(POLE, GAINS, seed=seed, round_steps=60, episodes=2, **TINY),
}


def same(one, other):
    """Whether two agents' tensors are equal in name, type and every bit."""
    a, b = one.tensors(), other.tensors()
    assert list(a) == list(b)
    return all(a[k].dtype == b[k].dtype and a[k].tobytes() == b[k].tobytes() for k in a)


def same_weights(one, other):
    pairs = zip(jax.tree.leaves(one.trainer.learner.q), jax.tree.leaves(other.trainer.learner.q), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("kind", MAKERS)
def test_same_seed_same_bits_wherever_it_is_cut_or_saved(kind, tmp_path):
    whole = MAKERS[kind](3).learn(170)
    cut = MAKERS[kind](3).learn(37).learn(60)
    cut.save(tmp_path / "agent")
    again = load(tmp_path / "agent")
    assert same(cut, again)
    assert again.about() == cut.about()
    assert type(again.memory_policy) is type(cut.memory_policy)
    assert same(again.learn(3).learn(70), whole)
    assert whole.history.log["step"].tolist() == [50, 100, 150]
    assert np.isfinite(whole.history.log["loss"][1:]).all()
    assert not same_weights(whole, MAKERS[kind](4).learn(170))


@pytest.mark.parametrize("kind", MAKERS)
def test_every_one_is_deployed_without_gradient_steps(kind):
    agent = MAKERS[kind](0).learn(60)
    before = agent.tensors()
    paths = parameter_paths(RandomMember(GAINS.members()), lives=2, episodes=3, seed=0)
    found, again = (deploy_lives(agent.memory_policy, POLE, paths, seed=1) for _ in range(2))
    assert found.episode_return.shape == (2, 3)
    assert (found.length >= 1).all()
    np.testing.assert_array_equal(found.episode_return, again.episode_return)
    after = agent.tensors()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)


# reductions


def test_randomisation_over_one_member_is_dqn_with_its_parameters():
    short = UncertaintySet.grid(POLE, half_length=(0.25,), include_nominal=False)
    plain = deep.dqn(POLE, seed=5, schedule=Constant(short.members()[0]), **TINY).learn(150)
    assert same(deep.domain_randomised_dqn(POLE, short, seed=5, **TINY).learn(150), plain)
    assert not same_weights(deep.dqn(POLE, seed=5, **TINY).learn(150), plain)


def test_ewok_with_one_draw_is_dqn():
    rover = MarsRover(size=3, start_zone=(2, 2), time_limit=12)
    plain = deep.dqn(rover, seed=5, **TINY).learn(150)
    assert same(deep.ewok_dqn(rover, seed=5, draws=1, **TINY).learn(150), plain)


def test_settings_are_those_that_are_given():
    settings = deep.Settings(discount=0.7, network=deep.DuelingNetwork((8, 8)))
    for make in (deep.recurrent_dqn, deep.iwocs_dqn):
        agent = make(POLE, GAINS, seed=0, settings=settings, capacity=100, warm_up=10, batch=4)
        assert (agent.trainer.settings.discount, agent.trainer.settings.capacity) == (0.7, 100)


def test_dynamics_are_met_as_each_of_them_says():
    """Anew for every episode, now and then, or one member after the other from the nominal one on."""
    members = GAINS.members()
    later = UncertaintySet(GAINS.params, nominal=2)
    schedules = [
        make(POLE, GAINS, seed=0, **TINY).trainer.schedule for make in (deep.domain_randomised_dqn, deep.stacked_dqn)
    ]
    assert [schedule.hazard for schedule in schedules] == [1.0, 0.1]
    for schedule in schedules:
        np.testing.assert_array_equal(np.array(schedule.members), np.array(members))
    assert deep.iwocs_dqn(POLE, later, seed=0, **TINY).trainer.training.first == 2
    assert deep.iwocs_dqn(POLE, GAINS, seed=0, **TINY).trainer.training.first == GAINS.nominal == 0


# where a memory is necessary


class SignParams(NamedTuple):
    sign: float = 1.0


@dataclass(frozen=True)
class Sign:
    """Pays the product of what is seen, of what is done and of a sign that is not seen: the actuator's."""

    n_actions: int = 2
    time_limit: int = 8

    def nominal(self):
        return SignParams(jnp.float32(1.0))

    def start(self, key, _params):
        return jnp.where(jax.random.bernoulli(key), jnp.float32(1.0), jnp.float32(-1.0))

    def outcomes(self, state, action, params):
        push = jnp.where(action == 1, params.sign, -params.sign)
        return Outcomes(
            jnp.full(2, 0.5, jnp.float32),
            jnp.asarray([-1.0, 1.0], jnp.float32),
            jnp.broadcast_to(push * state, 2),
            jnp.zeros(2, bool),
        )

    def observe(self, state):
        return state[None]


SIGNS = UncertaintySet.grid(Sign(), sign=(-1.0, 1.0), include_nominal=False)
PROBE = {
    "discount": 0.5,
    "network": deep.Network(hidden=(32, 32)),
    "learning_rate": 3e-3,
    "batch": 64,
    "capacity": 5000,
    "warm_up": 200,
    "train_every": 2,
    "copy": deep.CopyEvery(updates=100),
    "epsilon": deep.Epsilon(1.0, 0.1, 2000),
}


def deployed(agent, episodes=40):
    """The mean return of 8 steps: of episodes whose sign is the one before, and of the others."""
    paths = parameter_paths(RandomMember(SIGNS.members()), lives=40, episodes=episodes, seed=0)
    found = deploy_lives(agent.memory_policy, Sign(), paths, seed=1).episode_return
    kept = paths.sign[:, 1:] == paths.sign[:, :-1]
    return found[:, 1:][kept].mean(), found[:, 1:][~kept].mean()


def test_without_a_memory_a_hidden_sign_is_a_guess():
    agent = deep.domain_randomised_dqn(Sign(), SIGNS, seed=0, **PROBE).learn(4000)
    assert abs(np.mean(deployed(agent))) < 1.0  # of 8; a policy of observations earns 0 in the mean


@pytest.mark.parametrize("survives", [True, False])
def test_stacked_steps_reveal_the_sign(survives):
    agent = deep.stacked_dqn(Sign(), SIGNS, seed=0, length=2, survives=survives, hazard=0.3, **PROBE).learn(6000)
    kept, changed = deployed(agent)
    # at best 8 where the sign is remembered and 6 where it has changed; without memory 7 in either case
    assert kept > (7.8 if survives else 6.6)
    assert changed > (5.8 if survives else 6.6)


def test_a_hidden_state_reveals_the_sign():
    memory = deep.Memory(units=16, length=8, burn_in=4)
    agent = deep.recurrent_dqn(Sign(), SIGNS, seed=0, memory=memory, hazard=0.3, **PROBE).learn(8000)
    kept, changed = deployed(agent)
    assert kept > 7.5
    assert changed > 5.5


def test_a_stack_sees_in_deployment_what_it_saw_in_training():
    """The training loop's own observation of a life is that of the policy's memory."""
    agent = deep.stacked_dqn(POLE, GAINS, seed=2, length=3, **TINY).learn(120)
    replay = jax.device_get(agent.trainer.learner.replay)
    policy, memory = agent.memory_policy, agent.memory_policy.start(jax.random.key(0))
    for t in range(119):
        seen = replay.obs[t]
        np.testing.assert_array_equal(np.ravel(memory), seen[4:])
        reached = replay.successors.obs[t, 0, 0][:4]
        over = bool(replay.last[t])
        step = deep_step(seen[:4], replay.action[t], replay.successors.gain[t, 0], reached, over)
        memory = policy.observe(memory, step)


def test_a_hidden_state_in_deployment_is_that_of_training():
    settings = {**TINY, "warm_up": 300}  # weights do not change meanwhile
    agent = deep.recurrent_dqn(POLE, GAINS, seed=2, memory=SMALL, **settings).learn(100)
    kept = jax.device_get(agent.trainer.learner.replay.steps)
    policy, memory = agent.memory_policy, agent.memory_policy.start(jax.random.key(0))
    for t in range(100):
        np.testing.assert_allclose(memory, kept.hidden[t], rtol=1e-5, atol=1e-6)
        step = deep_step(kept.obs[t], kept.action[t], kept.reward[t], kept.reached[t], bool(kept.last[t]))
        memory = policy.observe(memory, step)


def deep_step(obs, action, reward, reached, over):
    from urbe.evaluation.adaptation import Step

    return Step(
        jnp.asarray(obs), jnp.int32(action), jnp.float32(reward), jnp.asarray(reached), jnp.asarray(False),
        jnp.asarray(over),
    )  # fmt: skip


GAIN = {
    "discount": 0.99,
    "learning_rate": 1e-3,
    "batch": 128,
    "train_every": 4,
    "huber": 1.0,
    "double": True,
    "network": deep.Network(hidden=(64, 64)),
    "copy": deep.CopyEvery(updates=250),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stacked", "recurrent"])
def test_gain_switching_on_cartpole_is_learned_with_a_memory(kind):
    """Without a memory 43 or less under one of the signs; a single seed may end with one phase badly learned."""
    steps = 80_000
    pole = CartPole(time_limit=200)
    gains = UncertaintySet.grid(pole, force=(-16, -12, -8, -5, 4, 7, 13, 16))
    settings = deep.Settings(
        **GAIN, epsilon=deep.Epsilon(1.0, 0.02, steps // 4), decay=deep.Decay(last=0.05, steps=steps)
    )
    slower = {"learning_rate": 5e-4, "train_every": 2, "copy": deep.CopyEvery(updates=1, tau=0.005)}
    make, changes = (deep.stacked_dqn, {}) if kind == "stacked" else (deep.recurrent_dqn, slower)
    phases = tuple((5, pole.nominal()._replace(force=np.float32(10 * gain))) for gain in (1, -1, 0.7, -1.5))
    paths = parameter_paths(StepChange(phases), lives=16, episodes=20, seed=0)
    worst = []
    for seed in range(3):
        agent = make(pole, gains, seed=seed, settings=settings, **changes).learn(steps)
        earned = deploy_lives(agent.memory_policy, pole, paths, seed=1).episode_return.reshape(16, 4, 5)
        worst.append(earned.mean(axis=(0, 2)).min())
    assert np.median(worst) > 60, worst


# Gymnasium


def test_randomised_gymnasium_environments_resume_bit_for_bit(tmp_path):
    def env():
        return gymnasium.make("CartPole-v1", max_episode_steps=15)

    def params(inner):
        return EnvMembers(inner, [{"length": 0.25}, {"force_mag": -10.0}])

    inner = env()
    agent = deep.domain_randomised_dqn(inner, params(inner), seed=1, hazard=0.7, **TINY).learn(97)
    agent.save(tmp_path / "agent")
    inner = env()
    again = load(tmp_path / "agent", env=RandomisedParams(inner, params(inner), seed=1, hazard=0.7))
    assert again.about() == agent.about()
    assert same(again.learn(63), agent.learn(63))
    assert agent.about()["world"]["resumes"] == "exactly"


def test_a_stacked_gymnasium_environment_is_the_stacked_simulator():
    envs = SimulatorEnv(POLE), POLE
    agents = [deep.stacked_dqn(env, seed=3, length=2, **TINY) for env in envs]
    assert agents[0].policy.obs_size == agents[1].policy.obs_size == 28
    agents[0].learn(80)
    policies = [agent.memory_policy for agent in agents]
    assert [(type(each).__name__, each.length, each.survives) for each in policies] == [("StackedPolicy", 2, True)] * 2


# what cannot be


def test_what_does_not_fit_is_refused():
    pole = gymnasium.make("CartPole-v1")
    for make in (deep.recurrent_dqn, deep.ewok_dqn):
        with pytest.raises(ValueError, match="env is a Gymnasium environment, expected a simulator"):
            make(pole, seed=0, **TINY)
    with pytest.raises(ValueError, match="parameters is of type list, expected an UncertaintySet"):
        deep.domain_randomised_dqn(POLE, [{"force": 1.0}], seed=0, **TINY)
    with pytest.raises(ValueError, match="expected a single environment; of a vector, wrap each one"):
        deep.domain_randomised_dqn(gymnasium.make_vec("CartPole-v1", 2), [{"length": 1.0}], seed=0, **TINY)
    with pytest.raises(ValueError, match=r"variance is LastLayer.*expected NoVariance"):
        deep.recurrent_dqn(POLE, GAINS, seed=0, variance=deep.LastLayer(), **TINY)
    with pytest.raises(ValueError, match=r"capacity is 300, expected at least burn_in \+ length, 408"):
        deep.recurrent_dqn(POLE, GAINS, seed=0, memory=deep.Memory(8, 400), **TINY)


def test_a_recurrent_agent_says_how_to_act_with_its_memory():
    agent = MAKERS["recurrent"](0)
    for ask in (lambda: agent.policy, lambda: agent.predict([0.0] * 4)):
        with pytest.raises(ValueError, match=r"acts on a memory.*deploy_lives\(agent.memory_policy"):
            ask()


@dataclass(frozen=True)
class OwnPole:
    """A simulator that no file describes."""

    time_limit: int = 15
    n_actions: int = 2

    def nominal(self):
        return POLE.nominal()

    def start(self, key, params):
        return POLE.start(key, params)

    def outcomes(self, state, action, params):
        return POLE.outcomes(state, action, params)

    def observe(self, state):
        return state


def test_a_simulator_of_ones_own_is_given_again(tmp_path):
    own = OwnPole()
    agent = deep.iwocs_dqn(
        own, UncertaintySet.grid(own, force=(-10.0, 5.0)), seed=3, round_steps=60, episodes=2, **TINY
    )
    agent.learn(90).save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"env is missing, expected the simulator.*OwnPole"):
        load(tmp_path / "agent")
    assert same(load(tmp_path / "agent", env=own), agent)
    with pytest.raises(ValueError, match=r"description has the parameters .*expected failure"):
        load(tmp_path / "agent", env=MarsRover())
