"""Policies of other libraries and environments of all kinds: how they are called, reset and closed."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from fixtures.policies import linear
from urbe.evaluation.policies import asker, policy_of, takes_rows
from urbe.evaluation.robustness import evaluate
from urbe.gym import SimulatorEnv
from urbe.simulators import CartPole, MarsRover

POLE = CartPole(time_limit=100)
FALLS = linear([[0.0, 0.0], [0.0, 0.0], [1.0, -1.0], [0.0, 0.0]])


class Baseline:
    """What Stable-Baselines3's predict does: explores unless asked not to, answers one or many, gives a state."""

    def __init__(self):
        self.shapes, self.explored, self.rng = [], 0, np.random.default_rng(0)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        obs = np.asarray(observation)
        self.shapes.append(obs.shape)
        actions = (obs[..., 2] > 0).astype(np.int64)
        if not deterministic:
            self.explored += 1
            actions = self.rng.integers(2, size=actions.shape)
        assert episode_start is None
        return actions, state


def test_a_baseline_is_asked_for_its_best_actions_many_at_once():
    theirs = Baseline()
    found = evaluate(theirs, {"half_length": (0.25, 1.0)}, env=POLE, episodes=10)
    ours = evaluate(linear([[0.0, 0.0], [0.0, 0.0], [-1.0, 1.0], [0.0, 0.0]]), {"half_length": (0.25, 1.0)}, env=POLE,
                    episodes=10)  # fmt: skip
    assert theirs.explored == 0
    assert theirs.shapes[:2] == [(6, 4), (4,)]  # to find out whether many are answered like one
    assert set(theirs.shapes[2:]) == {(10, 4)}
    assert np.array_equal(found.greedy.lengths, ours.greedy.lengths)
    assert list(found.played) == ["greedy"]


@pytest.mark.parametrize(
    ("predict", "expected"),
    [
        (lambda obs: (np.asarray(obs)[..., 2] > 0).astype(int), True),
        (lambda obs: int(obs[2] > 0), False),  # raises for many
        (lambda obs: int((np.asarray(obs) @ np.ones(4)).argmax()), False),  # one for all
        (lambda obs: (np.ones((2, 4)) @ np.asarray(obs)).argmax(0), False),
        (lambda obs: np.zeros(np.asarray(obs).shape[:1], int), False),  # one for each number of one
        (lambda obs: np.arange(np.asarray(obs).ndim and len(obs)) * (np.asarray(obs).ndim - 1), False),  # not the same
        (lambda obs: (np.zeros(len(obs), int) if np.ndim(obs) == 2 else 0, None), True),
    ],
)
def test_whether_many_are_answered_is_found_out(predict, expected):
    ask = asker(SimpleNamespace(predict=predict))
    assert takes_rows(ask, np.full(4, 0.1, np.float32), ()) is expected


def test_policies_with_a_memory_are_refused():
    policy = SimpleNamespace(predict=lambda _: (0, np.zeros(3)))
    with pytest.raises(ValueError, match=r"returned 2 values, the second of type ndarray, expected .* memory"):
        evaluate(policy, [{}], env=POLE, episodes=2)


@pytest.mark.parametrize("answer", [2, -1, 0.5, "left", [0, 1], float("nan")])
@pytest.mark.parametrize("env", [POLE, SimulatorEnv(POLE)], ids=["simulator", "environment"])
def test_actions_that_do_not_exist_are_refused(answer, env):
    with pytest.raises(ValueError, match=r"The policy gave the action .*, expected a whole number from 0 to 1"):
        evaluate(SimpleNamespace(predict=lambda _: answer), [{}], env=env, episodes=2)


@pytest.mark.parametrize("answer", [1, np.int64(1), 1.0, np.array([1]), np.array(1), (np.array(1), None)])
def test_actions_are_numbers_in_any_form(answer):
    found = evaluate(SimpleNamespace(predict=lambda _: answer), [{}], env=POLE, episodes=2)
    assert (found.greedy.lengths < 15).all()


def test_a_given_environment_is_left_as_it_was():
    env = SimulatorEnv(POLE, half_length=0.75)
    found = evaluate(FALLS, {"half_length": (0.25, 2.0)}, env=env, episodes=10)
    assert env.get_params()["half_length"] == 0.75
    assert found.points[0]["half_length"] == 0.25
    assert found.points[0]["masscart"] == 1.0
    assert found.varied == ("half_length",)
    own = evaluate(FALLS, [{}], env=env, episodes=10)  # nothing is named: as it is
    assert own.points[0]["half_length"] == 0.75
    assert not np.array_equal(found.greedy.lengths[0], found.greedy.lengths[1])


class Counted(gymnasium.Env):
    """Ends after as many steps as it was made with; tells what it saw."""

    observation_space = gymnasium.spaces.Discrete(3, start=2)
    action_space = gymnasium.spaces.Discrete(2, start=5)
    made, closed, seen = 0, 0, []

    def __init__(self, steps):
        self.steps, self.count = steps, 0
        type(self).made += 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.count = 0
        return 2, {}

    def step(self, action):
        type(self).seen.append(int(action))
        self.count += 1
        return 2 + self.count % 3, 0.5, self.count == self.steps, self.count == 4, {}

    def close(self):
        type(self).closed += 1


def test_any_environment_is_made_for_parameters_and_closed():
    Counted.made = Counted.closed = 0
    Counted.seen.clear()
    # sees numbers one-hot, and has actions that start at 5
    policy = linear([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    found = evaluate(policy, {"steps": (1, 3, 9)}, env=lambda params: Counted(params["steps"]), episodes=9)
    assert found.greedy.lengths.tolist() == [[1] * 9, [3] * 9, [4] * 9]
    assert found.greedy.returns.tolist() == [[0.5] * 9, [1.5] * 9, [2.0] * 9]
    assert found.greedy.terminated.all(axis=1).tolist() == [True, True, False]
    assert len(Counted.seen) == found.greedy.lengths.sum()  # two blocks of five, of which nine are played
    assert Counted.closed == Counted.made > 0
    assert set(Counted.seen) == {5, 6}
    assert Counted.seen[0] == 5


def test_an_environment_is_closed_when_something_fails():
    Counted.made = Counted.closed = 0
    with pytest.raises(ZeroDivisionError):
        evaluate(
            SimpleNamespace(predict=lambda _: 1 // 0), [{"steps": 2}], env=lambda p: Counted(p["steps"]), episodes=2
        )
    assert Counted.closed == Counted.made == 1


def test_continuous_actions_are_passed_on():
    def pendulum(params):
        return gymnasium.make("Pendulum-v1", g=params["g"], max_episode_steps=10)

    for policy in (
        SimpleNamespace(predict=lambda obs: -obs[..., 2:3]),
        SimpleNamespace(predict=lambda obs: np.array([-float(obs[2])], np.float32)),
    ):
        found = evaluate(policy, {"g": (5.0, 10.0)}, env=pendulum, episodes=10).greedy
        assert (found.lengths == 10).all()
        assert not found.terminated.any()
        assert (found.returns < 0).all()
        assert not np.array_equal(found.returns[0], found.returns[1])
    with pytest.raises(ValueError, match=r"env has the actions Box.*, expected 2 discrete ones"):
        evaluate(linear(np.zeros((3, 2))), {"g": [5.0]}, env=pendulum, episodes=2)


@pytest.mark.parametrize(
    ("grid", "env", "message"),
    [
        ([{"steps": 2}], Counted(2), "has no set_params.*, so that its parameters cannot be changed; give a function"),
        ([{"steps": 2}], lambda: Counted(2), "has no set_params"),
        ([{"steps": 2}], lambda _: 3, "env returned a int, expected a function that makes a gymnasium.Env"),
        ([{"steps": 2}, {}], lambda p: Counted(**p), "Parameters 1 have the names none, expected steps, as the first"),
        ({"length": [1.0]}, SimulatorEnv(POLE), "'length' is not among the parameters of the environment, which are"),
        ([{}], SimulatorEnv(MarsRover()), "The policy takes observations of 3 numbers, but .* gives 2"),
        ([{}], 3, "env is of type int, expected a simulator"),
    ],
)
def test_environments_that_do_not_fit_are_refused(grid, env, message):
    with pytest.raises(ValueError, match=message):
        evaluate(linear(np.zeros((3, 2))), grid, env=env, episodes=2)


def test_the_policy_of_an_agent_is_found():
    agent = SimpleNamespace(policy=FALLS, simulator=POLE)
    assert policy_of(agent) is FALLS
    model = SimpleNamespace(policy=object(), predict=lambda _: 0)  # Stable-Baselines3's have a policy too
    assert policy_of(model) is model
    assert np.array_equal(
        evaluate(agent, [{}], episodes=10).greedy.returns, evaluate(FALLS, [{}], env=POLE, episodes=10).greedy.returns
    )
