"""The host loop as a trainer: same updates as the compiled path, seeds, resuming, numbers that are not finite."""

import json
import subprocess
import sys
import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from fixtures.host_envs import ROBUST, SMALL, Clock, Remembering
from urbe.deep.core.finite import NotFinite
from urbe.deep.core.keys import key_data, root_key
from urbe.deep.core.precision import double
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.loops.host.callback import CallbackSession
from urbe.deep.loops.host.program import CarryTree, Columns, ProgramShape, make_feed, make_start
from urbe.deep.loops.host.trainer import HostTrainer
from urbe.deep.loops.trainer import FrozenTrainer
from urbe.deep.policies.policy import Policy
from urbe.deep.presets import dqn, dqn_urbe, robust_dqn, soft_robust_dqn
from urbe.gym import SimulatorEnv
from urbe.gym.discrete_actions import DiscreteActions
from urbe.gym.members.base import FunctionMembers
from urbe.gym.members.copies import EnvMembers
from urbe.gym.rows import host_env
from urbe.gym.states import env_states
from urbe.runs.tree import flatten, unflatten
from urbe.simulators import Acrobot, CartPole, Constant, UncertaintySet

POLES = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))


def learned(trainer):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(key_data(trainer.learner))]


def trainer_on(env, members=None, seed=0, settings=SMALL):
    return HostTrainer(settings, env, members, seed, record_every=1000)


@pytest.fixture(scope="module")
def on_cartpole():
    """Plain, 120 steps of Gymnasium's CartPole."""
    trainer = trainer_on(gymnasium.make("CartPole-v1"))
    trainer.advance(120)
    return trainer


def test_both_paths_share_one_update():
    """What the compiled path lived through, given to the host path's update, teaches the same to the last bit."""
    steps, shape = 120, ProgramShape(4, 2, len(POLES), 1)
    compiled = CompiledTrainer(ROBUST, CartPole(), POLES, None, 0, record_every=1000)
    compiled.advance(steps)
    with double():
        leaves = make_start(ROBUST, shape)(jax.random.fold_in(root_key(0), 1))
    replay, columns, feed = jax.device_get(compiled.learner.replay), Columns(shape, 1), make_feed(ROBUST, shape)
    columns.present[:] = 1.0
    for k in range(steps):
        columns.obs[0], columns.action[0], columns.last[0] = replay.obs[k], replay.action[k], replay.last[k]
        columns.gain[0], columns.weight[0], columns.reached[0] = (leaf[k] for leaf in replay.successors)
        columns.acting_obs[0] = replay.next_obs[k]
        with CallbackSession() as program:
            with double():
                leaves = feed(leaves, columns.rows, program.ticket)
            assert program.wait_for_request(leaves[0].is_ready) == [replay.next_action[k]]
    with double():
        host = CarryTree(ROBUST, shape).unflatten(leaves)
    ours, theirs = flatten(jax.device_get(key_data(host.learner))), flatten(jax.device_get(key_data(compiled.learner)))
    assert int(host.learner.updates) > 90
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array, err_msg=name)
    np.testing.assert_array_equal(host.meters.sums, compiled.state().meters.sums)


def test_same_seed_same_bits(on_cartpole):
    again = trainer_on(gymnasium.make("CartPole-v1"))
    again.advance(120)
    assert learned(again) == learned(on_cartpole)
    other = trainer_on(gymnasium.make("CartPole-v1"), seed=1)
    other.advance(120)
    assert not np.array_equal(other.learner.replay.obs, on_cartpole.learner.replay.obs)


def test_nothing_of_the_users_settings_matters(on_cartpole):
    with jax.enable_x64(True):
        again = trainer_on(gymnasium.make("CartPole-v1"))
        again.advance(120)
    assert learned(again) == learned(on_cartpole)


def test_the_nominal_member_alone_is_dqn(on_cartpole):
    env = gymnasium.make("CartPole-v1")
    robust = trainer_on(env, EnvMembers(env, []))
    robust.advance(120)
    assert learned(robust) == learned(on_cartpole)


def test_a_simulator_as_an_environment_has_the_members_of_its_set():
    env = gymnasium.make("urbe/CartPole-v0")
    agent = robust_dqn(env, POLES, seed=0, settings=SMALL)
    agent.learn(60)
    replay = jax.device_get(agent.trainer.learner.replay)
    ways = jax.vmap(jax.vmap(CartPole().outcomes, (None, None, 0)), (0, 0, None))
    found = jax.jit(ways)(replay.obs[:60], replay.action[:60], POLES.params)
    np.testing.assert_allclose(replay.successors.obs[:60], found.state, rtol=0, atol=1e-6)  # rounding
    np.testing.assert_array_equal(replay.successors.weight[:60] == 0.0, found.terminated)
    # the member in force led to what was observed, to the last bit
    going_on = ~replay.last[:60]
    np.testing.assert_array_equal(replay.successors.obs[:60, 0, 0][going_on], replay.next_obs[:60][going_on])
    assert agent.about()["world"]["uncertain"]["parameters"]["half_length"] == [0.5, 0.25, 1.0]


@pytest.mark.slow
def test_both_paths_on_acrobot():
    env, masses = gymnasium.make("Acrobot-v1"), UncertaintySet.grid(Acrobot(), link_mass_1=(0.5, 2.0))
    here = robust_dqn(env, EnvMembers.grid(env, LINK_MASS_1=(0.5, 2.0)), seed=0, settings=SMALL, log_every=50).learn(
        100
    )
    there = robust_dqn(Acrobot(), masses, seed=0, settings=SMALL, log_every=50).learn(100)
    for agent in (here, there):
        assert agent.step == 100
        assert int(agent.trainer.learner.updates) == 100 - SMALL.warm_up + 1
        assert np.isfinite(agent.history.log["loss"]).all()
        assert agent.predict(env.observation_space.sample()) in range(3)


def test_an_agent_goes_on_bit_for_bit():
    def one():
        env = SyncVectorEnv(
            [lambda: gymnasium.make("CartPole-v1", max_episode_steps=15)] * 3, autoreset_mode=AutoresetMode.NEXT_STEP
        )
        return dqn(env, seed=5, settings=SMALL, log_every=20)

    whole = one().learn(110)
    for cut in range(30, 50):
        first = one().learn(cut)
        waits = bool(first.trainer.state()["rows"].waiting.any())  # some row, for its reset
        if cut == 30 or waits:
            second = one()
            second.load_tensors(first.tensors(), "memory")
            second.learn(110 - cut)
            ours, theirs = second.tensors(), whole.tensors()
            assert ours.keys() == theirs.keys()
            for name, array in theirs.items():
                assert ours[name].tobytes() == array.tobytes(), name
        if waits:
            return
    pytest.fail("No run was cut where a row waits for its reset.")


def walked(env, actions):
    """Everything seen along some actions."""
    expected = [env.step([int(action)], [False])[0] for action in actions]
    return [(*step[:3], step.reached.tobytes(), step.first.tobytes()) for step in expected]


KEPT = {
    "CartPole": lambda: gymnasium.make("CartPole-v1", max_episode_steps=17),
    "Acrobot": lambda: gymnasium.make("Acrobot-v1", max_episode_steps=17),
    "MountainCar": lambda: gymnasium.make("MountainCar-v0", max_episode_steps=17),
    "MountainCarContinuous": lambda: DiscreteActions(
        gymnasium.make("MountainCarContinuous-v0", max_episode_steps=17), [-1.0, 0.3, 1.0]
    ),
    "Pendulum": lambda: DiscreteActions(gymnasium.make("Pendulum-v1", max_episode_steps=17), [-2.0, 0.5, 2.0]),
    "DeepSea": lambda: gymnasium.make("urbe/DeepSea-v0", slip=0.3),
    "MarsRover": lambda: gymnasium.make("urbe/MarsRover-v0"),
    "InvertedPendulum": lambda: DiscreteActions(gymnasium.make("InvertedPendulum-v5"), [-3.0, 0.5, 3.0]),
    "Hopper": lambda: DiscreteActions(gymnasium.make("Hopper-v5"), [[-1, 1, 0.5], [1, -0.5, 1], [0.2, 1, -1]]),
    "Ant": lambda: DiscreteActions(gymnasium.make("Ant-v5"), np.random.default_rng(0).uniform(-1, 1, (3, 8))),
    "Flattened": lambda: gymnasium.wrappers.RescaleObservation(
        gymnasium.make("MountainCar-v0"), np.float32(-1), np.float32(1)
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_states_of_environments_are_kept_whole(name):
    env, other = host_env(KEPT[name]()), host_env(KEPT[name]())
    env.reset([3]), other.reset([99])
    actions = np.random.default_rng(1).integers(env.n_actions, size=60)
    walked(env, actions[:30])
    arrays = flatten({"env": env_states(env).get([False])})
    arrays = {name: array.copy() for name, array in arrays.items()}
    seen = walked(env, actions[30:])
    keeper = env_states(other)
    keeper.set(unflatten(arrays, {"env": keeper.get([False])})["env"], [False])
    assert walked(other, actions[30:]) == seen


@pytest.mark.parametrize("make", [Clock, lambda: Remembering(gymnasium.make("CartPole-v1"))])
def test_an_environment_that_cannot_be_kept_begins_anew(make):
    first = trainer_on(make())
    first.advance(40)
    assert first.describe()["resumes"] == "with a new episode"
    second, third = trainer_on(make()), trainer_on(make())
    for again in (second, third):
        again.load(first.state())
        assert again.step == 40
        assert learned(again) == learned(first)
        again.advance(20)
    assert learned(second) == learned(third)


def test_what_it_is_trained_on_in_plain_data(on_cartpole):
    expected = on_cartpole.describe()
    assert json.loads(json.dumps(expected)) == expected
    assert expected["resumes"] == "exactly"
    assert expected["shape"] == {"obs_size": 4, "n_actions": 2, "members": 1, "outcomes": 1}
    assert expected["environment"].endswith("<CartPole-v1>>>>>")


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ({9: ("reward", np.nan)}, "reward"),
        ({9: ("observation", np.inf)}, "observation"),
    ],
)
def test_the_place_of_a_number_that_is_not_finite(bad, kind):
    env = SyncVectorEnv([Clock, lambda: Clock(bad=bad), Clock], autoreset_mode=AutoresetMode.SAME_STEP)
    trainer = trainer_on(env)
    for _ in range(2):  # and it stays there
        with pytest.raises(NotFinite, match=f"The {kind} of environment 1 at step 26 is not finite"):
            trainer.advance(80)
    assert int(trainer.learner.step) == 26


def test_a_loss_that_overflows_is_found():
    trainer = trainer_on(Clock(bad=dict.fromkeys(range(10, 20), ("reward", 1e30))))
    with pytest.raises(NotFinite, match=r"The loss of environment 0 at step \d+ is not finite.*learning rate"):
        trainer.advance(60)


def test_a_members_number_that_is_not_finite():
    def function(obs, action):  # noqa: ARG001
        bad = np.where(obs[1] >= 2, [[0.0], [np.nan], [0.0]], 0.0)
        return bad + obs, np.zeros(3), np.zeros(3, bool)

    trainer = trainer_on(Clock(), FunctionMembers(function, 3), settings=ROBUST)
    with pytest.raises(NotFinite, match=r"member's observation \(member 1\)"):
        trainer.advance(80)


def test_a_frozen_agent_predicts_and_learns_no_more(on_cartpole):
    shape = on_cartpole.describe()["shape"]
    frozen = FrozenTrainer(SMALL, 0, on_cartpole.spaces, **shape)
    assert not frozen.acts_in(gymnasium.make("CartPole-v1"))
    frozen.load({"learner": on_cartpole.state()["learner"]})
    assert learned(frozen) == learned(on_cartpole)
    assert frozen.step == 120
    obs = np.random.default_rng(0).normal(size=(9, 4))
    expected = Policy.of(SMALL, on_cartpole.learner).predict(obs)
    assert Policy.of(SMALL, frozen.learner).predict(obs).tolist() == expected.tolist()
    frozen.advance(0)
    with pytest.raises(ValueError, match=r"without its environment.*load it with env="):
        frozen.advance(1)


def lunar_lander():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Box2D's own, raised while it is imported
        return gymnasium.make("LunarLander-v3")


def test_lunar_lander_learns_and_cannot_be_robust():
    env = lunar_lander()
    agent = dqn(env, seed=0, settings=SMALL).learn(40)
    assert agent.about()["world"]["resumes"] == "with a new episode"
    for preset in (robust_dqn, dqn_urbe, soft_robust_dqn):
        with pytest.raises(ValueError, match=r"LunarLander.*no adapter is known that could set its state.*EnvMembers"):
            preset(env, None, seed=0)
    with pytest.raises(ValueError, match=r"parameters of a simulator of urbe.*LunarLander.*no adapter"):
        robust_dqn(env, POLES, seed=0)
    with pytest.raises(ValueError, match=r"LunarLander.*no adapter"):
        EnvMembers.grid(env, gravity=(-5.0,))


def test_what_does_not_fit_together_is_refused():
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(ValueError, match=r"schedule.*ChangingParams"):
        dqn(env, seed=0, schedule=Constant(CartPole().nominal()))
    with pytest.raises(ValueError, match=r"simulator of urbe.*EnvMembers.grid.*length"):
        robust_dqn(env, POLES, seed=0)
    with pytest.raises(ValueError, match=r"uncertainty_set is None.*length"):
        robust_dqn(env, None, seed=0)
    with pytest.raises(ValueError, match=r"uncertainty_set is None.*UncertaintySet.grid"):
        robust_dqn(CartPole(), None, seed=0)
    with pytest.raises(ValueError, match=r"EnvMembers, expected UncertaintySet"):
        robust_dqn(CartPole(), EnvMembers(env, []), seed=0)
    with pytest.raises(ValueError, match=r"'CartPole-v1', expected a simulator.*gymnasium.make"):
        dqn("CartPole-v1", seed=0)
    wrapped = gymnasium.wrappers.TransformReward(SimulatorEnv(CartPole()), lambda r: 2 * r)
    with pytest.raises(ValueError, match=r"TransformReward.*EnvMembers.grid"):
        robust_dqn(wrapped, POLES, seed=0)
    with pytest.raises(ValueError, match=r"parameters half_length.*expected those of Acrobot"):
        robust_dqn(gymnasium.make("urbe/Acrobot-v0"), POLES, seed=0)


def test_discrete_actions_are_rows_of_values():
    env = DiscreteActions(gymnasium.make("InvertedPendulum-v5"), [[-3.0], [3.0]])
    assert env.action_space == gymnasium.spaces.Discrete(2)
    other = gymnasium.make("InvertedPendulum-v5")
    env.reset(seed=0), other.reset(seed=0)
    np.testing.assert_array_equal(env.step(1)[0], other.step(np.array([3.0], np.float32))[0])
    for values, words in (([[4.0]], r"values\[0\] is \[4.\]"), ([[1.0, 2.0]], "expected \\(A, 1\\)"), ([], "expected")):
        with pytest.raises(ValueError, match=words):
            DiscreteActions(gymnasium.make("InvertedPendulum-v5"), values)
    with pytest.raises(ValueError, match="expected a Box"):
        DiscreteActions(gymnasium.make("CartPole-v1"), [0.0])


def test_a_run_compiles_three_programs():
    """The start, the first actions, and the loop; operations outside of programs would each be compiled, too."""
    code = """
import gymnasium, jax
from urbe import deep
compiled = []

def note(event, seconds, fun_name=None, **others):
    if event.endswith("backend_compile_duration"):
        compiled.append(fun_name)
jax.monitoring.register_event_duration_secs_listener(note)
small = deep.Settings(network=deep.Network(hidden=(8,)), batch=4, capacity=50, warm_up=10)
deep.dqn(gymnasium.make("CartPole-v1"), seed=0, settings=small, log_every=10).learn(25)
assert compiled == ["jit(<lambda>)", "jit(begin)", "jit(feed)"], compiled
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
