"""Lives under changing dynamics: exact performance, inputs of memories, common random numbers, errors."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.evaluation.adaptation import Deployments, MemoryPolicy, _play, deploy_lives, parameter_paths
from urbe.simulators import (
    CartPole,
    Constant,
    LogUniform,
    MarsRover,
    MarsRoverParams,
    RandomJumps,
    StepChange,
    performance,
)
from urbe.simulators.mars_rover import one_hot

ROVER = MarsRover(size=4, start_zone=(1, 1), encoding=one_hot, step_reward=-0.001, time_limit=12)


class Table(NamedTuple):
    """Follows a fixed table of actions."""

    actions: Any

    def start(self, key):  # noqa: ARG002
        return ()

    def act(self, memory, observation):
        return self.actions[observation.argmax()], memory

    def observe(self, memory, step):  # noqa: ARG002
        return memory

    def report(self, memory):  # noqa: ARG002
        return {}


class Diary(NamedTuple):
    """Acts at random and adds up everything it is shown."""

    share: Any

    def start(self, key):
        zero = jnp.int32(0)
        return {"key": key, "steps": zero, "ends": zero, "cuts": zero, "jumps": zero, "reward": jnp.float32(0.0),
                "last": jnp.zeros(16), "new": jnp.bool_(True)}  # fmt: skip

    def act(self, memory, observation):  # noqa: ARG002
        key, now = jax.random.split(memory["key"])
        action = jnp.where(jax.random.uniform(now) < self.share, 1, 2).astype(jnp.int32)
        return action, memory | {"key": key}

    def observe(self, memory, step):
        moved = ~memory["new"] & (step.observation != memory["last"]).any()
        return memory | {
            "steps": memory["steps"] + 1,
            "ends": memory["ends"] + step.terminated,
            "cuts": memory["cuts"] + step.truncated,
            "jumps": memory["jumps"] + moved,
            "reward": memory["reward"] + step.reward,
            "last": step.next_observation,
            "new": step.terminated | step.truncated,
        }

    def report(self, memory):
        return {name: memory[name] for name in ("steps", "ends", "cuts", "jumps", "reward")}


def path(failures, lives=1):
    """The same failure probabilities in every life."""
    phases = tuple((episodes, MarsRoverParams(failure)) for episodes, failure in failures)
    total = sum(episodes for episodes, _ in failures)
    return parameter_paths(StepChange(phases), lives=lives, episodes=total, seed=0)


def test_returns_are_those_of_exact_evaluation_in_every_phase():
    """Within 5 standard errors: a false alarm in about a million seeds."""
    table = np.where(np.arange(17) % 4 < 3, 1, 2)  # right, then down
    phases = [(60, 0.01), (60, 0.3), (60, 0.9)]
    found = deploy_lives(Table(jnp.asarray(table, jnp.int32)), ROVER, path(phases, lives=50), seed=1)
    for k, (episodes, failure) in enumerate(phases):
        returns = found.episode_return[:, 60 * k : 60 * k + episodes].ravel()
        exact = performance(ROVER, MarsRoverParams(failure), table, discount=1.0).total
        assert abs(returns.mean() - exact) < 5 * returns.std() / np.sqrt(returns.size) + 1e-6


def test_a_memory_sees_every_transition_once_and_survives_the_episode():
    found = deploy_lives(Diary(jnp.float32(0.4)), ROVER, path([(20, 0.05)], lives=7), seed=3)
    reports = found.reports
    assert np.array_equal(reports["steps"], found.length.cumsum(axis=1))
    assert np.array_equal(reports["ends"], found.terminated.cumsum(axis=1))
    assert np.array_equal(reports["ends"] + reports["cuts"], np.broadcast_to(np.arange(1, 21), (7, 20)))
    assert (found.length[~found.terminated] == 12).all()
    assert 0 < found.terminated.sum() < found.terminated.size
    assert np.allclose(reports["reward"], found.episode_return.cumsum(axis=1), atol=1e-4)
    assert (reports["jumps"] == 0).all()


def test_same_seed_same_bits_and_other_luck_for_another():
    lives = path([(10, 0.2)], lives=4)
    first, again, other = (deploy_lives(Diary(jnp.float32(0.5)), ROVER, lives, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.episode_return, again.episode_return)
    assert not np.array_equal(first.episode_return, other.episode_return)


def test_policies_that_act_alike_meet_the_same_luck():
    """One with a memory and one without, both always going right then down as far as each can."""
    lives = path([(30, 0.2)], lives=4)
    right = deploy_lives(Diary(jnp.float32(1.1)), ROVER, lives, seed=5)
    table = deploy_lives(Table(jnp.ones(16, jnp.int32)), ROVER, lives, seed=5)
    assert np.array_equal(right.episode_return, table.episode_return)


def test_more_lives_do_not_change_the_parameters_given():
    """And weights are leaves: other weights need no new compilation."""
    few = deploy_lives(Diary(jnp.float32(0.5)), ROVER, path([(10, 0.2)], lives=3), seed=0)
    compiled = _play._cache_size()
    deploy_lives(Diary(jnp.float32(0.7)), ROVER, path([(10, 0.9)], lives=3), seed=9)
    assert _play._cache_size() == compiled
    assert few.params.failure.shape == (3, 10)


def test_paths_follow_the_schedule():
    found = path([(2, 0.1), (3, 0.4)], lives=2)
    assert np.array_equal(found.failure, np.float32([[0.1, 0.1, 0.4, 0.4, 0.4]] * 2))
    jumps = RandomJumps(MarsRover().nominal(), {"failure": LogUniform(0.001, 0.9)}, hazard=0.1)
    drawn = parameter_paths(jumps, lives=200, episodes=50, seed=0).failure
    changed = (np.diff(drawn, axis=1) != 0).mean()
    assert abs(changed - 0.1) < 5 * np.sqrt(0.09 / (200 * 49))
    assert len(np.unique(drawn[:, 0])) == 200


def test_noise_has_its_deviation():
    class Looks(NamedTuple):
        """Adds up the squares of what it sees of a pole that stands still at the start."""

        weight: Any

        def start(self, key):  # noqa: ARG002
            return jnp.float32(0.0)

        def act(self, memory, observation):  # noqa: ARG002
            return jnp.int32(0), memory

        def observe(self, memory, step):
            return memory + (step.observation**2).mean()

        def report(self, memory):
            return {"squares": memory}

    paths = parameter_paths(Constant(CartPole().nominal()), lives=3000, episodes=1, seed=0)
    play = partial(deploy_lives, Looks(jnp.float32(0.0)), CartPole(), paths, seed=0, time_limit=1)
    extra = (play(observation_noise=0.5).reports["squares"] - play().reports["squares"]).mean()
    assert abs(extra - 0.25) < 5 * 0.25 * np.sqrt(2 / (4 * 3000)) + 5 * 0.5 * 0.03 / np.sqrt(4 * 3000)


def test_refusals_say_what_was_found():
    with pytest.raises(ValueError, match=r"params has leaves of the shapes \[\(\)\], expected one shape \(lives, epi"):
        deploy_lives(Table(jnp.ones(16, jnp.int32)), ROVER, MarsRoverParams(np.float32(0.1)), seed=0)
    with pytest.raises(ValueError, match="observation_noise is -1"):
        deploy_lives(Table(jnp.ones(16, jnp.int32)), ROVER, path([(1, 0.1)]), seed=0, observation_noise=-1.0)
    poles = parameter_paths(Constant(CartPole().nominal()), lives=1, episodes=2, seed=0)
    broken = poles._replace(half_length=np.float32([[0.5, np.nan]]))
    with pytest.raises(ValueError, match=r"not finite in episode 1 of life 0, at step 1; .*half_length=nan"):
        deploy_lives(Table(jnp.ones(16, jnp.int32)), CartPole(), broken, seed=0)


def test_what_is_a_policy_with_a_memory():
    assert isinstance(Table(0), MemoryPolicy)
    assert not isinstance(ROVER, MemoryPolicy)


def test_deployments_read_as_one_line():
    found = Deployments(
        np.array([[1.0, 4.0]]), np.array([[2, 4]]), np.array([[True, False]]), None, {"belief": np.zeros((1, 2, 3))}
    )
    expected = "Deployments(1 x 2 episodes, mean return 2.5, 3 steps, 50% terminated; reports: belief)"
    assert repr(found) == expected
