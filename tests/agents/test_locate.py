"""Locating transitions in a model, against a dictionary of its entries; every error and its message."""

import numpy as np
import pytest

import urbe
from fixtures.agents import steps
from fixtures.random_models import entries
from oracles.plans import random_model
from urbe.agents.locate import Locator


@pytest.mark.parametrize("seed", range(5))
def test_every_entry_is_found(seed):
    model = random_model(np.random.default_rng(seed), states=7)
    keys = list(entries(model))
    order = np.random.default_rng(seed).permutation(len(keys))
    state, action, successor = np.array(keys)[order].T
    given = steps(state, action, np.zeros(len(keys)), successor)
    row, entry = Locator(model)(given)
    assert entry.tolist() == order.tolist()
    assert np.array_equal(row, model.rows.entry_row[entry])
    assert np.array_equal(Locator(model).rows(given), row)


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        ((0, 0, 3), ValueError, r"state 0, action 0 led to state 3, .* it lists the successors \[1\]"),
        ((0, 7, 1), KeyError, "State 0 has no action 7; it has"),
        ((5, 0, 1), KeyError, "State 5 has no action 0"),
        ((17, 0, 1), KeyError, "There is no state 17"),
        ((-1, 0, 1), KeyError, "There is no state -1"),
        ((0, 0, 99), ValueError, "led to state 99"),
        ((0, 0, -1), ValueError, "led to state -1"),
    ],
)
def test_refusals_name_the_first_step_that_is_wrong(step, error, message):
    model = urbe.MDP.from_transitions(
        [0, 1], [0, 0], [1, 5], [1.0, 1.0], 0.0, discount=1.0, n_states=6, terminal=[2, 3, 4, 5]
    )
    state, action, successor = np.array([(0, 0, 1), step, (0, 9, 9)]).T
    with pytest.raises(error, match=message):
        Locator(model)(steps(state, action, np.zeros(3), successor))


def test_rows_alone_do_not_ask_where_they_led():
    model = random_model(np.random.default_rng(0))
    assert Locator(model).rows(steps(0, 0, 0.0, 999)).tolist() == [0]
    with pytest.raises(KeyError, match="State 0 has no action 9"):
        Locator(model).rows(steps(0, 9, 0.0, 0))


def test_no_steps_at_all():
    row, entry = Locator(random_model(np.random.default_rng(0)))(steps([], [], [], []))
    assert len(row) == len(entry) == 0
