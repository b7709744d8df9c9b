"""Storm's DRN files: by hand, as Storm writes them, round trips, and errors by line."""

import re

import numpy as np
import pytest

import urbe
from urbe import ModelFileError

COINS = """
// Exported by storm
// Original model type: MDP
@type: MDP
@parameters

@reward_models
cost
@nr_states
3
@nr_choices
4
@model
state 0 [1.5] init
//[x=0]
\taction go [0.5]
\t\t1 : 0.25
\t\t2 : 0.75
\taction wait [0]
\t\t0 : 1
state 1 [0] goal "far end"
\taction go [2]
\t\t1 : 1
state 2 [0] deadlock goal
\taction stop [0]
\t\t2 : 1
"""

TINY = """@type: MDP
@value_type: double-interval
@parameters

@reward_models

@nr_states
3
@nr_choices
4
@model
state 0 init
\taction 0
\t\t1 : [0.4, 0.9]
\t\t2 : [0.5, 0.8]
\taction 1
    \t1 : [0.4, 0.9]
    \t2 : [0.5, 0.8]
state 1 target
\taction 0
\t\t1 : [1, 1]
state 2
\taction 0
\t\t2 : [1, 1]"""


@pytest.fixture
def file(tmp_path):
    def put(text):
        path = tmp_path / "model.drn"
        path.write_text(text)
        return path

    return put


def test_rewards_names_labels_and_ends(file):
    mdp = urbe.read_mdp(file(COINS), discount=0.9)
    assert mdp.labels.actions == ("go", "wait")  # nobody stops: the loop is the end
    assert mdp.terminal.tolist() == [False, False, True]
    assert mdp.initial.tolist() == [1.0, 0.0, 0.0]
    assert {name: states.tolist() for name, states in mdp.propositions.items()} == {"goal": [1, 2], "far end": [1]}
    # v(1) = 2 / 0.1 = 20, going pays 2 + 0.9 (0.25 * 20) = 6.5, waiting for ever 1.5 / 0.1 = 15
    solution = urbe.solve(mdp)
    assert solution.value == pytest.approx([15.0, 20.0, 0.0], abs=1e-5)
    assert solution.action_text(0) == "wait"


def test_intervals_as_in_the_tests_of_storm(file):
    mdp = urbe.read_mdp(file(TINY), discount=1.0 - 1e-9)
    assert not mdp.labels
    assert mdp.bounds[0].tolist() == [0.4, 0.5, 0.4, 0.5, 1.0, 1.0]
    assert mdp.propositions["target"].tolist() == [1]
    # the most that can be reached within the bounds: 1 - 0.5 = 0.5; the least: 0.4
    paid = urbe.MDP.from_transitions(
        [0, 0], [0, 0], [1, 2], None, [1.0, 0.0], discount=0.9, terminal=[1, 2], lower=mdp.bounds[0][:2],
        upper=mdp.bounds[1][:2],
    )  # fmt: skip
    assert urbe.solve(paid, urbe.Interval()).value[0] == pytest.approx(0.4)
    assert urbe.solve(paid, urbe.Optimistic(urbe.Interval())).value[0] == pytest.approx(0.5)


def test_chains_rationals_and_names_that_come_twice(file):
    text = "@type: DTMC\n@value_type: rational\n@nr_states\n2\n@model\n"
    text += "state 0\n action __NOLABEL__\n  0 : 1/3\n  1 : 2/3\n action __NOLABEL__\n  1 : 1\n"
    text += "state 1\n action 0\n  0 : 1\n"
    mdp = urbe.read_mdp(file(text), discount=0.9)
    assert mdp.action.tolist() == [0, 1, 0]
    assert mdp.rows.probability.tolist() == [1 / 3, 2 / 3, 1.0, 1.0]


@pytest.mark.parametrize("suffix", [".drn", ".tra", ".npz"])
def test_there_and_back_with_propositions(tmp_path, suffix):
    from dataclasses import replace

    mdp = urbe.MDP.from_transitions(
        [0, 0, 1, 1], [0, 3, 0, 1], [1, 2, 0, 2], [1.0, 1.0, 1.0, 1.0], [0.1, -2.5, 1 / 3, 0.0], discount=0.9,
        terminal=[2], initial=[0.5, 0.5, 0.0],
    )  # fmt: skip
    mdp = replace(mdp, propositions={"goal": np.array([1, 2]), "hot spot": np.array([0])})
    path = tmp_path / f"model{suffix}"
    urbe.write_mdp(mdp, path)
    again = urbe.read_mdp(path, discount=0.9)
    assert {name: states.tolist() for name, states in again.propositions.items()} == {"goal": [1, 2], "hot spot": [0]}
    for name in ("row_start", "action", "initial"):
        assert np.array_equal(getattr(again, name), getattr(mdp, name)), name
    for name in ("successor", "probability"):
        assert np.array_equal(getattr(again.rows, name), getattr(mdp.rows, name)), name
    assert np.array_equal(again.rows.expected_reward(), mdp.rows.expected_reward())


def test_intervals_and_names_there_and_back(tmp_path, file):
    for text in (TINY, COINS):
        mdp = urbe.read_mdp(file(text), discount=0.9)
        urbe.write_mdp(mdp, tmp_path / "again.drn")
        again = urbe.read_mdp(tmp_path / "again.drn", discount=0.9)
        assert [mdp.row_name(row) for row in range(mdp.n_rows)] == [again.row_name(row) for row in range(again.n_rows)]
        assert np.array_equal(again.rows.expected_reward(), mdp.rows.expected_reward())
        for one, two in zip(again.bounds or (), mdp.bounds or (), strict=True):
            assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@type: MDP", "@type: POMDP", "line 4: @type: found 'POMDP', expected one of MDP, DTMC."),
        (
            "@parameters\n",
            "@parameters\np q",
            "@parameters: found 'p, q', expected none: give param",
        ),
        ("cost\n", "cost time\n", "@reward_models: found cost, time; choose one, reward='cost'."),
        ("@nr_states\n3", "@nr_states\n4", "@nr_states: 3 states follow, expected as many as the header says."),
        ("@nr_states\n3", "@nr_states\nmany", "@nr_states: found 'many', expected the number of states."),
        ("@nr_choices\n4", "@nr_choices\n5", "@nr_choices: 4 actions follow, expected 5 as it says."),
        ("state 1", "state 7", "line 21: found 'state 7 [0] goal"),
        ("1 : 0.25", "1 : p", "line 17: found 'p', expected a number."),
        ("1 : 0.25", "9 : 0.25", "line 17: leads to state 9, expected one below 3."),
        ("1 : 0.25", "1 = 0.25", "line 17: found '1 = 0.25', expected successor : probability."),
        ("1 : 0.25", "1 : 0.5", "line 16: The probabilities of state 0, action go sum to 1.25, expected 1."),
        ("1 : 0.25", "1 : -0.25", "line 17: found '-0.25', expected a probability from 0 to 1."),
        ("1 : 0.25", "1 : 1/0", "line 17: found '1/0', expected a finite number."),
        ("action go [0.5]", "action go [much]", "line 16: found 'much', expected a number."),
        ("@model", "@modell", "expected a DRN file: @type, @nr_states, ..., @model."),
    ],
)
def test_refusals_name_the_line(file, old, new, message):
    assert old in COINS
    with pytest.raises(ModelFileError, match=re.escape(message)):
        urbe.read_mdp(file(COINS.replace(old, new, 1)), discount=0.9)


def test_what_the_format_cannot_hold(tmp_path):
    mdp = urbe.MDP.from_transitions([0, 0], [0, 0], [0, 1], [0.5, 0.5], [0.0, 1.0], discount=0.9, terminal=[1])
    with pytest.raises(
        ValueError, match=r"rewards depend on the successor, but a DRN file has one for each action\. Write .*umb"
    ):
        urbe.write_mdp(mdp, tmp_path / "x.drn")
    start = urbe.MDP.from_dense(np.eye(2)[:, None], 0.0, discount=0.9, initial=[0.2, 0.8])
    with pytest.raises(ValueError, match="but a DRN file can only store equal probabilities"):
        urbe.write_mdp(start, tmp_path / "x.drn")
    assert not list(tmp_path.iterdir())


def test_damaged_propositions_are_refused(tmp_path):
    import zipfile

    from urbe.mdp.formats.npz import add_array

    mdp = urbe.library.riverswim(3)
    for text, message in (("[1]", "propositions is not an object of lists"), ('{"a": [7]}', "expected a 0-based state"),
                          ("{", "propositions cannot be read")):  # fmt: skip
        path = tmp_path / "x.npz"
        urbe.write_mdp(mdp, path)
        with zipfile.ZipFile(path, "a") as archive:
            add_array(archive, "propositions", np.frombuffer(text.encode(), dtype=np.uint8))
        with pytest.raises(ModelFileError, match=re.escape(message)):
            urbe.read_mdp(path)


TWO_REWARDS = """@type: MDP
@reward_models
cost time
@nr_states
2
@model
state 0 [1, 2] init
\taction go [0.5, 10]
\t\t1 : 1
state 1 [3, 4]
\taction go
\t\t0 : 1
"""


@pytest.mark.parametrize(("reward", "expected"), [("cost", [1.5, 3.0]), ("time", [12.0, 4.0])])
def test_one_of_several_reward_models_is_chosen(tmp_path, reward, expected):
    path = tmp_path / "two.drn"
    path.write_text(TWO_REWARDS)
    assert urbe.read_mdp(path, discount=0.9, reward=reward).rows.expected_reward().tolist() == expected


def test_reward_models_that_are_missing_or_incomplete_are_refused(tmp_path):
    path = tmp_path / "two.drn"
    path.write_text(TWO_REWARDS)
    with pytest.raises(ModelFileError, match="@reward_models: found cost, time, but reward is 'energy'"):
        urbe.read_mdp(path, discount=0.9, reward="energy")
    path.write_text(TWO_REWARDS.replace("[0.5, 10]", "[0.5]"))
    with pytest.raises(ModelFileError, match=r"line 8: found '0\.5', expected 2 rewards\."):
        urbe.read_mdp(path, discount=0.9, reward="cost")
