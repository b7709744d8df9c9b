"""Finite simulators become models of the tabular plane: every entry, the robust optimum, refusals."""

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import urbe
from oracles import rover as oracle
from urbe.simulators import MarsRover, MarsRoverParams, Outcomes, UncertaintySet, scenarios, to_mdp

ROVER = MarsRover(size=4, success=2.0, fail=-0.7, step_reward=-0.03, start_zone=(2, 1), time_limit=20)


def entries(mdp):
    """{(state, action): {next state: (probability, reward)}}."""
    rows, table = mdp.rows, {}
    for row in range(mdp.n_rows):
        pair = (int(mdp.row_state[row]), int(mdp.action[row]))
        span = slice(rows.entry_start[row], rows.entry_start[row + 1])
        reward = rows.entry_reward[span] if rows.entry_reward is not None else [rows.row_reward[row]] * rows.length[row]
        listed = zip(rows.successor[span], rows.probability[span], reward, strict=True)
        table[pair] = {int(t): (float(p), float(r)) for t, p, r in listed}
    return table


def test_every_entry_is_that_of_the_description():
    for failure in (0.2, 1.0, 0.0, 1 / 3):
        model = to_mdp(ROVER, MarsRoverParams(failure), discount=0.9)
        assert entries(model) == oracle.rows(4, failure, 2.0, -0.7, -0.03)
        assert np.array_equal(np.flatnonzero(model.terminal), [15, 16])
        assert np.array_equal(np.flatnonzero(model.initial), [0, 4])
        assert model.initial.sum() == 1.0


def test_float32_parameters_are_taken_as_they_are():
    model = to_mdp(ROVER, MarsRoverParams(jnp.float32(0.2)), discount=0.9)
    rounded = float(np.float32(0.2))
    assert entries(model) == oracle.rows(4, rounded, 2.0, -0.7, -0.03)


def test_asking_for_a_model_leaves_jax_as_it_was():
    to_mdp(ROVER, MarsRoverParams(0.2), discount=0.9)
    assert jnp.asarray(0.5).dtype == jnp.float32
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("failures", [(0.0, 0.1), (0.05, 0.3, 1.0), (0.0,), (0.004, 0.006)])
def test_the_robust_optimum_is_that_of_plain_value_iteration(failures):
    members = UncertaintySet.grid(ROVER, failure=failures, include_nominal=len(failures) > 1)
    tables = [oracle.rows(4, float(m.failure), 2.0, -0.7, -0.03) for m in members.members()]
    for table in tables:  # all rows list the wreck, so that the minimum is over the same successors
        assert table.keys() == tables[0].keys()
    expected = oracle.robust_values(tables, 17, 0.9, sweeps=250)  # 0.9^250 of the first error is left: 1e-11
    solution = urbe.solve(*scenarios(ROVER, members, discount=0.9), urbe.ValueIteration(tolerance=1e-10))
    assert solution.value == pytest.approx(expected, abs=1e-9)
    assert (solution.lower <= np.array(expected) + 1e-9).all()
    assert (solution.upper >= np.array(expected) - 1e-9).all()


def test_the_model_of_a_robust_problem_is_the_nominal_member():
    members = UncertaintySet.grid(ROVER, failure=(0.0, 1.0))
    mdp, _ = scenarios(ROVER, members, discount=0.9)
    expected = oracle.rows(4, float(np.float32(0.005)), 2.0, -0.7, -0.03)
    possible = {pair: {t: e for t, e in row.items() if e[0] > 0.0} for pair, row in entries(mdp).items()}
    assert possible == expected


def test_one_member_is_no_robustness():
    single = urbe.solve(*scenarios(ROVER, UncertaintySet.single(ROVER), discount=0.9))
    alone = urbe.solve(to_mdp(ROVER, ROVER.nominal(), discount=0.9))
    assert single.value == pytest.approx(alone.value, abs=2e-6)  # twice the solvers' tolerance


class CoinParams(NamedTuple):
    heads: float = 0.5
    pays: float = 1.0


@dataclass(frozen=True)
class Coin:
    """State 0 tosses a coin: heads ends in 1, tails goes on in 2, from where everything ends in 3."""

    fault: str = ""
    n_states: int = 4
    n_actions: int = 1
    time_limit: int = 5

    def nominal(self):
        return CoinParams(jnp.float32(0.5), jnp.float32(1.0))

    def available(self):
        return np.ones((4, 2 if self.fault == "shape" else 1), dtype=bool)

    def start(self, _key, _params):
        return jnp.int32(0)

    def start_distribution(self, _params):
        return jnp.asarray([1.0, 0.0, 0.0, 0.0], jnp.float32)

    def outcomes(self, state, _action, params):
        heads = jnp.float32(params.heads)
        tails = heads if self.fault == "sum" else 1 - heads
        end = {"mixed": False, "": True}.get(self.fault, True)
        successor = jnp.asarray([[1, 2], [1, 1], [1 if self.fault == "mixed" else 3, 3], [3, 3]], jnp.int32)[state]
        if self.fault == "outside":
            successor = successor + 2
        reward = jnp.asarray([[0.0, 0.0], [0.0, 0.0], [2.0, 4.0], [0.0, 0.0]], jnp.float32)[state]
        reward = reward + jnp.where(state == 0, params.pays, 0.0) * jnp.asarray([1, 0], jnp.float32)
        ended = jnp.asarray([[True, False], [True, True], [end, True], [True, True]])[state]
        return Outcomes(jnp.stack([heads, tails]), successor, reward.astype(jnp.float32), ended)

    def observe(self, state):
        return (jnp.arange(4) == state).astype(jnp.float32)


def test_a_simulator_that_answers_in_float32_is_rescaled():
    model = to_mdp(Coin(), CoinParams(0.1, 1.0), discount=0.5)
    table = entries(model)
    p = np.float64(np.float32(0.1)), np.float64(1 - np.float32(0.1))
    assert sum(p) != 1.0  # or there is nothing to rescale
    assert table[0, 0][1][0] == pytest.approx(p[0] / sum(p), abs=1e-16)
    assert sum(q for q, _ in table[0, 0].values()) == 1.0


def test_outcomes_that_lead_to_the_same_state_are_one_entry():
    assert entries(to_mdp(Coin(), CoinParams(0.25, 1.0), discount=0.5))[2, 0] == {3: (1.0, 0.25 * 2 + 0.75 * 4)}


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            "sum",
            "The outcomes of state 0, action 0 have the probabilities [0.25, 0.25] under member 0, expected a dist",
        ),
        ("outside", "outcomes.state["),
        ("mixed", "State 1 is terminal elsewhere, but is entered from state 2 by action 0 without `terminated`"),
        ("shape", "available() has type bool and shape (4, 2), expected booleans of shape (4, 1)"),
    ],
)
def test_simulators_that_are_no_models_are_refused(fault, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        to_mdp(Coin(fault), CoinParams(0.25, 1.0), discount=0.5)


def test_parameters_out_of_range_are_refused():
    with pytest.raises(ValueError, match=re.escape("[1.5, -0.5] under member 0, expected a distribution")):
        to_mdp(ROVER, MarsRoverParams(1.5), discount=0.9)
    with pytest.raises(ValueError, match=re.escape("[nan, nan] under member 0, expected a distribution")):
        to_mdp(ROVER, MarsRoverParams(float("nan")), discount=0.9)


def test_rewards_that_depend_on_the_member_are_refused():
    coin = replace(Coin(), n_states=4)
    with pytest.raises(ValueError, match="The reward of state 0, action 0, next state 1 is between 1 and 3, depending"):
        scenarios(coin, UncertaintySet.grid(coin, pays=(1.0, 3.0)), discount=0.5)
    with pytest.raises(ValueError, match="The reward of state 2, action 0, next state 3 is between 2 and 4"):
        scenarios(coin, UncertaintySet.grid(coin, heads=(0.2, 0.5)), discount=0.5)
