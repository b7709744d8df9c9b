"""Recording Gymnasium environments: numbering as in models, termination and truncation, convergence to the table."""

import re

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TimeLimit

import urbe
from urbe import MDP, Posterior
from urbe.gym.logs import record
from urbe.posteriors import weissman


class Corridor(gymnasium.Env):
    """States first, ..., first + 3; action `start` stays, the next moves right; the last state ends the episode.

    With `through`, leaving the first state may end the episode in state 1, which is otherwise passed through.
    """

    def __init__(self, first=0, start=0, through=False):
        self.observation_space = Discrete(4, start=first)
        self.action_space = Discrete(2, start=start)
        self.first, self.start, self.through = first, start, through

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.at = 0
        return self.at + self.first, {}

    def step(self, action):
        before, self.at = self.at, self.at + int(action) - self.start
        ended = self.at == 3 or (self.through and before == 0 and self.at == 1 and self.np_random.random() < 0.5)
        return self.at + self.first, float(self.at), ended, False, {}


@pytest.mark.parametrize(
    ("make", "n_states"),
    [(FrozenLakeEnv, 16), (CliffWalkingEnv, 48), (TaxiEnv, 501)],
    ids=["lake", "cliff", "taxi"],
)
def test_states_are_numbered_as_in_the_model(make, n_states):
    """Every transition of the log is one of the model's, with the model's reward."""
    env = TimeLimit(make(), 300)
    model = MDP.from_gymnasium(env, discount=0.9)
    log = record(env, episodes=30, seed=0)
    assert model.n_states == n_states
    posterior = Posterior.fit(log, model=model)
    assert posterior.seen.sum() == len(log)
    reached = model.terminal[log.next_state]
    assert np.array_equal(reached, log.terminated)
    row = [model.row_of(int(s), int(a)) for s, a in zip(log.state, log.action, strict=True)]
    rows = model.rows
    listed = [rows.successor[rows.entry_start[k] : rows.entry_start[k + 1]].tolist() for k in row]
    reward = [
        rows.reward[rows.entry_start[k] + successors.index(t)] if rows.rewards_successors else rows.reward[k]
        for k, successors, t in zip(row, listed, log.next_state, strict=True)
    ]
    assert reward == log.reward.tolist()


def test_the_posterior_mean_converges_to_the_model():
    """Slippery lake: every row within Weissman's bound at 1e-6, so a fresh seed would fail less than that often."""
    env = FrozenLakeEnv()
    model = MDP.from_gymnasium(env, discount=0.9)
    gaps = []
    for episodes in (100, 4000):
        posterior = Posterior.fit(record(env, episodes=episodes, seed=1), model=model, prior=1e-3)
        gap = model.rows.row_sums(np.abs(posterior.probability - model.rows.probability))
        assert (gap <= weissman(posterior, 1 - 1e-6, around_mean=True)).all()
        gaps.append(float((gap * posterior.seen).sum() / posterior.seen.sum()))
    assert gaps[1] < 0.3 * gaps[0]


@pytest.mark.parametrize("make", [CliffWalkingEnv, TaxiEnv], ids=["cliff", "taxi"])
def test_without_a_model_the_log_gives_the_same_rows(make):
    """Both environments are deterministic: one visit shows all of a row."""
    model = MDP.from_gymnasium(make(), discount=0.9)
    solved = np.maximum(urbe.solve(model).policy, 0)
    curious = lambda rng, state: rng.integers(4) if rng.random() < 0.5 else solved[state]  # noqa: E731
    log = record(make(), curious, episodes=150, seed=0)
    log = log.select(np.isin(log.next_state, log.state) | log.terminated)  # states never left say nothing
    learned = Posterior.fit(log, discount=0.9).model
    assert learned.n_states == model.n_states
    assert learned.n_rows > 100
    for row in range(learned.n_rows):
        same = model.row_of(int(learned.row_state[row]), int(learned.action[row]))
        assert learned.rows.successor[learned.rows.entry_start[row]] == model.rows.successor[same]
        assert learned.rows.reward[row] == model.rows.reward[same]


def test_ends_and_cut_offs_are_kept_apart():
    log = record(Corridor(), np.array([1, 1, 1, -1]), episodes=2, seed=0)
    assert log.state.tolist() == [0, 1, 2] * 2
    assert log.next_state.tolist() == [1, 2, 3] * 2
    assert log.terminated.tolist() == [False, False, True] * 2
    assert log.episode.tolist() == [0, 0, 0, 1, 1, 1]
    assert log.step.tolist() == [0, 1, 2] * 2
    assert log.reward.tolist() == [1.0, 2.0, 3.0] * 2
    for cut in (record(Corridor(), [1] * 4, episodes=2, seed=0, most_steps=2),
                record(TimeLimit(Corridor(), 2), [1] * 4, episodes=2, seed=0)):  # fmt: skip
        assert cut.next_state.tolist() == [1, 2] * 2
        assert not cut.terminated.any()
    assert Posterior.fit(log, discount=0.9).model.terminal.tolist() == [False, False, False, True]


def test_an_end_that_is_passed_through_gets_a_state_of_its_own():
    log = record(Corridor(through=True), [1] * 4, episodes=40, seed=0)
    ended = log.next_state[log.terminated]
    assert set(ended.tolist()) == {4}
    assert 1 in log.next_state[~log.terminated]
    assert Posterior.fit(log, discount=0.9, terminal=[3, 4]).model.terminal.tolist() == [False] * 3 + [True] * 2


def test_an_end_where_episodes_also_begin_gets_a_state_of_its_own():
    class Ring(Corridor):
        """Begins in state 2 and ends by moving on to it from state 1."""

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed, options=options)
            self.at = 2
            return 2, {}

        def step(self, _):
            before, self.at = self.at, {2: 0, 0: 1, 1: 2}[self.at]
            return self.at, 0.0, before == 1, False, {}

    log = record(Ring(), episodes=2, seed=0)
    assert log.state.tolist() == [2, 0, 1] * 2
    assert log.next_state.tolist() == [0, 1, 4] * 2


def test_spaces_that_do_not_start_at_zero():
    log = record(Corridor(first=10, start=5), [1] * 4, episodes=1, seed=0)
    assert log.state.tolist() == [0, 1, 2]
    assert log.action.tolist() == [1, 1, 1]


def test_same_seed_same_log_other_seed_other_log():
    env = FrozenLakeEnv()
    logs = [record(env, episodes=20, seed=seed) for seed in (3, 3, 4)]
    columns = [np.c_[log.state, log.action, log.next_state] for log in logs]
    assert np.array_equal(columns[0], columns[1])
    assert not np.array_equal(columns[0], columns[2])
    starts = [record(TaxiEnv(), episodes=5, seed=seed, most_steps=1).state.tolist() for seed in (3, 3, 4)]
    assert starts[0] == starts[1] != starts[2]
    assert len(set(starts[0])) > 1  # episodes are not all seeded alike


def test_policies_as_functions_tables_and_by_chance():
    env = FrozenLakeEnv()
    table = np.zeros((16, 4))
    table[:, 2] = 0.25
    table[:, 3] = 0.75
    drawn = record(env, table, episodes=600, seed=0)
    share = (drawn.action == 3).mean()
    assert set(drawn.action.tolist()) == {2, 3}
    assert abs(share - 0.75) < 4.9 * np.sqrt(0.1875 / len(drawn))  # a false alarm in a million
    assert set(record(env, lambda _, state: state % 4, episodes=5, seed=0).action % 4) <= {0, 1, 2, 3}
    chosen = record(env, lambda _, state: state % 4, episodes=20, seed=0)
    assert np.array_equal(chosen.action, chosen.state % 4)
    uniform = record(env, episodes=600, seed=0).action
    assert np.abs(np.bincount(uniform) / len(uniform) - 0.25).max() < 4.9 * np.sqrt(0.1875 / len(uniform))
    solved = urbe.solve(MDP.from_gymnasium(TaxiEnv(), discount=0.9)).policy  # has an entry for the extra state
    assert record(TaxiEnv(), solved, episodes=3, seed=0).terminated.sum() == 3


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0, 0], "policy has shape (2,), expected (4,) actions, (4, 2) probabilities"),
        ([2, 0, 0, 0], "policy[0] is 2, expected a 0-based action below 2."),
        ([0.5, 0, 0, 0], "policy[0] is 0.5, expected a whole number"),
        ([-1, 0, 0, 0], "policy gives action -1 in state 0, expected one below 2."),
        (lambda *_: 7, "policy gives action 7 in state 0, expected one below 2."),
        (np.full((4, 2), 0.4), "policy[0] sums to 0.8, expected 1."),
        (np.full((4, 2), -1.0), "policy[0, 0] is -1, expected at least 0."),
    ],
)
def test_refuses_policies_that_are_none(policy, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        record(Corridor(), policy, episodes=1, seed=0)


def test_refuses_environments_that_are_not_discrete():
    with gymnasium.make("CartPole-v1") as env, pytest.raises(ValueError, match=r"observation_space is Box\(.*Discrete"):
        record(env, episodes=1, seed=0)
    env = Corridor()
    env.action_space = Box(-1, 1)
    with pytest.raises(
        ValueError, match=re.escape("action_space is Box(-1.0, 1.0, (1,), float32), expected Discrete(n)")
    ):
        record(env, episodes=1, seed=0)


@pytest.mark.parametrize("options", [{"episodes": 0}, {"seed": -1}, {"most_steps": 0}])
def test_refuses_numbers_that_are_none(options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"{name} is .*, expected a whole number of at least"):
        record(Corridor(), **({"episodes": 1, "seed": 0} | options))
