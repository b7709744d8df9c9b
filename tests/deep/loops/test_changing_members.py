"""Members that change while an agent learns: the replay is recomputed for them without compilation."""

import jax
import numpy as np
import pytest

from urbe.deep.agent import DQNAgent
from urbe.deep.core.natures import Worst
from urbe.deep.loops.compiled import make_advance
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.saving.load import load
from urbe.deep.settings import Network, Settings
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
