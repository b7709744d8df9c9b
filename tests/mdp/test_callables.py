"""Models from functions of state and action."""

import re

import numpy as np
import pytest

import urbe


def replay(mdp):
    """What a model does, as a function."""
    transition, reward = mdp.to_dense()

    def step(s, a):
        return [(p, t, reward[s, a]) for t, p in enumerate(transition[s, a]) if p > 0.0]

    return step


def test_a_model_asked_about_itself_is_the_same_model():
    mdp = urbe.library.garnet(30, 3, 4, seed=2, discount=0.9)
    again = urbe.MDP.from_function(range(30), range(3), replay(mdp), discount=0.9)
    assert not again.labels
    assert np.array_equal(again.rows.probability, mdp.rows.probability)
    assert np.array_equal(again.rows.successor, mdp.rows.successor)


def inventory_step(stock, order):
    level = min(stock + order, 3)
    return [(0.5, max(level - demand, 0), min(level, demand) - 0.1 * order) for demand in (0, 2)]


def test_repeated_successors_add_up_and_actions_may_depend_on_the_state():
    mdp = urbe.MDP.from_function(range(4), lambda stock: range(4 - stock), inventory_step, discount=0.9, initial=2)
    assert mdp.n_rows == 4 + 3 + 2 + 1
    assert mdp.initial.tolist() == [0, 0, 1, 0]
    # by hand: with stock 0 and no order nothing is sold and the stock stays
    row = mdp.row_of(0, 0)
    assert mdp.rows.length[row] == 1
    assert mdp.rows.expected_reward()[row] == 0.0


def test_anything_hashable_is_a_state():
    states = [("up", 1), ("down", 2), None]
    mdp = urbe.MDP.from_function(
        states, ["go"], lambda s, _: [(1.0, states[states.index(s) + 1], 1.0)], discount=1.0, terminal=[None],
        initial={("up", 1): 0.5, ("down", 2): 0.5},
    )  # fmt: skip
    assert mdp.labels.states == ("('up', 1)", "('down', 2)", "None")
    assert urbe.solve(mdp).value_at_start() == pytest.approx(1.5)


def test_an_action_that_leads_nowhere_does_not_exist():
    def step(state, action):
        return [(1.0, "b", 1.0)] if (state, action) == ("a", "x") else []

    mdp = urbe.MDP.from_function("ab", "xy", step, discount=0.9)
    assert mdp.terminal.tolist() == [False, True]
    assert mdp.n_rows == 1


@pytest.mark.parametrize(
    ("states", "step", "message"),
    [
        ([], None, "states is empty, expected each state once."),
        (["a", "a"], None, "states has 1 states twice, expected each state once."),
        (["a"], lambda *_: [(1.0, "b", 0.0)], "step('a', 'go')[0] leads to 'b', expected one of the 1 states."),
        (
            ["a"],
            lambda *_: [(1.0, "a")],
            "step('a', 'go')[0] is (1.0, 'a'), expected (probability, next_st",
        ),
        (
            ["a"],
            lambda *_: [(1.5, "a", 0.0)],
            "step('a', 'go')[0], the probability, is 1.5, expected a number",
        ),
        (["a"], lambda *_: [(1.0, "a", np.nan)], "step('a', 'go')[0], the reward, is nan, expected a finite number."),
        (["a"], lambda *_: [(0.5, "a", 0.0)], "The probabilities of state a, action go sum to 0.5, expected 1."),
        (["a"], lambda *_: [], "No state has an action that leads anywhere"),
    ],
)
def test_refusals_name_the_call(states, step, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        urbe.MDP.from_function(states, ["go"], step or (lambda *_: []), discount=0.9)
    with pytest.raises(ValueError, match=re.escape("step('a', 'go') is None, expected a list of (probability, next_")):
        urbe.MDP.from_function(["a"], ["go"], lambda *_: None, discount=0.9)
    with pytest.raises(TypeError, match=re.escape("states has [1], expected values that can be keys of a dict")):
        urbe.MDP.from_function(["a", [1]], ["go"], lambda *_: [], discount=0.9)
    with pytest.raises(TypeError, match=re.escape("step is 3, expected a function of state and action.")):
        urbe.MDP.from_function(["a"], ["go"], 3, discount=0.9)


def test_progress_is_shown(capsys):
    urbe.MDP.from_function(range(3000), [0], lambda s, _: [(1.0, s, 0.0)], discount=0.9, progress=True)
    assert "building the model: 3000 of 3000 states" in capsys.readouterr().err


def test_what_does_not_fit_is_refused_early(monkeypatch):
    asked = []
    monkeypatch.setattr("urbe.memory.available", lambda: 1_000_000)

    def step(s, _):
        asked.append(s)
        return [(0.001, t, 0.0) for t in range(1000)]

    with pytest.raises(MemoryError, match=r"a model of about 2e\+06 transitions, as the first states have them"):
        urbe.MDP.from_function(range(2000), [0], step, discount=0.9)
    assert len(asked) == 1024
