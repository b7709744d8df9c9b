"""Exact performance agrees with played episodes and closed forms; what Mars Rover's rewards imply, number by number."""

import re
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import urbe
from oracles import rover as oracle
from urbe.mdp.evaluate import occupancy, policy_value
from urbe.simulators import (
    MarsRover,
    MarsRoverParams,
    UncertaintySet,
    calibrated,
    crossing,
    performance,
    scenarios,
    step,
    to_mdp,
)
from urbe.simulators.mars_rover import diagonal_approach, vertical_approach

ROVER = MarsRover()
P = MarsRoverParams
DISTANCE = np.array([oracle.distance(cell, 10) for cell in range(100)])
TRAVEL = np.array([2 if cell // 10 < 9 else 1 for cell in range(101)])
SIDEWAYS_FIRST = np.array([1 if cell % 10 < 9 else 2 for cell in range(101)])
WAIT = np.array([0 if cell % 10 else 3 for cell in range(101)])  # up or left: away, or against the border
RISKY = {1, 2}
FROM_1_1 = np.eye(101)[11]


@pytest.fixture(scope="module")
def whole():
    """The robust solution over failure probabilities from 0 to 1."""
    return urbe.solve(*scenarios(ROVER, UncertaintySet.grid(ROVER, failure=np.linspace(0, 1, 16)), discount=0.9))


@partial(jax.jit, static_argnums=(0, 4))
def play(rover, params, policy, key, episodes):
    """Returns, last states and visits of played episodes, cut off at the time limit."""
    key_start, key_walk = jax.random.split(key)
    first = jax.vmap(rover.start, (0, None))(jax.random.split(key_start, episodes), params)

    def go(carry, key):
        state, alive, total = carry
        key_act, key_step = jax.random.split(key)
        action = jax.random.categorical(key_act, jnp.log(policy[state])).astype(jnp.int32)
        keys = jax.random.split(key_step, episodes)
        arrival = jax.vmap(partial(step, rover), (0, 0, 0, None))(keys, state, action, params)
        total = total + jnp.where(alive, arrival.reward, 0.0)
        moved = jnp.where(alive, arrival.state, state)
        return (moved, alive & ~arrival.terminated, total), jnp.where(alive, moved, -1)

    begin = (first, jnp.ones(episodes, bool), jnp.zeros(episodes, jnp.float32))
    (last, _, total), path = jax.lax.scan(go, begin, jax.random.split(key_walk, rover.time_limit))
    return total, last, jnp.concatenate([first[None], path])


def test_played_episodes_agree_with_exact_numbers():
    """Means of 4000 episodes within 5 standard errors; of 19 numbers one fails in about 1e5 seeds."""
    rover = MarsRover(size=4, success=2.0, fail=-1.5, step_reward=-0.1, start_zone=(2, 2), time_limit=12)
    policy = np.full((17, 4), 0.25) * [0.4, 1.6, 1.6, 0.4]
    exact = performance(rover, P(0.1), policy, discount=0.9)
    total, last, path = map(np.asarray, play(rover, P(0.1), jnp.asarray(policy, jnp.float32), jax.random.key(3), 4000))
    assert 0.02 < np.mean(last < rover.goal) < 0.9  # some are cut off
    assert abs(total.mean() - exact.total) < 5 * total.std() / np.sqrt(4000)
    for state in range(17):
        visits = (path == state).sum(axis=0)
        assert abs(visits.mean() - exact.visits[state]) < 5 * visits.std() / np.sqrt(4000) + 1e-12
    assert abs((last == rover.goal).mean() - exact.visits[rover.goal]) < 5 * np.sqrt(0.25 / 4000)


def test_without_a_cut_visits_are_the_occupancy():
    policy = np.where(np.arange(101)[:, None] < 99, [0.1, 0.4, 0.4, 0.1], 0.0)
    found = performance(ROVER, P(0.05), policy, discount=0.9, steps=2000)
    model = to_mdp(ROVER, P(0.05), discount=1.0)
    assert found.visits == pytest.approx(occupancy(model, policy), abs=1e-9)
    assert found.total == pytest.approx(float(model.initial @ policy_value(model, policy)), abs=1e-9)
    assert found.visits[99] + found.visits[100] == pytest.approx(1.0, abs=1e-12)


def test_the_discounted_value_is_the_solvers():
    found = performance(ROVER, P(0.05), TRAVEL, discount=0.9)
    model = to_mdp(ROVER, P(0.05), discount=0.9)
    table = np.where(model.terminal, -1, TRAVEL)
    assert found.value == pytest.approx(urbe.evaluate_policy(model, table).value, abs=2e-6)
    assert found.discounted == pytest.approx(float(model.initial @ found.value), abs=1e-15)


def test_tables_of_actions_and_of_probabilities_are_the_same():
    by_action = performance(ROVER, P(0.1), TRAVEL, discount=0.9)
    by_chance = performance(ROVER, P(0.1), np.eye(4)[TRAVEL], discount=0.9)
    for a, b in zip(by_action, by_chance, strict=True):
        assert np.array_equal(a, b)


def test_nothing_is_earned_in_no_time():
    found = performance(ROVER, P(0.1), TRAVEL, discount=0.9, steps=0)
    assert found.total == 0.0
    assert np.count_nonzero(found.visits) == 9


@pytest.mark.parametrize("failure", [0.0, 0.005, 0.2])
def test_travelling_succeeds_with_the_power_of_the_distance(failure):
    for cell in (0, 11, 22, 57, 89, 98):
        found = performance(ROVER, P(failure), TRAVEL, discount=0.9, start=np.eye(101)[cell])
        assert found.visits[ROVER.goal] == pytest.approx((1 - failure) ** DISTANCE[cell], rel=1e-12)


def test_no_policy_succeeds_more_often():
    """The largest chance of reaching the goal in time is (1 - p)^d: only reaching it is rewarded."""
    chance = replace(ROVER, success=1.0, fail=0.0, step_reward=0.0)
    best = urbe.solve(to_mdp(chance, P(0.2), discount=1.0), method=urbe.BackwardInduction(200)).value[0]
    assert best[:99] == pytest.approx(0.8 ** DISTANCE[:99], rel=1e-12)
    assert best[11] == pytest.approx(0.028, abs=5e-4)


@pytest.mark.parametrize(("risk", "from_1_1"), [(vertical_approach, 8), (diagonal_approach, 8)])
def test_where_fewer_moves_are_risky_more_episodes_succeed(risk, from_1_1):
    chance = replace(ROVER, success=1.0, fail=0.0, step_reward=0.0, risk=risk)
    best = urbe.solve(to_mdp(chance, P(0.2), discount=1.0), method=urbe.BackwardInduction(200)).value[0]
    assert best[11] == pytest.approx(0.8**from_1_1, rel=1e-12)
    assert best[0] == pytest.approx(0.8**9, rel=1e-12)


def test_the_robust_policy_takes_no_risk_and_earns_the_same_everywhere(whole):
    for cell in range(99):
        down_or_right_is_a_bump = {2} if cell // 10 == 9 else ({1} if cell % 10 == 9 else set())
        assert int(whole.policy[cell]) not in RISKY - down_or_right_is_a_bump
    assert whole.value[:99] == pytest.approx(-0.0048 / 0.1, abs=1e-6)
    for failure in (0.0, 0.005, 0.2, 0.7, 1.0):
        found = performance(ROVER, P(failure), whole.policy, discount=0.9)
        assert found.total == pytest.approx(-0.96, abs=1e-12)
        assert found.visits[99] == found.visits[100] == 0.0
        assert found.visits.sum() == pytest.approx(201.0, abs=1e-9)


@pytest.mark.parametrize("failures", [(0.5,), (1.0,)])
@pytest.mark.parametrize(("step_reward", "waits"), [(-0.0999, True), (-0.1001, False)])
def test_avoidance_is_a_matter_of_what_failing_costs(failures, step_reward, waits):
    """Waiting for ever is worth step_reward / (1 - discount), which failing at once must not beat."""
    rover = replace(ROVER, step_reward=step_reward)
    robust = urbe.solve(*scenarios(rover, UncertaintySet.grid(rover, failure=failures), discount=0.9))
    assert (int(robust.policy[0]) not in RISKY) == waits


def test_at_a_fifth_only_the_last_three_steps_are_worth_the_risk():
    best = urbe.solve(to_mdp(ROVER, P(0.2), discount=0.9))
    travels = np.array([int(a) in RISKY for a in best.policy[:99]])
    assert np.array_equal(travels, DISTANCE[:99] <= 3)


@pytest.mark.parametrize(
    ("step_reward", "expected"), [(-0.005, 0.268), (-0.004, 0.128), (-0.0048, 0.198), (-0.01, None), (-0.001, 0.055)]
)
def test_where_waiting_overtakes_travelling(step_reward, expected):
    """From (1, 1), 16 risky moves; the last is the reward set on which adaptation pays."""
    found = crossing(
        replace(ROVER, step_reward=step_reward), P(), "failure", (TRAVEL, WAIT), low=0.0, high=0.5, start=FROM_1_1
    )
    assert found == expected if expected is None else abs(found - expected) < 5e-4


@pytest.mark.parametrize(("step_reward", "expected"), [(-0.005, 0.372), (-0.004, 0.232), (-0.0048, 0.323)])
def test_where_it_does_with_eight_safe_moves_and_then_eight_risky_ones(step_reward, expected):
    rover = replace(ROVER, step_reward=step_reward, risk=vertical_approach)
    assert crossing(rover, P(), "failure", (SIDEWAYS_FIRST, WAIT), high=0.6, start=FROM_1_1) == pytest.approx(
        expected, abs=6e-4
    )


@pytest.mark.parametrize(("fail", "step_reward"), [(-1.0, -0.0048), (-0.235, -0.001)])
def test_nominal_and_robust_policies_cross_near_a_fifth(fail, step_reward):
    rover = replace(ROVER, fail=fail, step_reward=step_reward)
    nominal = urbe.solve(to_mdp(rover, P(), discount=0.9)).policy
    robust = urbe.solve(*scenarios(rover, UncertaintySet.grid(rover, failure=np.linspace(0, 1, 16)), discount=0.9))
    there = performance(rover, P(), nominal, discount=0.9)
    assert there.visits[rover.goal] == pytest.approx(np.mean(0.995 ** DISTANCE[[0, 1, 2, 10, 11, 12, 20, 21, 22]]))
    assert crossing(rover, P(), "failure", (nominal, robust.policy), high=0.5) == pytest.approx(0.2, abs=0.005)
    small = UncertaintySet.grid(rover, failure=np.linspace(0, 0.045, 15))
    wary = urbe.solve(*scenarios(rover, small, discount=0.9)).policy
    reaches = performance(rover, P(), wary, discount=0.9).visits[rover.goal]
    assert reaches == pytest.approx(0.0 if fail == -1.0 else there.visits[rover.goal])


def test_calibration_is_the_inverse_of_the_crossing():
    for start, failure in ((FROM_1_1, 0.198), (None, 0.2)):
        rover = calibrated(replace(ROVER, step_reward=0.7), (TRAVEL, WAIT), failure=failure, start=start)
        assert rover.step_reward == pytest.approx(-0.0048, abs=5e-6)
    assert crossing(rover, P(), "failure", (TRAVEL, WAIT), high=0.5) == pytest.approx(0.2, abs=1e-9)


def test_refusals():
    with pytest.raises(ValueError, match=re.escape("name is 'fail', expected one of 'failure'")):
        crossing(ROVER, P(), "fail", (TRAVEL, WAIT))
    with pytest.raises(ValueError, match=re.escape("low is 1 and high 1, expected low below high")):
        crossing(ROVER, P(), "failure", (TRAVEL, WAIT), low=1.0)
    with pytest.raises(ValueError, match=re.escape("policy has shape (100,), expected (101,) actions or (101, 4)")):
        performance(ROVER, P(), TRAVEL[:100], discount=0.9)
    with pytest.raises(ValueError, match=re.escape("policy[0] is 7, but state 0 has the actions 0, 1, 2, 3")):
        performance(ROVER, P(), np.full(101, 7), discount=0.9)
    with pytest.raises(ValueError, match=re.escape("start sums to 101, expected 1")):
        performance(ROVER, P(), TRAVEL, discount=0.9, start=np.ones(101))
    with pytest.raises(ValueError, match="Both policies pay for 200 steps, so no step reward makes their totals equal"):
        calibrated(ROVER, (WAIT, WAIT), failure=0.2)
