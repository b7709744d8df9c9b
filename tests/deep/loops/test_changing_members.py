"""Members that change while an agent learns: the replay is recomputed for them without compilation."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from fixtures.host_envs import Clock
from urbe.deep.agent import DQNAgent
from urbe.deep.core.natures import Worst
from urbe.deep.loops.compiled import make_advance
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.presets import dqn, robust_dqn
from urbe.deep.saving.load import load
from urbe.deep.settings import Network, Settings
from urbe.gym import EnvMembers, FunctionMembers
from urbe.gym.kinds import innermost
from urbe.simulators import CartPole, UncertaintySet

SETTINGS = Settings(nature=Worst(), network=Network((8,)), batch=8, capacity=50, warm_up=10)
SHORT, LONG = (UncertaintySet.grid(CartPole(), half_length=lengths) for lengths in ((0.3, 0.4), (1.0, 2.0)))


def agent(uncertain, keep_states=True):
    return DQNAgent("robust-dqn", CompiledTrainer(SETTINGS, CartPole(), uncertain, None, 0, 50, keep_states), 0, 50)


def same(one, other):
    ours, others = one.tensors(), other.tensors()
    return ours.keys() == others.keys() and all(ours[n].tobytes() == others[n].tobytes() for n in ours)


def test_the_replay_becomes_that_of_the_new_members_and_learning_goes_on(tmp_path):
    changed = agent(SHORT).learn(70)  # the ring of 50 has come round
    before = jax.device_get(changed.trainer.learner.replay)
    programs = make_advance(SETTINGS, CartPole(), None)._cache_size()
    changed.trainer.set_members(LONG)
    after, states = jax.device_get((changed.trainer.learner.replay, changed.trainer._run.states))
    assert changed.trainer.describe()["uncertain"] == LONG.describe()
    np.testing.assert_array_equal(before.obs, jax.vmap(CartPole().observe)(states))  # each state is its transition's
    assert (after.stamp == -1).all()
    for place in (0, 19, 20, 49):
        for k, params in enumerate(LONG.members()):
            found = CartPole().outcomes(
                jax.tree.map(lambda leaf, p=place: leaf[p], states), after.action[place], params
            )
            np.testing.assert_allclose(after.successors.obs[place, k, 0], found.state[0], rtol=1e-5, atol=1e-6)
            assert after.successors.weight[place, k, 0] == (0.0 if found.terminated[0] else np.float32(0.9))
    assert (after.successors.obs[:, 1:] != before.successors.obs[:, 1:]).any(axis=(1, 2, 3)).all()
    changed.save(tmp_path / "agent")
    again = load(tmp_path / "agent")
    assert same(changed.learn(50), again.learn(50))
    assert make_advance(SETTINGS, CartPole(), None)._cache_size() == programs
    assert not same(changed, agent(SHORT).learn(120))
    again.trainer.set_members(SHORT)
    assert again.learn(50).step == 170


def test_the_same_members_change_nothing_but_rounding():
    kept, set_again = agent(SHORT).learn(60), agent(SHORT).learn(60)
    set_again.trainer.set_members(SHORT)
    one, other = (jax.device_get(each.trainer.learner.replay.successors) for each in (kept, set_again))
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_keeping_states_changes_nothing_else():
    one, other = agent(SHORT).learn(60).tensors(), agent(SHORT, keep_states=False).learn(60).tensors()
    assert {name for name in one if name not in other} == {name for name in one if name.startswith("trainer/states")}
    assert all(one[name].tobytes() == other[name].tobytes() for name in other)


@pytest.mark.parametrize(
    ("made", "given", "words"),
    [
        (agent(SHORT, keep_states=False), LONG, "made without keep_states=True"),
        (agent(None), LONG, "made without an uncertainty set"),
        (agent(SHORT), UncertaintySet.grid(CartPole(), half_length=(1.0,)), "has 2 members .* expected 3"),
    ],
)
def test_what_does_not_fit_is_refused(made, given, words):
    with pytest.raises(ValueError, match=words):
        made.trainer.set_members(given)


def gym_agent(lengths, vector=False, **given):
    """A robust agent on Gymnasium's pole, or on two of them that act together."""
    makers = [lambda: gymnasium.make("CartPole-v1")] * 2
    env = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.NEXT_STEP) if vector else makers[0]()
    return env, robust_dqn(env, poles(env, lengths), seed=0, settings=SETTINGS, log_every=100, **given)


def poles(env, lengths):
    return EnvMembers.grid(env, length=lengths)


def follows(replay, places, copies):
    """Checks that outcomes in the replay are those of copies that are set to the observation before it."""
    for place in places:
        for k, copy in enumerate(copies):
            copy.reset()
            innermost(copy).state = replay.obs[place].astype(np.float64)
            reached, reward, terminated, *_ = copy.step(replay.action[place])
            np.testing.assert_allclose(replay.successors.obs[place, k, 0], reached, rtol=1e-5, atol=1e-6)
            assert replay.successors.gain[place, k] == reward
            assert replay.successors.weight[place, k, 0] == (0.0 if terminated else np.float32(0.9))


@pytest.mark.parametrize("vector", [False, True])
def test_the_replay_of_a_gymnasium_environment_becomes_that_of_the_new_members(vector, tmp_path):
    env, changed = gym_agent((0.3, 0.4), vector, keep_states=True)
    changed.learn(71)  # the ring of 50 has come round; of two environments one waits for its turn
    before = jax.device_get(changed.trainer.learner.replay)
    changed.set_members(poles(env, (1.0, 2.0)))
    after = jax.device_get(changed.trainer.learner.replay)
    assert (after.stamp == -1).all()
    np.testing.assert_array_equal(after.successors.obs[:, 0], before.successors.obs[:, 0])  # the nominal member
    assert (after.successors.obs[:, 1:] != before.successors.obs[:, 1:]).any(axis=(1, 2, 3)).all()
    copies = poles(env, (1.0, 2.0)).copies
    follows(after, (0, 20, 21, 49), copies)
    changed.save(tmp_path / "agent")
    fresh = gym_agent((0.3, 0.4), vector)[0]
    again = load(tmp_path / "agent", env=fresh, uncertainty_set=poles(fresh, (1.0, 2.0)))
    for one, its_env in ((changed, env), (again, fresh)):
        one.learn(30)
        follows(jax.device_get(one.trainer.learner.replay), (21, 22, 45), copies)  # the first one had been waiting
        one.set_members(poles(its_env, (0.2, 3.0))).learn(10)
    assert same(changed, again)


def test_the_same_members_of_a_gymnasium_environment_change_nothing():
    env, kept = gym_agent((0.3, 0.4), keep_states=True)
    kept.learn(60)
    before = jax.device_get(kept.trainer.learner.replay.successors)
    kept.set_members(poles(env, (0.3, 0.4)))
    for mine, theirs in zip(jax.device_get(kept.trainer.learner.replay.successors), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    plain = gym_agent((0.3, 0.4))[1].learn(60).tensors()
    assert {name for name in kept.tensors() if name not in plain and not name.startswith("trainer/states")} == set()


def multiple(factor):
    """Members that keep the observation, and multiply it."""

    def function(obs, action):
        assert action in (5, 6)
        return np.stack([obs, factor * obs]), np.ones(2), np.zeros(2, bool)

    return FunctionMembers(function, 2)


def test_members_of_functions_need_no_states_of_environments_in_other_processes():
    """Their outcomes follow from observations."""
    env = AsyncVectorEnv([Clock] * 2, context="spawn", autoreset_mode=AutoresetMode.NEXT_STEP)
    one = robust_dqn(env, multiple(2.0), seed=0, settings=SETTINGS, keep_states=True).learn(31)
    one.set_members(multiple(3.0))
    replay = jax.device_get(one.trainer.learner.replay)
    np.testing.assert_allclose(replay.successors.obs[:31, 1, 0], 3.0 * replay.obs[:31], rtol=1e-6)
    env.close()


def test_what_does_not_fit_a_gymnasium_environment_is_refused():
    env, plain = gym_agent((0.3,))
    with pytest.raises(ValueError, match="made without keep_states=True"):
        plain.set_members(poles(env, (0.4,)))
    with pytest.raises(ValueError, match="made without an uncertainty set"):
        dqn(env, seed=0, settings=SETTINGS).set_members(poles(env, (0.4,)))
    env, kept = gym_agent((0.3,), keep_states=True)
    with pytest.raises(ValueError, match="has 3 members with 1 outcomes each, expected 2 with 1"):
        kept.set_members(poles(env, (0.4, 0.6)))
    with pytest.raises(ValueError, match=r"keep_states is True, but the state of .* cannot be read and set"):
        robust_dqn(Clock(), multiple(2.0), seed=0, settings=SETTINGS, keep_states=True)
