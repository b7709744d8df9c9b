"""Adaptive agents: the same bits, however learning is split, saved or deployed."""

import subprocess
import sys
from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe import memory
from urbe.belief import Belief, Switching
from urbe.deep import (
    BeliefCVaR,
    CredibleWorst,
    DuelingNetwork,
    EpisodeCVaR,
    adaptive_dqn,
    bayes_adaptive_dqn,
    load,
    load_adaptive,
    thompson_dqn,
)
from urbe.evaluation.adaptation import Step, deploy_lives
from urbe.evaluation.robustness import evaluate
from urbe.gym import EnvMembers, SimulatorEnv
from urbe.runs.errors import CheckpointError
from urbe.simulators import CartPole, MarsRover, MarsRoverParams, StepChange, UncertaintySet
from urbe.simulators.base import step as simulate
from urbe.simulators.mars_rover import one_hot

SMALL = {"lives": 4, "length": 8, "minibatches": 2, "network": DuelingNetwork((16,))}
ROVER = MarsRover(size=4, start_zone=(2, 2), encoding=one_hot, step_reward=-0.001, time_limit=12)
ROVERS = UncertaintySet.grid(ROVER, include_nominal=False, failure=(0.02, 0.5))
SWITCHING = Switching(0.1, "episode", prior=(0.6, 0.4))
POLE = CartPole(time_limit=30)
ROVE, PUSH = jax.jit(partial(simulate, ROVER)), jax.jit(partial(simulate, POLE))
ROVER_OUTCOMES = jax.jit(ROVER.outcomes)
POLES = UncertaintySet.grid(POLE, include_nominal=False, force=(-10.0, 5.0, 10.0))


def rover(seed=0, **changes):
    return bayes_adaptive_dqn(ROVER, ROVERS, switching=SWITCHING, seed=seed, **SMALL | changes)


def pole(make=bayes_adaptive_dqn, **changes):
    return make(POLE, POLES, switching=Switching((1e-3, 1e-2)), seed=0, **SMALL | changes)


def same(one, other):
    ours, others = one.tensors(), other.tensors()
    return ours.keys() == others.keys() and all(ours[name].tobytes() == others[name].tobytes() for name in ours)


def test_same_seed_same_bits_however_learning_is_cut(tmp_path):
    whole = rover().learn(300)
    assert whole.step == 320
    assert len(whole.log["loss"]) == 10
    pieces = rover().learn(1).learn(40).learn(259)
    assert same(whole, pieces)
    assert not same(whole, rover(seed=1).learn(300))
    pieces = rover().learn(100)
    one, two = rover().learn(1), rover().learn(33)
    for first, second, mean in zip(
        *map(jax.tree.leaves, (one._run.q, two._run.q, two.policy.weights)), strict=True
    ):  # what acts are averages over rounds
        np.testing.assert_allclose(mean, 0.5 * (first + second), rtol=1e-5, atol=1e-7)
    pieces.save(tmp_path / "agent")
    again = load_adaptive(tmp_path / "agent")
    assert again.about() == pieces.about()
    assert same(again.learn(200), whole)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pole(caution=BeliefCVaR(0.5), between=0.5, tempers=(1.0, 0.3)),
        lambda: pole(caution=EpisodeCVaR(0.5)),
        lambda: pole(thompson_dqn),
        lambda: pole(adaptive_dqn, caution=CredibleWorst(0.2)),
    ],
)
def test_every_kind_learns_is_saved_and_deployed(make, tmp_path):
    agent = make().learn(64)
    agent.save(tmp_path / "agent")
    again = load_adaptive(tmp_path / "agent")
    assert again.rule == agent.rule
    assert again.settings == agent.settings
    changes = StepChange(((2, POLES.members()[0]), (2, POLES.members()[2])))
    found = agent.adapt(POLE, 3, schedule=changes, seed=4)
    assert found.reports["belief"].shape == (1, 3, 3)
    assert found.reports["belief"][0, 0].argmax() == 0
    assert found.reports["belief"][0, 2].argmax() == 2
    np.testing.assert_array_equal(again.adapt(POLE, 3, schedule=changes, seed=4).episode_return, found.episode_return)


def play(session, episodes, failures, seed=0):
    """A loop of the user's own in a rover."""
    key, rows = jax.random.key(seed), []
    for failure in failures[:episodes]:
        key, begin = jax.random.split(key)
        state, elapsed, terminated = ROVER.start(begin, ROVER.nominal()), 0, False
        while not terminated and elapsed < ROVER.time_limit:
            key, draw = jax.random.split(key)
            action = session.act(np.asarray(ROVER.observe(state)))
            before, (state, reward, terminated) = (
                state,
                ROVE(draw, state, jnp.int32(action), MarsRoverParams(jnp.float32(failure))),
            )
            elapsed += 1
            truncated = not terminated and elapsed >= ROVER.time_limit
            session.observe(float(reward), np.asarray(ROVER.observe(state)), bool(terminated), truncated)
            rows.append((int(before), action, int(state), bool(terminated) or truncated))
    return rows


def test_the_belief_of_a_deployment_is_bayes_rule_over_every_path():
    session = rover().learn(64).deploy()
    rows = play(session, 6, [0.02, 0.5, 0.5, 0.02, 0.5, 0.5])
    prior, hazard = np.array([0.6, 0.4]), 0.1
    expected = Belief(2, SWITCHING)
    paths = {(k,): prior[k] for k in range(2)}  # every path of the hidden member, one entry per episode
    for before, action, after, ended in rows:
        each = [ROVER_OUTCOMES(jnp.int32(before), jnp.int32(action), MarsRoverParams(p)) for p in (0.02, 0.5)]
        likelihood = [float(one.probability[np.asarray(one.state) == after].sum()) for one in each]
        paths = {path: mass * likelihood[path[-1]] for path, mass in paths.items()}
        table = np.array([one.probability for one in each], np.float64)
        table /= table.sum(axis=1, keepdims=True)
        expected.observe_outcome(table, int(after != ROVER.wreck))
        if ended:
            expected.new_episode()
            paths = {
                (*path, k): mass * ((1 - hazard) * (k == path[-1]) + hazard * prior[k])
                for path, mass in paths.items()
                for k in range(2)
            }
    mass = np.array([sum(m for path, m in paths.items() if path[-1] == k) for k in range(2)])
    filtered = session.report()["filtered"]
    np.testing.assert_allclose(filtered, mass / mass.sum(), rtol=1e-4)
    np.testing.assert_allclose(filtered, expected.filtered, rtol=1e-4)


def test_a_session_is_the_compiled_deployment():
    agent = pole().learn(64)
    changes = StepChange(((1, POLES.members()[2]), (1, POLES.members()[0])))
    compiled = agent.adapt(POLE, 2, schedule=changes, seed=3)

    session, policy = agent.deploy(seed=3), agent.policy
    act, observe, report = jax.jit(policy.act), jax.jit(policy.observe), jax.jit(policy.report)
    memory = policy.start(jax.random.key(3))
    state, total = POLE.start(jax.random.key(9), POLE.nominal()), 0
    for _ in range(20):
        obs = POLE.observe(state)
        action, memory = act(memory, obs)
        assert session.act(np.asarray(obs)) == int(action)
        arrived = PUSH(jax.random.key(0), state, action, POLES.members()[0])
        seen = Step(obs, action, arrived.reward, POLE.observe(arrived.state), arrived.terminated, jnp.bool_(False))
        memory = observe(memory, seen)
        session.observe(float(arrived.reward), np.asarray(seen.next_observation), bool(arrived.terminated))
        np.testing.assert_allclose(session.belief, report(memory)["belief"], rtol=1e-5, atol=1e-7)
        state, total = arrived.state, total + 1
        if arrived.terminated:
            state = POLE.start(jax.random.fold_in(jax.random.key(9), total), POLE.nominal())
    assert compiled.episode_return.shape == (1, 2)
    columns = session.columns()
    assert columns["belief"].shape == (20, 3)
    above, between, below = session.plot().axes
    assert [text.get_text() for text in above.get_yticklabels()] == ["force -10", "force 5", "force 10"]
    np.testing.assert_allclose(above.images[0].get_array()[..., 3] ** 2, columns["belief"].T, atol=1e-5)
    np.testing.assert_array_equal(between.lines[0].get_ydata(), columns["surprise"])
    ended = np.flatnonzero(columns["terminated"])
    np.testing.assert_array_equal(below.lines[0].get_xdata(), ended)
    np.testing.assert_array_equal(below.lines[0].get_ydata(), np.diff(ended, prepend=-1))  # a reward of 1 each


@pytest.mark.parametrize("make", [thompson_dqn, partial(bayes_adaptive_dqn, caution=EpisodeCVaR(0.5))])
def test_a_session_decides_as_the_policy_does_step_by_step(make, tmp_path):
    """Over ends of episodes, with one array for all observations, and where act meets one that observe did not.

    Also saved between act and observe, before the first step and in the middle of an episode, and loaded.
    """
    agent = pole(make).learn(32)
    session, policy, noise = agent.deploy(seed=3), agent.policy, np.random.default_rng(0)
    act, observe = jax.jit(policy.act), jax.jit(policy.observe)
    memory, buffer = policy.start(jax.random.key(3)), np.zeros(4, np.float32)
    drawn, chosen = 4.0 * noise.normal(size=(40, 4)).astype(np.float32), []
    for t in range(39):
        elsewhere = 0.3 if t % 7 == 3 else 0.0
        buffer[:] = drawn[t] + np.float32(elsewhere)
        seen, ended = np.array(buffer), t % 5 == 4
        action, memory = act(memory, seen)
        assert session.act(buffer) == int(action)
        chosen.append(int(action))
        if t in (0, 17):
            session.save(tmp_path / "session")
            session = agent.deploy(seed=8).load(tmp_path / "session")
        buffer[:] = drawn[t + 1]
        terminated, truncated = ended and t % 2 == 0, ended and t % 2 == 1
        one = Step(seen, action, jnp.float32(1.0), np.array(buffer), jnp.bool_(terminated), jnp.bool_(truncated))
        memory = observe(memory, one)
        session.observe(1.0, buffer, terminated, truncated)
        for name in ("member", "words", "begun"):
            np.testing.assert_array_equal(getattr(session.memory, name), getattr(memory, name))
        np.testing.assert_allclose(session.memory.belief.log_b, memory.belief.log_b, rtol=1e-4, atol=1e-4)
    assert make is not thompson_dqn or 0 < sum(chosen) < len(chosen)  # the observation matters
    assert [step["action"] for step, _ in session.log] == chosen
    with pytest.raises(CheckpointError, match="is not of a deployment of this agent"):
        agent.learn(32).deploy().load(tmp_path / "session")


def test_what_no_member_explains_is_noticed():
    session = pole().learn(32).deploy()
    for obs in ([0.0] * 4, [1.0] * 4, [-1.0] * 4):
        session.act(obs)
        session.observe(1.0, [0.7, -0.4, 0.1, 2.0], False)
    assert session.surprise > 50.0
    np.testing.assert_allclose(session.belief, np.full(3, 1 / 3), rtol=1e-3)
    assert session.report()["outside"] == 1.0
    assert 0 <= session.worst_member < 3


def test_gymnasium_environments_are_adapted_to_by_simulator_or_by_members():
    agent, env = pole().learn(64), gymnasium.make("CartPole-v1", max_episode_steps=20)
    by_simulator = agent.adapt(env, 3, seed=0)
    assert by_simulator.reports["belief"][0, -1].argmax() == 2  # Gymnasium's force is 10
    members = EnvMembers(env, [{"force_mag": force} for force in (-10.0, 5.0)])
    members = members.only([1, 2, 0])  # in the order of the agent's
    by_members = agent.adapt(env, 3, members=members, seed=0)
    assert by_members.reports["belief"][0, -1].argmax() == 2


@pytest.mark.parametrize("members", [None, "copies"])
def test_the_belief_learns_from_the_action_that_was_taken(members):
    """A user who overrides every action: the belief is the filter's of the actions taken, and not of the agent's."""
    agent, env = pole(), gymnasium.make("CartPole-v1", max_episode_steps=20)
    if members is not None:
        members = EnvMembers(env, [{"force_mag": force} for force in (-10.0, 5.0)]).only([1, 2, 0])
    session, silent = (agent.deploy(env, members) for _ in range(2))
    observation, _ = env.reset(seed=0)
    for _ in range(3):
        other = 1 - session.act(observation)
        silent.act(observation)
        assert session.take(other) == other
        observation, reward, terminated, truncated, _ = env.step(other)
        for each in (session, silent):
            each.observe(reward, observation, terminated, truncated)
    assert session.belief.argmax() == 2  # Gymnasium's force is 10
    assert silent.belief.argmax() == 0  # as if the cart were pushed the other way
    assert session.columns()["action"].tolist() != silent.columns()["action"].tolist()
    with pytest.raises(ValueError, match="take was called before act"):
        session.take(0)
    session.act(observation)
    for wrong in (2, -1, 0.0, True):
        with pytest.raises(ValueError, match=r"action is .*, expected a whole number from 0 to 1"):
            session.take(wrong)


def test_an_environment_without_a_time_limit_has_the_simulators():
    agent = rover().learn(32)
    env = SimulatorEnv(MarsRover(size=4, start_zone=(2, 2), encoding=one_hot, time_limit=3), failure=0.0)
    found = agent.adapt(env, 2)
    assert (found.length <= 3).all()


def test_lives_side_by_side_are_those_one_by_one():
    policy = rover().learn(64).policy
    params = MarsRoverParams(jnp.asarray([[0.02, 0.5], [0.5, 0.02], [0.02, 0.02]], jnp.float32))
    together = deploy_lives(policy, ROVER, params, seed=1)
    assert together.reports["worst"].shape == (3, 2)
    again = deploy_lives(policy, ROVER, params, seed=1)
    np.testing.assert_array_equal(together.episode_return, again.episode_return)


def test_a_session_refuses_what_is_no_outcome_and_goes_on():
    session = rover().deploy()
    here, there = np.eye(16, dtype=np.float32)[[0, 1]]
    with pytest.raises(ValueError, match=r"observation is a batch of 3, expected one.*agent\.deploy\(\) for each"):
        session.act(np.zeros((3, 16)))
    action, before = session.act(here), session.belief
    for reward, found in ((np.nan, "nan"), (1e300, "1e\\+300"), ("1", "'1', expected a number, without quotes")):
        with pytest.raises(ValueError, match=f"reward is {found}"):
            session.observe(reward, there, False)
    with pytest.raises(ValueError, match="terminated is 'no', expected True or False"):
        session.observe(0.0, there, "no")
    with pytest.raises(ValueError, match="observation is a batch of 1, expected one"):
        session.observe(0.0, there[None], False)
    assert not session.log
    np.testing.assert_array_equal(session.belief, before)
    session.observe(np.float64(-0.001), there, np.bool_(False), np.False_)
    assert [step for step, _ in session.log] == [
        {"action": action, "reward": -0.001, "terminated": False, "truncated": False}
    ]


class Hidden:
    """A simulator whose state cannot be computed from its observation."""

    time_limit, n_actions = POLE.time_limit, POLE.n_actions
    nominal, start, outcomes, observe = POLE.nominal, POLE.start, POLE.outcomes, POLE.observe


def test_a_deployment_that_cannot_predict_does_not_begin():
    hidden = Hidden()
    agent = bayes_adaptive_dqn(hidden, POLES, switching=Switching(0.1), seed=0, **SMALL)
    with pytest.raises(
        ValueError, match=r"Hidden cannot recover a state .* state_of\(obs\).* the members' predictions"
    ):
        agent.deploy()


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(ValueError, match="or a Gymnasium environment with its EnvMembers"):
        bayes_adaptive_dqn(gymnasium.make("CartPole-v1"), POLES, switching=SWITCHING, seed=0)
    with pytest.raises(ValueError, match="expected those of CartPole"):
        bayes_adaptive_dqn(POLE, ROVERS, switching=SWITCHING, seed=0)
    with pytest.raises(ValueError, match="prior has 2 entries, expected 3"):
        bayes_adaptive_dqn(POLE, POLES, switching=SWITCHING, seed=0)
    with pytest.raises(ValueError, match="divisor of lives"):
        rover(lives=5)
    agent = rover()
    with pytest.raises(ValueError, match="observe was called before act"):
        agent.deploy().observe(0.0, [0.0] * 16, False)
    with pytest.raises(ValueError, match="as the agent was trained with"):
        agent.deploy(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match=r"env has observations of shape \(4,\) and 2 actions, expected \(16,\) and 4"):
        agent.adapt(POLE, 1)
    with pytest.raises(TypeError, match="env is 'CartPole-v1', expected a simulator"):
        agent.adapt("CartPole-v1", 1)
    with pytest.raises(TypeError, match=r"schedule is .*expected a schedule such as StepChange"):
        agent.adapt(ROVER, 1, schedule=ROVER.nominal())
    with pytest.raises(ValueError, match="seed is 'a', expected a whole number"):
        agent.deploy(seed="a")
    agent.save(tmp_path / "agent")
    with pytest.raises(CheckpointError, match=r"is an adaptive agent; load it with urbe\.deep\.load_adaptive"):
        load(tmp_path / "agent")
    (tmp_path / "agent").write_bytes((tmp_path / "agent").read_bytes()[:-1])
    with pytest.raises(CheckpointError):
        load_adaptive(tmp_path / "agent")


def test_a_run_that_needs_too_much_memory_is_refused_before_it_begins(monkeypatch):
    agent = rover()
    monkeypatch.setattr(memory, "UNNOTICED", 0)
    monkeypatch.setattr(memory, "available", lambda: 100)
    with pytest.raises(memory.NotEnoughMemory) as refused:
        agent.learn(32)
    said = str(refused.value)
    assert "learning from 8 steps of 4 lives" in said or "the outcomes of an action under 2 members in 4 lives" in said
    assert said.endswith("Use fewer lives (lives=...), shorter rounds (length=...), more minibatches, or fewer members "
                         "of the uncertainty set.")  # fmt: skip
    assert (agent.step, agent.asked) == (0, 0)
    monkeypatch.undo()
    assert same(agent.learn(32), rover().learn(32))


FORECAST = """
import sys
from urbe import memory
from urbe.belief import Switching
from urbe.deep import bayes_adaptive_dqn
from urbe.simulators import CartPole, UncertaintySet

members, lives, length = map(int, sys.argv[1:])
force = tuple(5.0 + 10.0 * k / members for k in range(members))
gains = UncertaintySet.grid(CartPole(), include_nominal=False, force=force)
agent = bayes_adaptive_dqn(CartPole(), gains, switching=Switching(1e-3), seed=0, lives=lives, length=length)
asked = []

def require(parts, advice):
    asked.append(sum(parts.values()))
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins here, after compilation
    with open("/proc/self/statm") as file:
        asked.append(int(file.read().split()[1]) * 4096)

memory.require = require
agent.learn(1)
with open("/proc/self/status") as file:
    highest = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
print(asked[0], highest - asked[1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(("members", "lives", "length"), [(500, 64, 2), (15, 256, 2000)])
def test_the_forecast_of_memory_is_within_a_fifth_of_the_peak(members, lives, length):
    command = [sys.executable, "-c", FORECAST, str(members), str(lives), str(length)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    forecast, peak = map(float, done.stdout.split())
    assert forecast == pytest.approx(peak, rel=0.2)


def test_episodes_of_an_evaluation_are_deployments_of_their_own():
    agent = pole().learn(64)
    grid = {"force": (-10.0, 5.0)}
    compiled = evaluate(agent, grid, episodes=4, seed=3)
    assert compiled.noisy is None
    in_gym = evaluate(agent, grid, env=SimulatorEnv(POLE), episodes=4, seed=3)
    np.testing.assert_array_equal(compiled.greedy.lengths, in_gym.greedy.lengths)
    np.testing.assert_allclose(compiled.greedy.returns, in_gym.greedy.returns, rtol=1e-6)
    alone = evaluate(agent, {"force": (5.0,)}, episodes=2, seed=3)
    np.testing.assert_array_equal(alone.greedy.returns[0], compiled.greedy.returns[1, :2])
