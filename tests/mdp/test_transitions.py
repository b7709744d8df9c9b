"""Logs of transitions: what they accept and store, and the message of each error."""

import re

import numpy as np
import pytest

from urbe import Transitions

GOOD = {"state": [0, 1, 2], "action": [0, 1, 0], "reward": [0.5, -1.0, 2.0], "next_state": [1, 2, 0]}
MORE = GOOD | {"terminated": [False, True, False], "episode": [0, 0, 4], "step": [0, 1, 0]}


def same(a, b):
    a, b = a.columns(), b.columns()
    return list(a) == list(b) and all(np.array_equal(a[n], b[n]) and a[n].dtype == b[n].dtype for n in a)


def test_keeps_what_it_is_given():
    log = Transitions(**MORE)
    assert {name: column.tolist() for name, column in log.columns().items()} == MORE
    assert len(log) == 3
    assert repr(log) == "Transitions(3 rows: state, action, reward, next_state, terminated, episode, step)"
    assert repr(Transitions(**GOOD)) == "Transitions(3 rows: state, action, reward, next_state)"
    assert Transitions(**GOOD).terminated is None


@pytest.mark.parametrize(
    "change",
    [
        {"state": np.array([0, 1, 2], dtype=np.uint8)},
        {"state": np.array([0.0, 1.0, 2.0], dtype=np.float32)},
        {"state": np.array([0, 1, 2], dtype=object)},
        {"state": (0, np.int64(1), 2.0)},
        {"reward": np.array([0.5, -1, 2], dtype=np.float16)},
        {"terminated": [0, 1, 0]},
        {"terminated": np.array([0.0, 1.0, 0.0])},
        {"terminated": [np.False_, np.True_, np.False_]},
        {"episode": np.array([0, 0, 4], dtype=np.uint64)},
    ],
    ids=str,
)
def test_types_do_not_matter_when_values_are_whole(change):
    assert same(Transitions(**(MORE | change)), Transitions(**MORE))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": [0, -1, 2]}, "state[1] is -1, expected at least 0 (0-based state)."),
        ({"state": [0, 1, 0.5]}, "state[2] is 0.5, expected a whole number (0-based state)."),
        ({"state": [0, None, 2]}, "state[1] is None, expected a whole number."),
        ({"state": [0, "left", 2]}, "state[1] is 'left', expected a whole number."),
        ({"state": ["0", "1", "2"]}, "state[0] is '0', expected a whole number."),
        ({"state": [0, np.nan, 2]}, "state[1] is nan, expected a whole number (0-based state)."),
        ({"state": [0, 1, 2**31]}, "state[2] is 2147483648, expected a 0-based state below 2147483647."),
        ({"state": [0, 1, 10**30]}, "state cannot be read as whole numbers"),
        ({"state": [0, [1], 2]}, "state[1] is [1], expected a whole number."),
        ({"state": [[0, 1, 2]]}, "state has shape (1, 3), expected one dimension."),
        ({"state": 3}, "state has shape (), expected one dimension."),
        ({"state": "012"}, "state[0] is '012', expected a whole number."),
        ({"state": [True, False, True]}, "state cannot be read as whole numbers: its type is bool."),
        ({"action": [0, 1]}, "The columns differ in length: state has 3, action has 2"),
        ({"action": [0, 1, 1 + 2j]}, "action[2] is (1+2j), expected a whole number."),
        ({"reward": [0, np.inf, 1]}, "reward[1] is inf, expected a finite number."),
        ({"reward": [0, "1", 1]}, "reward[1] is '1', expected a number."),
        ({"reward": [0, None, 1]}, "reward[1] is None, expected a number."),
        ({"next_state": [0, 1, -5]}, "next_state[2] is -5, expected at least 0 (0-based state)."),
        ({"terminated": [0, 1, 2]}, "terminated[2] is 2, expected true or false, or 1 or 0."),
        ({"terminated": [0, 0.5, 1]}, "terminated[1] is 0.5, expected true or false, or 1 or 0."),
        ({"terminated": [False, "yes", True]}, "terminated[1] is 'yes', expected a number."),
        ({"episode": [0, 0, -1]}, "episode[2] is -1, expected at least 0 (0-based episode)."),
        ({"step": [0.0, 0.5, 1.0]}, "step[1] is 0.5, expected a whole number (0-based step)."),
        ({name: [] for name in GOOD}, "There are no transitions; expected at least one."),
    ],
    ids=str,
)  # fmt: skip
def test_refusals_name_the_column_and_the_row(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Transitions(**(GOOD | change))


@pytest.mark.parametrize(
    "names",
    [
        ("state", "action", "reward", "next_state"),
        ("s", "a", "r", "s_next"),
        ("S", "A", "R", "s'"),
        ("idstatefrom", "idaction", "reward", "idstateto"),
        (" Obs", "action ", "Reward", "next_obs"),
    ],
)
def test_columns_are_found_by_name_or_synonym(names):
    given = dict(zip(names, GOOD.values(), strict=True)) | {"note": ["x", "y", "z"], "done": [0, 1, 0]}
    log = Transitions.from_columns(given)
    assert same(log, Transitions(**GOOD, terminated=[0, 1, 0]))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["s", "a", "r"], "found the columns s, a, r, missing next_state (or s_next, s', idstateto, next_obs"),
        ([], "found the columns none at all, missing state (or s, idstate, idstatefrom"),
        (["s", "state", "a", "r", "s_next"], "s and state both name the column state, expected one of them."),
        (["State", "state", "a", "r", "s_next"], "State and state both name the column state"),
    ],
)
def test_refuses_columns_it_cannot_tell(names, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Transitions.from_columns({name: [0] for name in names})


def test_tuples_are_rows():
    rows = list(zip(*MORE.values(), strict=True))
    assert same(Transitions.from_tuples(rows, tuple(MORE)), Transitions(**MORE))
    assert same(Transitions.from_tuples(iter(zip(*GOOD.values(), strict=True))), Transitions(**GOOD))
    with pytest.raises(ValueError, match=re.escape("Row 1 has 3 fields, expected 4: state, action, reward")):
        Transitions.from_tuples([(0, 0, 0.0, 0), (0, 0, 0.0)])
    with pytest.raises(ValueError, match="There are no transitions"):
        Transitions.from_tuples([])


def test_selects_rows():
    log = Transitions(**MORE)
    for which in (slice(1, None), [1, 2], np.array([False, True, True])):
        assert same(log.select(which), Transitions(**{name: column[1:] for name, column in MORE.items()}))


def test_inputs_are_untouched_and_not_copied_needlessly():
    state = np.array([0, 1, 2], dtype=np.int32)
    reward = np.array([0.5, -1.0, 2.0])
    log = Transitions(state, GOOD["action"], reward, GOOD["next_state"])
    assert np.shares_memory(log.state, state)
    assert np.shares_memory(log.reward, reward)
    assert state.tolist() == GOOD["state"]
