"""MDP.from_transitions: lists in any order, repeated transitions, intervals, and errors."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.mdp import same_model
from urbe import MDP


def random_list(seed: int, n_states: int, n_actions: int) -> dict[str, np.ndarray]:
    """Columns of a model with random support, random action sets, and rewards r(s, a), in order."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {"state": [], "action": [], "next_state": [], "probability": [], "reward": []}
    for s in range(n_states):
        for a in sorted(rng.choice(n_actions, rng.integers(1, n_actions + 1), replace=False).tolist()):
            support = np.sort(rng.choice(n_states, rng.integers(1, n_states + 1), replace=False))
            reward = float(rng.integers(-5, 6))
            for t, p in zip(support, rng.dirichlet(np.ones(len(support))), strict=True):
                for name, x in zip(columns, (s, a, t, p, reward), strict=True):
                    columns[name].append(x)
    return {name: np.array(column) for name, column in columns.items()}


def build(columns: dict[str, Any], **kwargs: Any) -> MDP:
    return MDP.from_transitions(*columns.values(), **({"discount": 0.9} | kwargs))


def refuses(message: str, columns: dict[str, Any], **kwargs: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build(columns, **kwargs)


two_states = {
    "state": [0, 0, 1],
    "action": [0, 0, 0],
    "next_state": [0, 1, 0],
    "probability": [0.5, 0.5, 1.0],
    "reward": [1.0, 1.0, 0.0],
}


@given(seed=st.integers(0, 2**32 - 1), n_states=st.integers(1, 6), n_actions=st.integers(1, 4))
def test_order_does_not_matter_and_inputs_stay(seed: int, n_states: int, n_actions: int) -> None:
    columns = random_list(seed, n_states, n_actions)
    shuffle = np.random.default_rng(seed).permutation(len(columns["state"]))
    shuffled = {name: column[shuffle] for name, column in columns.items()}
    before = {name: column.copy() for name, column in shuffled.items()}
    assert same_model(build(columns), build(shuffled))
    assert all(np.array_equal(shuffled[name], before[name]) for name in before)


@given(seed=st.integers(0, 2**32 - 1), n_states=st.integers(1, 6), n_actions=st.integers(1, 4))
def test_agrees_with_from_dense(seed: int, n_states: int, n_actions: int) -> None:
    s, a, t, p, r = random_list(seed, n_states, n_actions).values()
    shape = (n_states, a.max() + 1, n_states)
    transition, reward, available = np.zeros(shape), np.zeros(shape[:2]), np.zeros(shape[:2], dtype=bool)
    transition[s, a, t], reward[s, a], available[s, a] = p, r, True
    start = np.full(n_states, 1.0 / n_states)
    dense = MDP.from_dense(transition, reward, discount=0.9, available=available, initial=start)
    listed = MDP.from_transitions(s, a, t, p, r, discount=0.9, n_states=n_states, initial=start)
    assert same_model(dense, listed)


@given(seed=st.integers(0, 2**32 - 1), n_states=st.integers(1, 5))
def test_repeats_add_up_and_average(seed: int, n_states: int) -> None:
    """Every transition in two parts of different reward, against sums by dictionary."""
    rng = np.random.default_rng(seed)
    s, a, t, p, _ = random_list(seed, n_states, 3).values()
    share, gain = rng.uniform(0.1, 0.9, len(p)), rng.normal(size=(2, len(p)))
    part = np.concatenate([share * p, (1.0 - share) * p])
    order = rng.permutation(2 * len(p))
    twice = {name: np.tile(x, 2)[order] for name, x in (("state", s), ("action", a), ("next_state", t))}
    mdp = build(twice | {"probability": part[order], "reward": gain.ravel()[order]})
    total: dict[tuple[int, ...], float] = {}
    earned: dict[tuple[int, ...], float] = {}
    for triple, q, r in zip(np.tile(np.stack((s, a, t)), 2).T, part, gain.ravel(), strict=True):
        key = tuple(triple.tolist())
        total[key] = total.get(key, 0.0) + q
        earned[key] = earned.get(key, 0.0) + q * r
    rows, keys = mdp.rows, sorted(total)
    entries = zip(mdp.row_state[rows.entry_row], mdp.action[rows.entry_row], rows.successor, strict=True)
    assert [tuple(map(int, entry)) for entry in entries] == keys
    # two terms each: a few roundings
    np.testing.assert_allclose(rows.probability, [total[key] for key in keys], rtol=1e-14)
    wanted = np.array([earned[key] / total[key] for key in keys])
    got = rows.reward if rows.rewards_successors or rows.n_entries == rows.n_rows else rows.reward[rows.entry_row]
    np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-14)


def test_equal_rewards_of_repeats_stay_exact() -> None:
    mdp = MDP.from_transitions([0, 0, 0], [0, 0, 0], [0, 0, 0], [0.1, 0.2, 0.7], 0.1, discount=0.9)
    assert mdp.rows.reward.tolist() == [0.1]
    assert mdp.rows.n_entries == 1


def test_repeats_of_probability_zero_average_plainly() -> None:
    mdp = MDP.from_transitions([0, 0, 0, 1], [0] * 4, [0, 1, 1, 0], [1.0, 0.0, 0.0, 1.0], [0, 2, 4, 0], discount=0.9)
    assert mdp.rows.reward.tolist() == [0.0, 3.0, 0.0]
    assert mdp.rows.probability.tolist() == [1.0, 0.0, 1.0]


def test_rewards_are_per_row_when_they_do_not_vary() -> None:
    assert build(two_states).rows.reward.tolist() == [1.0, 0.0]
    assert not build(two_states).rows.rewards_successors
    varied = build(two_states | {"reward": [1.0, 2.0, 0.0]})
    assert varied.rows.reward.tolist() == [1.0, 2.0, 0.0]
    assert varied.rows.expected_reward().tolist() == [1.5, 0.0]


def test_indices_are_int32_and_whole_floats_are_read() -> None:
    mdp = build(two_states | {"state": [0.0, 0.0, 1.0]})
    assert same_model(mdp, build(two_states))
    for array in (mdp.row_start, mdp.action, mdp.rows.entry_start, mdp.rows.successor):
        assert array.dtype == np.int32


def test_a_state_that_is_no_number_is_named() -> None:
    refuses("state[1] is None, expected a whole number.", two_states | {"state": [0, None, 1]})


def test_terminal_states_may_loop_for_nothing() -> None:
    ended = two_states | {"next_state": [0, 1, 1]}
    mdp = build(ended, terminal=[1])
    assert mdp.terminal.tolist() == [False, True]
    assert mdp.n_rows == 1
    refuses(
        "State 1 is declared terminal, but transition 2 leads from it to state 0 with reward 0",
        two_states,
        terminal=[1],
    )
    paid = ended | {"reward": [1.0, 1.0, 7.0]}
    refuses("State 1 is declared terminal, but transition 2 leads from it to state 1 with reward 7", paid, terminal=[1])


def test_nothing_left_but_terminal_states() -> None:
    mdp = MDP.from_transitions([0], [0], [0], [1.0], [0.0], discount=0.9, terminal=[0])
    assert (mdp.n_states, mdp.n_rows) == (1, 0)


def test_refuses_bad_numbers_naming_the_entry() -> None:
    refuses("probability[1] is nan, expected a finite number.", two_states | {"probability": [0.5, np.nan, 1.0]})
    refuses("probability[1] is -0.5, expected at least 0.", two_states | {"probability": [0.5, -0.5, 1.0]})
    refuses("reward[2] is inf, expected a finite number.", two_states | {"reward": [0.0, 0.0, np.inf]})
    refuses("next_state[1] is 2, expected a 0-based state below 2.", two_states | {"next_state": [0, 2, 0]}, n_states=2)
    refuses("state[2] is -1, expected at least 0", two_states | {"state": [0, 0, -1]})
    refuses("action[0] is 0.5, expected a whole number", two_states | {"action": [0.5, 0, 0]})
    refuses("state[0] is 'a', expected a whole number.", two_states | {"state": ["a", "b", "c"]})
    refuses("state has shape (1, 3), expected one dimension", two_states | {"state": [[0, 0, 1]]})
    refuses("expected below 2147483647: number the states", two_states | {"next_state": [0, 2**31, 0]})


def test_refuses_rows_that_are_no_distributions_naming_the_pair() -> None:
    wrong = two_states | {"probability": [0.5, 0.25, 1.0], "action": [4, 4, 0]}
    refuses("The probabilities of state 0, action 4 sum to 0.75, expected 1. 1 of 2 rows is not a distribution", wrong)
    loose = build(wrong, row_tolerance=0.3)
    np.testing.assert_allclose(loose.rows.probability, [2 / 3, 1 / 3, 1.0], rtol=2.0**-51)


def test_refuses_columns_that_do_not_fit() -> None:
    refuses("The columns differ in length", two_states | {"reward": [0.0, 0.0]})
    refuses("There are no transitions; expected at least one.", {name: [] for name in two_states})
    refuses("n_states is 0, expected a whole number of at least 1.", two_states, n_states=0)


def test_refuses_states_without_actions() -> None:
    refuses("1 state is without actions: 2.", two_states, n_states=3)
    refuses("8 states are without actions: 2, 3, 4, 5, 6 and 3 more.", two_states, n_states=10)
    assert build(two_states, n_states=3, terminal=[2]).n_states == 3


def test_intervals_come_with_the_model() -> None:
    lower, upper = [0.2, 0.4, 1.0], [0.6, 0.8, 1.0]
    mdp = build(two_states, lower=lower, upper=upper)
    assert mdp.bounds is not None
    assert [x.tolist() for x in mdp.bounds] == [lower, upper]
    centre = build(two_states | {"probability": None}, lower=lower, upper=upper)
    # 0.4 of mass is free, each interval is 0.4 wide: half of each
    np.testing.assert_allclose(centre.rows.probability, [0.4, 0.6, 1.0], rtol=2.0**-51)


def test_refuses_bad_intervals_naming_the_pair() -> None:
    good = {"lower": [0.2, 0.4, 1.0], "upper": [0.6, 0.8, 1.0]}
    refuses("lower is given without upper; intervals need both.", two_states, lower=good["lower"])
    refuses("probability is None", two_states | {"probability": None})
    crossed = good | {"lower": [0.7, 0.3, 1.0]}
    refuses("The interval from state 0, action 0 to state 0 is [0.7, 0.6]", two_states, **crossed)
    empty = good | {"upper": [0.5, 0.45, 1.0]}
    refuses("The intervals of state 0, action 0 hold no distribution", two_states, **empty)
    outside = two_states | {"probability": [0.1, 0.9, 1.0]}
    refuses(
        "The probability from state 0, action 0 to state 0 is 0.1, expected within its interval [0.2, 0.6]",
        outside,
        **good,
    )
    twice = two_states | {"next_state": [0, 0, 0]}
    refuses("The transition from state 0, action 0 to state 0 is listed more than once", twice, **good)
