"""Observation and action spaces: rows against Gymnasium's own flattening, actions, errors, files."""

from copy import deepcopy

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as kinds
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array

from urbe.deep.compilation import cache_compilation
from urbe.deep.core.last_layer import LastLayer
from urbe.deep.policies.sb3 import SB3Policy
from urbe.deep.presets import dqn, dqn_ube
from urbe.deep.saving.load import load
from urbe.deep.settings import Epsilon, Network
from urbe.evaluation.robustness import evaluate
from urbe.gym import SimulatorEnv
from urbe.gym.rows import Observations, host_env
from urbe.gym.spaces import Spaces
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import load_tensors, save_tensors
from urbe.simulators import CartPole

TINY = {"network": Network(hidden=(8,)), "batch": 8, "capacity": 60, "warm_up": 10}
CAMERA = kinds.Box(0, 255, (2, 3, 3), np.uint8)
SPACES = [
    kinds.Box(-1.0, 1.0, (3,), np.float32),
    kinds.Box(-np.inf, np.inf, (2, 2), np.float64),
    CAMERA,
    kinds.Box(-3, 3, (), np.int16),
    kinds.Discrete(4, start=-2),
    kinds.MultiBinary(3),
    kinds.MultiBinary((2, 2)),
    kinds.MultiDiscrete([3, 2], start=[5, 0]),
    kinds.MultiDiscrete([[3, 2], [2, 2]]),
    kinds.Tuple([kinds.Discrete(3), CAMERA]),
    kinds.Dict(camera=CAMERA, door=kinds.Discrete(2, start=1), arm=kinds.Dict(joints=kinds.MultiBinary(2))),
]
COMPOSED = SPACES[-1]


class Given(gymnasium.Env):
    """Gives samples of a space; its actions count from 5, and it remembers them."""

    def __init__(self, space=COMPOSED):
        self.observation_space, self.action_space = deepcopy(space), kinds.Discrete(3, start=5)
        self.taken, self.time = [], 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        if seed is not None:
            self.observation_space.seed(seed)
        self.time = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.taken.append(int(action))
        self.time += 1
        return self.observation_space.sample(), float(action == 6), self.time == 7, False, {}


@pytest.fixture(scope="module")
def agent():
    cache_compilation()
    return dqn(Given(), seed=0, log_every=20, **TINY).learn(60)


@pytest.fixture(params=SPACES, ids=str)
def space(request):
    request.param.seed(3)
    return request.param


def batch(space, count):
    """Samples one by one, and as a vector of environments gives them."""
    samples = [space.sample() for _ in range(count)]
    return samples, concatenate(space, samples, create_empty_array(space, count))


def test_rows_are_gymnasiums_flattening(space):
    samples, stacked = batch(space, 4)
    expected = np.stack([gymnasium.spaces.flatten(space, each).astype(np.float32) for each in samples])
    spaces = Spaces(space, 2)
    rows, single = spaces.rows(stacked)
    assert not single
    np.testing.assert_array_equal(rows, expected)
    for sample, row in zip(samples, expected, strict=True):
        rows, single = spaces.rows(sample)
        assert single
        np.testing.assert_array_equal(rows, row[None])
        np.testing.assert_array_equal(Observations(space).row(sample), row)
    assert rows.dtype == np.float32
    assert Observations(space).size == expected.shape[1]


def test_a_batch_may_be_empty(space):
    rows, single = Spaces(space, 2).rows(create_empty_array(space, 0))
    assert rows.shape == (0, Observations(space).size)
    assert not single


def test_spaces_go_through_files(space):
    expected = Spaces(space, 3, 5).describe()
    again = Spaces.of(expected)
    assert again.describe() == expected
    samples, stacked = batch(space, 3)
    for given in (*samples, stacked):
        np.testing.assert_array_equal(again.rows(given)[0], Spaces(space, 3, 5).rows(given)[0])


def test_actions_count_from_the_start():
    spaces = Spaces.flat(2, 3)
    assert type(spaces.actions(np.array([2]), single=True)) is int
    assert Spaces(CAMERA, 3, start=5).actions(np.array([2]), single=True) == 7
    many = Spaces(CAMERA, 3, start=5).actions(np.array([2, 0], np.int32), single=False)
    assert (many.dtype, many.tolist()) == (np.int64, [7, 5])


@pytest.mark.parametrize(
    ("space", "given", "message"),
    [
        (SPACES[0], [0.0, 1.0], r"has shape \(2,\), expected \(3,\) as Box\(\(3,\), float32\) gives, or \(B, 3\)"),
        (SPACES[0], 1.0, r"observation has shape \(\), expected"),
        (SPACES[0], np.zeros((2, 2, 3)), r"observation has shape \(2, 2, 3\)"),
        (SPACES[0], [0.0, np.nan, 0.0], r"observation\[1\] is nan, expected a finite number"),
        (SPACES[0], [0.0, -1e300, 0.0], r"observation\[1\] is -1e\+300, expected a finite number of single precision"),
        (SPACES[0], ["a", "b", "c"], "observation has type <U1, expected numbers"),
        (SPACES[0], [[0.0], [1.0, 2.0]], "observation is not an array"),
        (CAMERA, np.full((2, 3, 3), 0.5), r"observation\[0, 0, 0\] is 0.5, expected a whole number, as Box"),
        (kinds.Discrete(3, start=5), 8, r"observation is 8, expected one of Discrete\(3, start=5\)"),
        (kinds.Discrete(3, start=5), [5, 4], r"observation\[1\] is 4, expected one of"),
        (kinds.Discrete(3), 0.5, r"observation is 0.5, expected one of"),
        (kinds.MultiDiscrete([3, 2]), [2, 2], r"observation\[1\] is 2, expected one of MultiDiscrete"),
        (COMPOSED, {"camera": 0}, r"observation has the keys \['camera'\], expected a mapping with the keys \['arm', "),
        (COMPOSED, 3, "observation is 3, expected a mapping"),
        (SPACES[-2], (1,), r"observation is \(1,\), expected a tuple of 2"),
        (SPACES[-2], ([1, 2], np.zeros((3, 2, 3, 3), np.uint8)), r"observation\[1\] has shape \(3, 2, 3, 3\)"),
        (
            COMPOSED,
            {"camera": np.zeros((2, 3, 3), np.uint8), "door": 7, "arm": {"joints": [0, 1]}},
            r"observation\['door'\] is 7, expected one of Discrete\(2, start=1\)",
        ),
    ],
)  # fmt: skip
def test_what_is_no_observation_is_said_in_the_words_of_the_space(space, given, message):
    with pytest.raises(ValueError, match=message):
        Spaces(space, 2).rows(given)


@pytest.mark.parametrize("space", [kinds.Text(3), kinds.Sequence(kinds.Discrete(2)), kinds.Tuple([kinds.Text(3)])])
def test_spaces_without_a_fixed_size_are_refused(space):
    with pytest.raises(ValueError, match="expected one with a fixed number of numbers: Box, Discrete"):
        dqn(Given(space), seed=0, **TINY)


# agents


def test_an_agent_takes_what_its_environment_gives_and_gives_what_it_takes(agent):
    env = Given()
    obs, _ = env.reset(seed=1)
    for _ in range(7):
        obs, *_ = env.step(agent.predict(obs))
    rng = np.random.default_rng(0)
    obs, _ = env.reset()
    for _ in range(7):
        obs, *_ = env.step(agent.predict(obs, deterministic=False, rng=rng))
    assert set(env.taken) <= {5, 6, 7}
    samples, stacked = batch(COMPOSED, 5)
    assert agent.predict(stacked).tolist() == [agent.predict(each) for each in samples]


def test_predicting_is_what_evaluation_does(agent):
    """Returns of `urbe.evaluate`, which flattens on its own, against a loop with predict."""
    found = evaluate(agent, [{}], env=lambda _: Given(), episodes=4, seed=2)
    asked = evaluate(
        SB3Policy(agent, np.random.default_rng(0)), [{}], env=lambda _: Given(), episodes=4, seed=2, acting="greedy"
    )
    np.testing.assert_array_equal(found.greedy.returns, asked.greedy.returns)


def test_a_vector_of_environments_is_learned_in_and_predicted_for():
    vector = SyncVectorEnv([Given] * 3)
    agent = dqn(vector, seed=0, log_every=20, **TINY).learn(60)
    obs, _ = vector.reset(seed=0)
    actions = agent.predict(obs)
    assert actions.shape == (3,)
    vector.step(actions)


def test_acting_as_in_training_has_random_actions_and_needs_a_generator(agent):
    _, stacked = batch(COMPOSED, 400)
    noisy = dqn(Given(), seed=0, log_every=20, **TINY, epsilon=Epsilon(1.0, 0.0, 100)).learn(50)  # half at random
    greedy = noisy.predict(stacked)
    acted = noisy.predict(stacked, deterministic=False, rng=np.random.default_rng(1))
    same = (acted == greedy).mean()
    assert abs(same - (0.5 + 0.5 / 3)) < 0.12  # five deviations of 400 draws
    again = noisy.predict(stacked, deterministic=False, rng=np.random.default_rng(1))
    other = noisy.predict(stacked, deterministic=False, rng=np.random.default_rng(2))
    assert acted.tolist() == again.tolist() != other.tolist()
    with pytest.raises(ValueError, match="rng is missing, but acting is not deterministic"):
        agent.predict(stacked, deterministic=False)
    with pytest.raises(ValueError, match="rng is given, but acting is deterministic"):
        agent.predict(stacked, rng=np.random.default_rng(0))
    with pytest.raises(TypeError, match=r"rng is 3, expected a generator such as np.random.default_rng\(3\)"):
        agent.predict(stacked, deterministic=False, rng=3)


def test_acting_as_in_training_is_perturbed_by_the_uncertainty_head():
    calm = {"epsilon": Epsilon(0.0, 0.0, 1), **TINY}
    agent = dqn_ube(CartPole(), seed=0, log_every=20, variance=LastLayer(beta=50.0), **calm).learn(40)
    obs = np.random.default_rng(0).normal(size=(100, 4))
    noisy = agent.predict(obs, deterministic=False, rng=np.random.default_rng(3))
    assert noisy.tolist() == agent.policy.predict(obs, np.random.default_rng(3)).tolist()
    assert noisy.tolist() != agent.predict(obs).tolist()


def test_a_loaded_agent_predicts_from_the_same_observations(agent, tmp_path):
    agent.save(tmp_path / "agent")
    samples, stacked = batch(COMPOSED, 6)
    frozen = load(tmp_path / "agent")
    frozen.save(tmp_path / "again")
    for other in (frozen, load(tmp_path / "agent", env=Given()), load(tmp_path / "again")):
        assert other.predict(stacked).tolist() == agent.predict(stacked).tolist()
        assert other.predict(samples[0]) == agent.predict(samples[0])


def test_files_of_before_there_were_spaces_predict_from_rows(agent, tmp_path):
    _, stacked = batch(COMPOSED, 6)
    rows, _ = agent.trainer.spaces.rows(stacked)
    save_tensors(tmp_path / "old", agent.tensors(), agent.about())
    assert (load(tmp_path / "old").predict(rows) + 5).tolist() == agent.predict(stacked).tolist()


@pytest.mark.parametrize(
    "spaces",
    [
        3,
        {},
        {"observation": {"kind": "Secret"}, "n_actions": 3, "start": 5},
        {"observation": {"kind": "Box", "shape": [2], "dtype": "float32"}, "n_actions": 3, "start": 5},
        {"observation": {"kind": "Box", "shape": "x", "dtype": "float32"}, "n_actions": 3, "start": 5},
        {"observation": {"kind": "Discrete", "n": -1, "start": 0}, "n_actions": 3, "start": 5},
    ],
)
def test_spaces_that_cannot_be_are_refused(agent, tmp_path, spaces):
    save_tensors(tmp_path / "bad", agent.tensors(), {**agent.saved_about(), "spaces": spaces})
    with pytest.raises(CheckpointError):
        load(tmp_path / "bad")
    assert "spaces" in load_tensors(tmp_path / "bad")[1]


# Stable-Baselines3


def test_tools_of_stable_baselines_find_the_predict_they_know(agent):
    model = SB3Policy(agent, np.random.default_rng(4))
    _, stacked = batch(COMPOSED, 6)
    state, starts = None, np.ones(6, bool)
    actions, state = model.predict(stacked, state=state, episode_start=starts, deterministic=True)  # as evaluate_policy
    assert actions.tolist() == agent.predict(stacked).tolist()
    assert state is None
    drawn, _ = model.predict(stacked)
    expected = agent.predict(stacked, deterministic=False, rng=np.random.default_rng(4))
    assert drawn.tolist() == expected.tolist()
    one, _ = model.predict(COMPOSED.sample(), deterministic=True)
    assert one.shape == ()
    with pytest.raises(ValueError, match="expected None: the policy has no memory"):
        model.predict(stacked, state=(1,))


class Broken(gymnasium.Env):
    """Correct for three steps, then gives whatever it was made with."""

    action_space = kinds.Discrete(2)

    def __init__(self, space, obs, result=None):
        self.observation_space, self.obs, self.result = space, obs, result

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.time = 0
        self.observation_space.seed(0)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert action in (0, 1)
        self.time += 1
        if self.time < 3:
            return self.observation_space.sample(), 1.0, False, False, {}
        return (self.obs, 1.0, False, False, {}) if self.result is None else self.result


@pytest.mark.parametrize(
    ("space", "obs", "message"),
    [
        (kinds.Box(-1, 1, (2,)), np.zeros(3), r"observation_space, Box\(.* \(3 numbers, expected 2\)"),
        (kinds.Box(-1, 1, (2,)), ["warm", "cold"], "could not convert string to float"),
        (kinds.Discrete(3), 3, r"the observation 3, which is not of .* Discrete\(3\) \(3 is not of Discrete\(3\)\)"),
        (kinds.MultiDiscrete([3, 2]), np.array([3, 0]), r"is not of MultiDiscrete"),
        (kinds.Dict(a=kinds.Discrete(2), b=kinds.Box(0, 1, (2,))), {"a": 1, "b": np.zeros(3)}, "3 numbers, expected 2"),
        (kinds.Dict(a=kinds.Discrete(2)), {"b": 1}, "KeyError"),
    ],
)
def test_an_observation_outside_of_its_space_is_never_learned_from(space, obs, message):
    with pytest.raises(ValueError, match=message):
        dqn(Broken(space, obs), seed=0, **TINY).learn(5)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            (np.zeros(1), 1.0, True, {}),
            r"step\(\) of .* returned a tuple of 4, expected the tuple \(obs",
        ),
        (np.zeros(1), r"step\(\) of .* returned ndarray, expected the tuple"),
        ((np.zeros(1), None, False, False, {}), "returned the reward None, terminated False .* expected a number"),
    ],
)
def test_results_that_are_not_gymnasiums_are_named(result, message):
    with pytest.raises(ValueError, match=message):
        dqn(Broken(kinds.Box(-1, 1, (1,)), None, result), seed=0, **TINY).learn(5)


def test_a_simulator_is_not_an_environment_but_can_be_wrapped():
    with pytest.raises(TypeError, match=r"env is a CartPole, expected .* or urbe\.gym\.SimulatorEnv\(simulator\)"):
        host_env(CartPole())
    assert host_env(SimulatorEnv(CartPole())).count == 1
