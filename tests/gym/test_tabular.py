"""Gymnasium environments follow their tables, and agents learn in them."""

import gymnasium
import numpy as np
import pytest

import urbe
from urbe import MDP
from urbe.agents import PSRL, RLSVI, BayesianQ, PolynomialDecay, QLearning, Run, run
from urbe.envs.finite import FiniteEnv
from urbe.gym.tabular import GymEnv, gym_task
from urbe.rng import streams

MAKERS = {
    "lake": lambda: gymnasium.make("FrozenLake-v1", map_name="4x4", max_episode_steps=-1),
    "cliff": lambda: gymnasium.make("CliffWalking-v1", max_episode_steps=-1),
    "taxi": lambda: gymnasium.make("Taxi-v4", max_episode_steps=-1),
}


class Corridor(gymnasium.Env):
    """Three cells numbered from 5, actions numbered from 1, and no table; the last cell ends the walk."""

    observation_space = gymnasium.spaces.Discrete(3, start=5)
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.at = 5
        return self.at, {}

    def step(self, action):
        assert action in (1, 2)
        slipped = self.np_random.random() < 0.2
        self.at = max(5, self.at + (1 if (action == 2) != slipped else -1))
        ended = self.at == 7
        return self.at, 1.0 if ended else -0.1, ended, False, {}


def walk(env, seed, steps):
    """Random actions of one replicate: (state, action, next_state, reward, terminated) of each step."""
    replicates = env.start(streams(seed, "environment", np.array([0])))
    rng = np.random.default_rng(seed)
    zero, seen, episode = np.zeros(1, dtype=int), [], 0
    state = replicates.begin(0)
    for _ in range(steps):
        action = rng.integers(env.numbers.n_actions, size=1)
        arrival = replicates.step(zero, state, action)
        seen.append((int(state[0]), int(action[0]), *(x[0].item() for x in arrival)))
        state = arrival.next_state
        if arrival.terminated[0]:
            episode += 1
            state = replicates.begin(episode)
    return seen


@pytest.mark.parametrize("name", MAKERS)
def test_every_step_is_one_the_table_lists(name):
    env = GymEnv(MAKERS[name])
    mdp = MDP.from_gymnasium(MAKERS[name](), discount=0.9)
    assert np.array_equal(env.feasible(0.9).rows.successor, mdp.rows.successor)
    assert env.numbers.end == (500 if name == "taxi" else -1)
    seen = walk(env, 0, 3000)
    assert any(ended for *_, ended in seen) or name == "cliff"
    rewards = (
        np.repeat(mdp.rows.row_reward, mdp.rows.length) if mdp.rows.entry_reward is None else mdp.rows.entry_reward
    )
    for state, action, successor, reward, ended in seen:
        row = mdp.row_of(state, action)
        first, last = mdp.rows.entry_start[row : row + 2]
        entry = first + mdp.rows.successor[first:last].tolist().index(successor)
        assert mdp.rows.probability[entry] > 0.0
        assert rewards[entry] == reward
        assert mdp.terminal[successor] == ended


def test_a_state_that_ends_and_goes_on_has_a_double():
    """Taxi drops a passenger in a state that is also driven through: only the extra state ends."""
    env = GymEnv(MAKERS["taxi"])
    replicates = env.start(streams(0, "environment", np.array([0])))
    inner = replicates._envs[0].unwrapped
    state = replicates.begin(0)
    inner.s = inner.encode(0, 0, 4, 0)  # at R with the passenger aboard, bound for R
    arrival = replicates.step(np.zeros(1, dtype=int), state, np.array([5]))
    assert (arrival.next_state[0], arrival.reward[0], arrival.terminated[0]) == (500, 20.0, True)


def test_numbers_start_at_zero_and_ends_without_a_table_are_extra():
    env = GymEnv(Corridor)
    assert env.numbers == (3, 5, 2, 1, 3, False)
    seen = walk(env, 1, 200)
    assert {state for state, *_ in seen} == {0, 1}
    assert {successor for _, _, successor, _, ended in seen if ended} == {3}
    assert {successor for _, _, successor, _, ended in seen if not ended} == {0, 1}
    feasible = env.feasible(0.9)
    assert (feasible.n_states, feasible.n_rows, feasible.terminal.tolist()) == (4, 6, [False] * 3 + [True])
    assert feasible.rows.is_dense or feasible.rows.n_entries == 6 * 4
    task = gym_task(env, discount=0.9, horizon=20)
    assert task.prior.rewards is not None
    prior = urbe.NormalGamma(mean=2.0)
    assert gym_task(env, discount=0.9, horizon=20, rewards=prior).prior.rewards.mean.tolist() == [2.0] * 6
    assert gym_task(GymEnv(MAKERS["lake"]), discount=0.9, horizon=20).prior.rewards is None


def test_same_seed_same_walk():
    env = GymEnv(MAKERS["lake"])
    assert walk(env, 3, 300) == walk(env, 3, 300)
    assert walk(env, 3, 300) != walk(env, 4, 300)


def test_replicates_are_alone():
    env = GymEnv(MAKERS["lake"])
    task = gym_task(env, discount=0.99, horizon=60)
    together, alone = (
        run(QLearning(), env, task, episodes=20, seed=0, replicates=np.array(numbers)) for numbers in ([2, 5], [5])
    )
    assert np.array_equal(together.steps[1], alone.steps[0])


def test_the_lake_is_the_model():
    """The same fixed policy earns the same in the environment and in its model; 4 standard errors, alarm 1e-4."""
    env = GymEnv(MAKERS["lake"])
    task = gym_task(env, discount=1.0, horizon=100)
    policy = urbe.agents.Minimax(MDP.from_gymnasium(MAKERS["lake"](), discount=1.0), None)
    there = run(policy, env, task, episodes=100, seed=0, replicates=4).reward
    mdp = MDP.from_gymnasium(MAKERS["lake"](), discount=1.0)
    here = run(policy, FiniteEnv.of(mdp), task, episodes=500, seed=1, replicates=4).reward
    error = np.sqrt(there.var() / there.size + here.var() / here.size)
    assert there.mean() == pytest.approx(here.mean(), abs=4.0 * error)
    assert there.mean() > 0.6


def test_a_run_is_saved_between_episodes(tmp_path):
    env = GymEnv(MAKERS["lake"])
    task = gym_task(env, discount=0.99, horizon=60)

    def new():
        return Run(QLearning(), env, task, episodes=20, seed=0, replicates=np.arange(2))

    whole, first, again = new(), new(), new()
    for _ in range(8):
        first.episode()
    urbe.save_agent(tmp_path / "run.npz", first)
    urbe.load_agent(tmp_path / "run.npz", again)
    for each in (whole, again):
        while not each.done:
            each.episode()
    assert np.array_equal(whole.record.steps, again.record.steps)
    assert np.array_equal(whole.agent.q, again.agent.q)


AGENTS = {
    "Q-learning": (
        QLearning(rate=PolynomialDecay(1.0, power=0.6), exploration=PolynomialDecay(1.0, power=1.0, delay=30.0)),
        600,
    ),
    "randomised values": (RLSVI(0.05, per_step=False), 150),
    "beliefs about returns": (BayesianQ(mean=1.0, weight=1.0, shape=2.0, rate=0.05), 240),
    "posterior sampling": (PSRL(), 60),
}
"""And the episodes they need."""


@pytest.mark.parametrize("name", AGENTS)
def test_agents_cross_the_lake(name):
    """By chance 1.4 walks in 100 arrive; the best policy brings most over."""
    env = GymEnv(MAKERS["lake"])
    kind, episodes = AGENTS[name]
    record = run(kind, env, gym_task(env, discount=0.99, horizon=60), episodes=episodes, seed=0, replicates=3)
    assert record.reward[:, -episodes // 3 :].mean() > 0.15


def test_agents_learn_without_a_table():
    env = GymEnv(Corridor)
    task = gym_task(env, discount=0.95, horizon=30)
    for kind in (PSRL(), QLearning(), RLSVI(0.3, per_step=False)):
        record = run(kind, env, task, episodes=150, seed=0, replicates=3)
        # always to the right: 2.2 / 0.6 - 1 steps on the way, on average
        assert record.reward[:, -50:].mean() > 0.6


def test_cuts_of_the_environment_are_not_passed_over():
    env = GymEnv(lambda: gymnasium.make("CliffWalking-v1", max_episode_steps=7))
    kind = QLearning()
    fits = run(kind, env, gym_task(env, discount=0.9, horizon=7), episodes=2, seed=0)
    assert fits.steps.tolist() == [[7, 7]]
    with pytest.raises(ValueError, match=r"truncated its episode after 7 steps, .* horizon of at most that"):
        run(kind, env, gym_task(env, discount=0.9, horizon=8), episodes=2, seed=0)


def test_refuses_other_spaces():
    with pytest.raises(ValueError, match=r"observation_space is .*, expected Discrete"):
        gym_task(GymEnv(lambda: gymnasium.make("CartPole-v1")), discount=0.9, horizon=10)
