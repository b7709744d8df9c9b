"""Evaluations against exact returns, equal for all ways of playing, and paired by seed to the last bit."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fixtures.policies import linear, table
from urbe.deep import Memory, recurrent_dqn
from urbe.deep.policies.policy import Policy
from urbe.deep.presets import dqn_ube
from urbe.deep.settings import Network
from urbe.evaluation.episodes import draws, normal
from urbe.evaluation.robustness import evaluate
from urbe.evaluation.rollouts import blocks
from urbe.gym import SimulatorEnv
from urbe.simulators import CartPole, MarsRover, MarsRoverParams, Outcomes, UncertaintySet, performance
from urbe.simulators.mars_rover import one_hot

ROVER = MarsRover(size=5, start_zone=(2, 2), encoding=one_hot, time_limit=40)
AHEAD = [2 if cell // 5 < 4 else 1 for cell in range(ROVER.n_states)]
CELLS = ROVER.n_states - 1
LEANING = np.array([[0.0, 0.0], [0.0, 0.0], [-1.0, 1.0], [0.0, 0.0]])  # pushes where the pole leans: falls within 100
POLE = CartPole(time_limit=100)
LENGTHS = (0.1, 0.5, 2.0)


@pytest.fixture(scope="module")
def agent():
    """Of random weights, with an uncertainty head."""
    return dqn_ube(POLE, seed=1, network=Network(hidden=(8, 8)), capacity=64, warm_up=32, batch=8)


@pytest.mark.parametrize("failure", [0.01, 0.1, 0.4])
def test_means_are_those_of_the_exact_model(failure):
    """5 standard errors: about one false alarm in 3e5 fresh seeds for each of six numbers."""
    rng = np.random.default_rng(3)
    for actions in (AHEAD, rng.integers(4, size=ROVER.n_states)):
        exact = performance(ROVER, MarsRoverParams(float(np.float32(failure))), actions, discount=0.9)
        found = evaluate(table(actions[:CELLS], 4), {"failure": [failure]}, env=ROVER, episodes=4000, seed=5)
        returns, lengths, terminated = (each[0] for each in found.greedy)
        error = returns.std(ddof=1) / np.sqrt(len(returns))
        assert abs(returns.mean() - exact.total) <= 5.0 * error + 1e-6
        ended = exact.visits[[ROVER.goal, ROVER.wreck]].sum()
        assert abs(terminated.mean() - ended) <= 5.0 * np.sqrt(ended * (1.0 - ended) / 4000) + 1e-9
        assert ((lengths == 40) | terminated).all()
        # every step counts one state that is no end
        assert abs(lengths.mean() - (exact.visits[:CELLS].sum() - exact.visits[ROVER.goal] - (1.0 - ended))) <= (
            5.0 * lengths.std(ddof=1) / np.sqrt(4000) + 1e-9
        )


def predicting(rows):
    """The leaning policy as other libraries have it: for many observations, or for one."""
    if rows:
        return SimpleNamespace(predict=lambda obs: (np.asarray(obs)[..., 2] > 0).astype(np.int64))
    return SimpleNamespace(predict=lambda obs: 1 if obs[2] > 0 else 0)


class GymPole(gymnasium.Wrapper):
    """Gymnasium's own CartPole with a pole of another length, started where the simulator starts."""

    def __init__(self, half_length):
        super().__init__(gymnasium.make("CartPole-v1", max_episode_steps=POLE.time_limit))
        pole = self.env.unwrapped
        pole.length, pole.polemass_length = half_length, pole.masspole * half_length
        self._start = SimulatorEnv(POLE)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        _, info = self.env.reset(seed=seed)
        first, _ = self._start.reset(seed=seed)
        self.env.unwrapped.state = first.astype(np.float64)
        return first, info


WAYS = {
    "compiled": (linear(LEANING), POLE),
    "rows on the simulator": (predicting(True), POLE),
    "one by one on the simulator": (predicting(False), POLE),
    "compiled policy, environment": (linear(LEANING), SimulatorEnv(POLE)),
    "rows, environments made and set": (predicting(True), lambda: SimulatorEnv(POLE)),
    "one by one, environment": (predicting(False), SimulatorEnv(POLE)),
    "registered": (predicting(True), lambda: gymnasium.make("urbe/CartPole-v0", max_episode_steps=100)),
    "made for parameters": (predicting(True), lambda params: SimulatorEnv(POLE, **params)),
    "Gymnasium's CartPole": (predicting(True), lambda params: GymPole(params["half_length"])),
    "Gymnasium's CartPole, compiled policy": (linear(LEANING), lambda params: GymPole(params["half_length"])),
}


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_of_playing_give_the_same_episodes(way):
    policy, env = WAYS[way]
    found = evaluate(policy, {"half_length": LENGTHS}, env=env, episodes=10, seed=2).greedy
    wanted = evaluate(*WAYS["compiled"][:1], {"half_length": LENGTHS}, env=POLE, episodes=10, seed=2).greedy
    assert np.array_equal(found.lengths, wanted.lengths)
    assert np.array_equal(found.returns, wanted.returns)
    assert np.array_equal(found.terminated, wanted.terminated)
    assert len(np.unique(wanted.lengths)) > 8
    assert 0 < wanted.terminated.mean() < 1 or wanted.lengths.max() < 100


@pytest.mark.parametrize("asked", [True, False], ids=["asked", "compiled policy"])
def test_random_dynamics_and_returns_are_the_same_on_every_path(asked):
    policy = table(AHEAD[:CELLS], 4)
    wanted = evaluate(policy, {"failure": (0.1, 0.4)}, env=ROVER, episodes=7, seed=2).greedy
    other = SimpleNamespace(predict=lambda obs: AHEAD[int(np.argmax(obs))]) if asked else policy
    for env in (SimulatorEnv(ROVER), lambda params: SimulatorEnv(ROVER, **params)):
        found = evaluate(other, {"failure": (0.1, 0.4)}, env=env, episodes=7, seed=2).greedy
        assert np.array_equal(found.returns, wanted.returns)  # float64 sums of the same float32 rewards
        assert np.array_equal(found.lengths, wanted.lengths)
    assert len(np.unique(wanted.returns)) > 3


def test_noise_is_the_same_on_every_path():
    noisy = linear(LEANING, spread=0.02)
    paths = [evaluate(noisy, {"half_length": [0.5]}, env=env, episodes=10) for env in (POLE, SimulatorEnv(POLE))]
    assert np.array_equal(paths[0].noisy.lengths, paths[1].noisy.lengths)
    assert not np.array_equal(paths[0].noisy.lengths, paths[0].greedy.lengths)
    assert np.array_equal(paths[0].greedy.lengths, paths[1].greedy.lengths)


def test_noise_is_normal_and_never_twice_the_same():
    """Kolmogorov-Smirnov at 1e-6."""
    words = jnp.asarray(draws(0, 50).noise)
    drawn = np.concatenate([np.asarray(normal(words, jnp.int32(step), 3)).ravel() for step in range(20)])
    assert len(np.unique(drawn)) == 50 * 20 * 3
    assert stats.kstest(drawn, "norm").pvalue > 1e-6


@pytest.mark.parametrize("env", [POLE, SimulatorEnv(POLE)], ids=["compiled", "environment"])
def test_a_parameters_numbers_do_not_depend_on_the_rest_of_the_grid(agent, env):
    whole = evaluate(agent, {"half_length": LENGTHS}, env=env, episodes=10, seed=4)
    alone = evaluate(agent, {"half_length": LENGTHS[1:2]}, env=env, episodes=10, seed=4)
    other = evaluate(agent, {"half_length": LENGTHS[::-1]}, env=env, episodes=10, seed=4, acting="noisy")
    for way in ("greedy", "noisy"):
        for one, two in zip(whole.played[way], alone.played[way], strict=True):
            assert np.array_equal(one[1:2], two)
    assert other.greedy is None
    assert np.array_equal(other.noisy.returns[::-1], whole.noisy.returns)


def test_same_seed_same_bits_and_other_seeds_other_episodes(agent):
    first, again, other = (evaluate(agent, [{}], episodes=10, seed=seed) for seed in (0, 0, 1))
    for way in ("greedy", "noisy"):
        assert np.array_equal(first.played[way].returns, again.played[way].returns)
        assert not np.array_equal(first.played[way].lengths, other.played[way].lengths)


def test_64_bit_mode_changes_nothing(agent):
    wanted = evaluate(agent, {"half_length": LENGTHS}, episodes=10)
    with jax.enable_x64(True):
        found = evaluate(agent, {"half_length": LENGTHS}, episodes=10)
    assert np.array_equal(found.greedy.returns, wanted.greedy.returns)
    assert np.array_equal(found.noisy.returns, wanted.noisy.returns)


def test_an_agent_is_its_policy_where_it_was_trained(agent):
    default = evaluate(agent, [POLE.nominal()], episodes=10)
    given = evaluate(agent.policy, [POLE.nominal()], env=POLE, episodes=10)
    assert list(default.played) == ["greedy", "noisy"]
    assert np.array_equal(default.noisy.returns, given.noisy.returns)
    quiet = Policy(agent.trainer.settings, agent.policy.weights._replace(head=None))
    without = evaluate(quiet, [POLE.nominal()], env=POLE, episodes=10)
    assert list(without.played) == ["greedy"]
    assert np.array_equal(without.greedy.returns, default.greedy.returns)


def test_a_policy_that_predicts_acts_as_its_compiled_self(agent):
    asked = SimpleNamespace(predict=agent.policy.predict)
    found = evaluate(asked, {"half_length": LENGTHS}, env=POLE, episodes=10)
    assert np.array_equal(found.greedy.lengths, evaluate(agent, {"half_length": LENGTHS}, episodes=10).greedy.lengths)


def test_more_episodes_begin_like_fewer_whatever_the_blocks():
    policy = table(AHEAD[:CELLS], 4)
    many = evaluate(policy, {"failure": [0.2]}, env=ROVER, episodes=500).greedy
    few = evaluate(policy, {"failure": [0.2]}, env=ROVER, episodes=7).greedy
    for one, two in zip(many, few, strict=True):
        assert np.array_equal(one[:, :7], two)
    assert all(np.array_equal(a, b) for a, b in zip(draws(3, 9).part(0, 5), draws(3, 5), strict=True))


def test_seeds_keys_and_noise_of_all_episodes_and_seeds_differ():
    drawn = [draws(seed, 50) for seed in (0, 1)]
    assert len(np.unique(np.concatenate([each.seeds for each in drawn]))) == 100
    assert len(np.unique(np.concatenate([part for each in drawn for part in (each.world, each.noise)]), axis=0)) == 200


@pytest.mark.parametrize("episodes", [1, 7, 255, 256, 257, 300, 1000])
def test_blocks_are_equal_and_cover_all(episodes):
    cut = list(blocks(episodes))
    assert len({end - begin for begin, end in cut}) == 1
    assert cut[0][0] == 0
    assert cut[-1][0] < episodes <= cut[-1][1]
    assert all(end - begin <= 256 for begin, end in cut)
    assert cut[-1][1] - episodes < len(cut)


def test_time_limits_cut_without_terminating():
    upright = linear([[0.0, 0.0], [0.0, 0.0], [-1.0, 1.0], [-0.3, 0.3]])
    for env in (POLE, SimulatorEnv(POLE)):
        found = evaluate(upright, [{}], env=env, episodes=10, time_limit=7).greedy
        assert (found.lengths == 7).all()
        assert not found.terminated.any()
        assert (evaluate(upright, [{}], env=env, episodes=10).greedy.lengths == 100).all()


def test_grids_of_all_kinds_are_the_same_grid():
    poles = UncertaintySet.grid(POLE, include_nominal=False, half_length=LENGTHS)
    policy = linear(LEANING)
    wanted = evaluate(policy, {"half_length": LENGTHS}, env=POLE, episodes=10, seed=2)
    for grid in (poles, list(poles.members()), [{"half_length": length} for length in LENGTHS]):
        found = evaluate(policy, grid, env=POLE, episodes=10, seed=2)
        assert found.varied == ("half_length",)
        assert found.points == wanted.points
        assert np.array_equal(found.greedy.returns, wanted.greedy.returns)


class Flaw(NamedTuple):
    """1 breaks the reward, 2 the observation, after the third step."""

    kind: float = 0.0


@dataclass(frozen=True)
class Flawed:
    """Counts steps; may break."""

    n_actions: int = 2
    time_limit: int = 6

    def nominal(self):
        return Flaw(jnp.float32(0.0))

    def start(self, key, params):  # noqa: ARG002
        return jnp.zeros(1, jnp.float32)

    def outcomes(self, state, action, params):  # noqa: ARG002
        broken = state[0] == 2.0
        reward = jnp.where(broken & (params.kind == 1.0), jnp.nan, jnp.float32(1.0))
        after = jnp.where(broken & (params.kind == 2.0), jnp.inf, state + 1.0)
        return Outcomes(jnp.ones(1, jnp.float32), after[None], reward[None], jnp.zeros(1, jnp.bool_))

    def observe(self, state):
        return state


@pytest.mark.parametrize(("kind", "what"), [(1.0, "A reward"), (2.0, "An observation")])
def test_numbers_that_are_not_finite_are_named(kind, what):
    flat = linear([[0.0, 0.0]])
    assert (evaluate(flat, [{}], env=Flawed(), episodes=3).greedy.returns == 6.0).all()
    message = rf"^{what} is not finite in episode 0, step 3, under the parameters kind {kind:g}; expected finite"
    for policy in (flat, SimpleNamespace(predict=lambda _: 0)):
        with pytest.raises(ValueError, match=message):
            evaluate(policy, {"kind": [0.0, kind]}, env=Flawed(), episodes=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid": {"length": [1.0]}}, "Parameters 0: 'length' is not among the parameters of CartPole, which are"),
        ({"grid": {"half_length": [1.0, -1.0]}}, "Parameters 1: half_length is -1.0, expected a number above 0"),
        ({"grid": {}}, "grid is empty, expected at least one parameter by name; for the nominal ones give"),
        ({"grid": []}, "grid is empty, expected at least one set"),
        ({"grid": {"half_length": []}}, r"half_length has shape \(0,\), expected one or more values"),
        ({"grid": "half_length=1"}, "grid is 'half_length=1', expected an UncertaintySet"),
        ({"grid": POLE.nominal()}, "one set of parameters, expected a list of them"),
        ({"grid": [0.5]}, r"grid\[0\] is 0.5, expected a NamedTuple"),
        ({"episodes": 0}, "episodes is 0, expected a whole number of at least 1"),
        ({"seed": -1}, "seed is -1, expected a whole number of at least 0"),
        ({"time_limit": 0}, "time_limit is 0, expected"),
        ({"confidence": 1.0}, "confidence is 1, expected"),
        ({"cvar": 0.0}, "cvar is 0.0, expected a number above 0"),
        ({"cvar": 1.5}, "cvar is 1.5, expected a number in"),
        ({"acting": "noisy"}, "acting contains 'noisy', but the policy has no uncertainty head"),
        ({"acting": ("greedy", "random")}, r"acting\[1\] is 'random', expected one of 'greedy', 'noisy'"),
        ({"acting": ()}, "acting is empty"),
        ({"env": None}, "env is missing: the policy has no training environment"),
        ({"env": MarsRover()}, "The policy takes observations of 4 numbers, but MarsRover gives 2"),
        ({"policy": linear(np.zeros((4, 3)))}, "The policy chooses among 3 actions, but CartPole has 2"),
        ({"policy": 3}, "policy is of type int, expected an agent, or an object with predict"),
        ({"policy": abs}, "wrap a function as types.SimpleNamespace"),
    ],
)  # fmt: skip
def test_refusals_say_what_was_expected(changes, message):
    given = {"policy": linear(LEANING), "grid": [{}], "env": POLE, "episodes": 2} | changes
    with pytest.raises(ValueError, match=message):
        evaluate(given.pop("policy"), given.pop("grid"), **given)


def test_an_episode_without_end_is_no_wait_without_end(monkeypatch):
    class Endless(gymnasium.Env):
        observation_space, action_space = gymnasium.spaces.Box(0, 1, (1,)), gymnasium.spaces.Discrete(2)

        def reset(self, **_):
            return np.zeros(1, np.float32), {}

        def step(self, _):
            return np.zeros(1, np.float32), 0.0, False, False, {}

    def play(**limit):
        still = SimpleNamespace(predict=lambda obs: np.zeros(np.shape(obs)[:-1], int))
        return evaluate(still, [{}], env=lambda _: Endless(), episodes=2, **limit)

    monkeypatch.setattr("urbe.evaluation.host.ENDLESS", 50)
    with pytest.raises(ValueError, match=r"has lasted 50 steps without ending.* time_limit="):
        play()
    assert play(time_limit=60).greedy.lengths.tolist() == [[60, 60]]


def test_a_policy_with_a_memory_plays_the_same_episodes(agent):
    """The greedy policy of an agent, wrapped as one whose memory stays empty, has the same returns to the last bit."""
    grid, how = {"half_length": (0.25, 1.0)}, {"env": CartPole(time_limit=40), "episodes": 5, "seed": 2}
    plain = evaluate(agent, grid, acting="greedy", **how).greedy
    remembering = evaluate(agent.memory_policy, grid, **how)
    assert remembering.noisy is None
    for mine, other in zip(plain, remembering.greedy, strict=True):
        np.testing.assert_array_equal(mine, other)
    with pytest.raises(ValueError, match=r"expected a simulator of urbe: the policy acts on a memory"):
        evaluate(agent.memory_policy, grid, env=SimulatorEnv(CartPole()), episodes=1)


def test_a_recurrent_agent_is_evaluated_with_its_memory():
    poles = UncertaintySet.grid(CartPole(time_limit=20), half_length=(0.25, 1.0))
    few = {"batch": 16, "capacity": 300, "warm_up": 50, "network": Network((8,))}
    trained = recurrent_dqn(CartPole(time_limit=20), poles, seed=0, memory=Memory(units=4, length=3, burn_in=1), **few)
    found = evaluate(trained.learn(60), {"half_length": (0.5, 1.0)}, episodes=3)
    assert (found.noisy, found.greedy.lengths.shape) == (None, (2, 3))
    assert (found.greedy.lengths > 0).all()
