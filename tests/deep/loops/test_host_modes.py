"""In every autoreset mode the learner receives the true transitions."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from fixtures.host_envs import SMALL, Clock
from urbe.deep.core.keys import key_data
from urbe.deep.loops.host.trainer import HostTrainer
from urbe.gym.rows import Observations, host_env
from urbe.rng import stream

STEPS = 90


def vector(count, mode):
    return SyncVectorEnv([Clock] * count, autoreset_mode=mode)


def trained(env, steps=STEPS, cut=STEPS):
    trainer = HostTrainer(SMALL, env, None, seed=3, record_every=1000)
    for done in range(0, steps, cut):
        assert trainer.step == done
        trainer.advance(min(cut, steps - done))
    assert trainer.step == int(trainer.learner.step) == steps
    return trainer


def leaves(trainer):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(key_data(trainer.learner))]


@pytest.fixture(scope="module")
def single():
    return trained(Clock())


@pytest.fixture(scope="module")
def vectors():
    return {mode: trained(vector(3, mode)) for mode in AutoresetMode}


def reported(replay, n):
    """Transitions in the order they were learned from: obs, action, reward, weight, reached, last, acting obs."""
    s = replay.successors
    parts = (replay.obs, replay.action, s.gain[:, 0], s.weight[:, 0, 0], s.obs[:, 0, 0], replay.last, replay.next_obs)
    return list(zip(*(np.asarray(part)[:n] for part in parts), strict=True))


def lived(seed, actions):
    """What an environment does under these actions, computed by hand."""
    env = Clock()
    obs, _ = env.reset(seed=seed)
    obs = obs.copy()
    for action in actions:
        after, reward, terminated, truncated, _ = env.step(int(action) + 5)
        reached = first = after.copy()
        if terminated or truncated:
            first = env.reset()[0].copy()
        yield obs, action, reward, 0.0 if terminated else 0.9, reached, terminated or truncated, first
        obs = first


def seed_of(i):
    return int(stream(3, "environment", i).integers(2**31))


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, np.asarray(b, np.asarray(a).dtype))


def test_a_single_environment_is_reported_as_it_happened(single):
    found = reported(single.learner.replay, STEPS)
    assert_same(found, lived(seed_of(0), [step[1] for step in found]))
    assert {bool(step[3] == 0.0) for step in found if step[5]} == {True, False}  # ends and cuts, both


def test_observations_may_be_one_array_for_ever(single):
    assert leaves(trained(Clock(one_array=True))) == leaves(single)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_one_row_is_the_single_environment_bit_for_bit(single, mode):
    assert leaves(trained(vector(1, mode))) == leaves(single)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_each_of_three_rows_is_reported_as_it_happened(vectors, mode):
    found = reported(vectors[mode].learner.replay, STEPS)
    for i in range(3):
        # an environment's observations begin with the number its episode started with
        expected, own, starts = list(lived(seed_of(i), [0] * 400)), [], set()
        starts = {float(np.float32(step[0][0])) for step in expected}
        own = [step for step in found if float(step[0][0]) in starts]
        assert len(own) >= 25
        assert_same(own, lived(seed_of(i), [step[1] for step in own]))
    assert sum(bool(step[5]) for step in found) >= 10


def test_resetting_in_the_same_step_or_by_hand_is_the_same(vectors):
    same, by_hand = vectors[AutoresetMode.SAME_STEP], vectors[AutoresetMode.DISABLED]
    assert leaves(same) == leaves(by_hand)
    assert leaves(same) != leaves(vectors[AutoresetMode.NEXT_STEP])  # there, a row that ended pauses for a step


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("cut", [1, 7])
def test_where_a_run_is_cut_changes_no_bit(vectors, mode, cut):
    assert leaves(trained(vector(3, mode), cut=cut)) == leaves(vectors[mode])


@pytest.mark.parametrize("mode", AutoresetMode)
def test_episodes_are_those_that_happened(mode):
    trainer = trained(vector(3, mode))
    found, ended = reported(trainer.learner.replay, STEPS), trainer.collect().episodes
    assert ended["step"].tolist() == [k + 1 for k, step in enumerate(found) if step[5]]
    # the reward's part that is not the start's is the sum of actions; lengths are counted by the clock
    assert ended["length"].tolist() == [int(step[4][1]) for step in found if step[5]]
    starts = [step[0][0] for step in found]
    for k, step in enumerate(found):
        if step[5]:
            own = [found[j][2] for j in range(k + 1) if starts[j] == step[0][0]]
            assert ended["return"][ended["step"].tolist().index(k + 1)] == pytest.approx(
                sum(own), abs=1e-5
            )  # float32 in the replay
    assert trainer.collect().episodes["step"].size == 0


def test_a_vector_that_does_not_say_how_it_resets_is_refused():
    env = vector(2, AutoresetMode.DISABLED)
    del env.metadata["autoreset_mode"]
    with pytest.raises(ValueError, match=r"autoreset_mode.*is None, expected one of .*NEXT_STEP"):
        host_env(env)


@pytest.mark.parametrize(
    ("space", "seen", "row"),
    [
        (gymnasium.spaces.Box(0, 255, (2, 2), np.uint8), [[1, 2], [3, 4]], [1, 2, 3, 4]),
        (gymnasium.spaces.Discrete(3, start=-1), -1, [1, 0, 0]),
        (gymnasium.spaces.MultiBinary(3), [1, 0, 1], [1, 0, 1]),
        (gymnasium.spaces.Box(-1, 1, ()), 0.5, [0.5]),
    ],
)
def test_observations_become_rows(space, seen, row):
    found = Observations(space)
    assert found.size == len(row)
    assert found.row(np.asarray(seen)).tolist() == row
    assert found.row(np.asarray(seen)).dtype == np.float32
    assert found.rows(np.asarray([seen, seen]), 2).tolist() == [row, row]


def test_other_spaces_are_refused_with_what_to_do():
    with pytest.raises(ValueError, match=r"Text.*expected one with a fixed number of numbers.*TransformObservation"):
        Observations(gymnasium.spaces.Tuple([gymnasium.spaces.Text(2)]))
    with pytest.raises(ValueError, match=r"action space Box.*expected Discrete.*DiscreteActions"):
        host_env(gymnasium.make("MountainCarContinuous-v0"))
    env = Clock()
    env.action_space = gymnasium.spaces.MultiDiscrete([2, 2])
    with pytest.raises(ValueError, match=r"MultiDiscrete.*expected Discrete.*one action"):
        host_env(env)


@pytest.mark.slow
@pytest.mark.parametrize("mode", AutoresetMode)
def test_environments_in_processes_of_their_own_change_nothing(mode, vectors):
    env = AsyncVectorEnv([Clock] * 3, context="spawn", autoreset_mode=mode)
    try:
        assert leaves(trained(env)) == leaves(vectors[mode])
    finally:
        env.close()
