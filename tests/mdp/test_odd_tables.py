"""Tables whose types mislead: categories of numbers, words for dates, dates as states, unused cells."""

import datetime

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import urbe

MOVES = {"action": ["x", "y", "x"], "reward": [1.0, 2.0, 3.0]}


def test_categories_of_numbers_are_labels():
    kinds = pd.Categorical([30, 10, 30], categories=[30, 20, 10])
    log = urbe.Transitions.from_columns(pd.DataFrame({"state": kinds, "next_state": kinds, **MOVES}))
    assert log.labels.states == (30, 10)
    assert log.notes == ()
    mdp = urbe.MDP.from_transitions(kinds[:2], [0, 0], kinds[:2], 1.0, 0.0, discount=0.9)
    assert mdp.labels.states == (30, 10)
    table = pd.DataFrame({"state": kinds, "next_state": kinds, **MOVES, "action": 0})
    ids = urbe.Transitions.from_columns(table, labels=False)
    assert ids.state.tolist() == [30, 10, 30]


@pytest.mark.parametrize("word", ["today", "now", "NOW"])
def test_words_are_no_dates(word):
    with pytest.raises(ValueError, match=f"time.1. is '{word}', expected a number or a date"):
        urbe.Transitions.from_columns({"state": list("aba"), "time": ["2024-01-01", word, "2024-01-02"], **MOVES})


def test_dates_as_states_are_refused_with_an_advice_that_helps():
    days = [datetime.date(2024, 1, day) for day in (1, 2, 1)]
    table = {"state": days, "next_state": days, **MOVES}
    with pytest.raises(ValueError, match=r"expected a text or a whole number from 0 on. Convert the column with str"):
        urbe.Transitions.from_columns(table)
    assert urbe.Transitions.from_columns(table | {"state": [*map(str, days)], "next_state": [*map(str, days)]})


def test_rewards_of_actions_that_do_not_exist_are_not_read():
    stay, go = csr_array([[1.0, 0.0], [0.0, 0.0]]), csr_array([[0.2, 0.8], [0.0, 0.0]])
    mdp = urbe.MDP.from_sparse([stay, go], [[1.0, 2.0], [np.nan, np.inf]], discount=0.9)
    again = urbe.MDP.from_sparse([stay, go], mdp.by_action(mdp.rows.expected_reward()), discount=0.9)
    assert again.rows.expected_reward().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"reward\[0, 1\] is nan, expected a finite number"):
        urbe.MDP.from_sparse([stay, go], [[1.0, np.nan], [0.0, 0.0]], discount=0.9)


def test_errors_of_a_function_name_the_call():
    def at_once(state, action):
        return [(1.0, action, 1 / (state == "a"))]

    def one_by_one(state, action):
        yield from at_once(state, action)

    for step in (at_once, one_by_one):
        with pytest.raises(ZeroDivisionError) as caught:
            urbe.MDP.from_function(["a", "b"], ["b"], step, discount=0.9)
        assert caught.value.__notes__ == ["Raised by step('b', 'b')."]


def test_missing_values_of_a_list_of_transitions():
    with pytest.raises(ValueError, match=r"reward\[1\] is missing") as caught:
        urbe.MDP.from_transitions(["a", "a"], ["x", "x"], ["b", "a"], [0.5, 0.5], [1, np.nan], discount=0.9)
    assert "missing=" not in str(caught.value)
