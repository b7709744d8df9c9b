"""PRISM's explicit files by hand, and the message of each error."""

import re

import pytest

from fixtures.random_models import entries
from urbe.mdp.formats import ModelFileError, read_mdp, write_mdp

TRA = """# Transitions (MDP)
4 4 6
0 0 1 0.25 east
0 0 2 0.75 east
0 1 0 1 west
1 0 3 1
2 0 1 0.5 east
2 0 3 0.5 east
"""
LAB = '# Labels\n0="init" 1="deadlock" 2="goal"\n0: 0\n2: 0 2\n3: 1\n'
SREW = '# Reward structure: "r"\n# State rewards\n4 2\n0 2\n2 -1\n'
TREW = "4 4 2\n0 0 1 10\n0 1 0 0.5\n"
IMDP = """4 4 6
0 0 1 [0.2,0.6] a
0 0 2 [ 0.4 , 0.8 ] a
0 1 0 1
1 0 3 [1,1]
2 0 1 [0,0.5] b
2 0 3 [0.5,1] b
"""


@pytest.fixture
def write(tmp_path):
    def put(tra=TRA, **companions):
        (tmp_path / "m.tra").write_text(tra)
        for suffix, text in companions.items():
            (tmp_path / f"m.{suffix}").write_text(text)
        return tmp_path / "m.tra"

    return put


def read(path):
    return read_mdp(path, discount=0.9)


def test_reads_transitions_alone(write):
    mdp = read(write())
    assert {key: x[:2] for key, x in entries(mdp).items()} == {
        (0, 0, 1): (0.25, 0.0),
        (0, 0, 2): (0.75, 0.0),
        (0, 1, 0): (1.0, 0.0),
        (1, 0, 3): (1.0, 0.0),
        (2, 0, 1): (0.5, 0.0),
        (2, 0, 3): (0.5, 0.0),
    }
    assert mdp.terminal.tolist() == [False, False, False, True]
    assert mdp.initial is None
    assert mdp.bounds is None


def test_reads_rewards_and_first_states(write):
    mdp = read(write(lab=LAB, srew=SREW, trew=TREW))
    assert {key: x[1] for key, x in entries(mdp).items()} == {
        (0, 0, 1): 12.0,
        (0, 0, 2): 2.0,
        (0, 1, 0): 2.5,
        (1, 0, 3): 0.0,
        (2, 0, 1): -1.0,
        (2, 0, 3): -1.0,
    }
    assert mdp.initial.tolist() == [0.5, 0.0, 0.5, 0.0]


def test_rewards_find_their_transitions_in_any_order(write):
    comment, header, *lines = TRA.splitlines()
    mixed = "\n".join([comment, header, *lines[::-1]])
    assert entries(read(write(mixed, srew=SREW, trew=TREW))) == entries(read(write(srew=SREW, trew=TREW)))


def test_labels_without_a_start_say_nothing(write):
    assert read(write(lab='1="deadlock"\n3: 1\n')).initial is None


def test_reads_intervals_and_plain_numbers_among_them(write):
    mdp = read(write(IMDP))
    assert entries(mdp) == {
        (0, 0, 1): (pytest.approx(0.4), 0.0, 0.2, 0.6),
        (0, 0, 2): (pytest.approx(0.6), 0.0, 0.4, 0.8),
        (0, 1, 0): (1.0, 0.0, 1.0, 1.0),
        (1, 0, 3): (1.0, 0.0, 1.0, 1.0),
        (2, 0, 1): (0.25, 0.0, 0.0, 0.5),
        (2, 0, 3): (0.75, 0.0, 0.5, 1.0),
    }


def test_reads_chains_as_one_action(write):
    chain = "3 3\n0 1 0.5\n0 2 0.5 go\n1 0 1\n"
    mdp = read(write(chain, trew="3 1\n0 2 7\n", srew="3 1\n1 3\n"))
    assert {key: x[:2] for key, x in entries(mdp).items()} == {
        (0, 0, 1): (0.5, 0.0),
        (0, 0, 2): (0.5, 7.0),
        (1, 0, 0): (1.0, 3.0),
    }
    assert mdp.terminal.tolist() == [False, False, True]
    assert read(write("2 2\n0 1 [0.5,1]\n0 0 [0,1]\n", trew="2 0\n", srew="2 0\n")).bounds[0].tolist() == [0.0, 0.5]


@pytest.mark.parametrize(
    ("rows", "actions"),
    [
        ("0 0 0 1 a7\n0 1 0 1 a3\n", [3, 7]),  # our own names
        ("0 0 0 1 a7\n0 1 0 1 a7\n", [0, 1]),  # one name for two choices
        ("0 0 0 1 a7\n0 1 0 1 go\n", [0, 1]),  # a name of somebody else
        ("0 0 0 1 a7\n0 1 0 1\n", [0, 1]),
    ],
)
def test_names_are_actions_only_where_they_tell_choices_apart(write, rows, actions):
    assert read(write(f"1 2 2\n{rows}")).action.tolist() == actions


# What IntervalMDP.jl writes: the name is a number, in recent versions the choice's position in the file, from 1.
JULIA = """2 3 5
0 0 0 [0.4,0.6] {}
0 0 1 [0.3,0.7] {}
0 1 1 [1.0,1.0] {}
1 0 0 [1.0e-12,0.5] {}
1 0 1 [0.5,1.0] {}
"""


@pytest.mark.parametrize("names", ["11233", "00100", "22122", "11111", ("go", "2", "(1,2)", "0.5", "[x]")])
def test_names_may_be_numbers_and_any_other_word(write, names):
    mdp = read(write(JULIA.format(*names)))
    assert entries(mdp) == {
        (0, 0, 0): (pytest.approx(0.5), 0.0, 0.4, 0.6),
        (0, 0, 1): (pytest.approx(0.5), 0.0, 0.3, 0.7),
        (0, 1, 1): (1.0, 0.0, 1.0, 1.0),
        (1, 0, 0): (pytest.approx(0.25), 0.0, 1e-12, 0.5),
        (1, 0, 1): (pytest.approx(0.75), 0.0, 0.5, 1.0),
    }


def test_named_files_read_back_as_written(write, tmp_path):
    mdp = read(write(JULIA.format(*"11233")))
    write_mdp(mdp, tmp_path / "again.tra")
    assert entries(read(tmp_path / "again.tra")) == entries(mdp)


def test_numbers_after_probabilities_are_names_too(write):
    """The header, not the number of columns, says whether the first column after the state is a choice."""
    mdp = read(write("2 2 3\n0 0 0 0.5 1\n0 0 1 0.5 1\n1 0 0 1 2\n"))
    assert {key: x[0] for key, x in entries(mdp).items()} == {(0, 0, 0): 0.5, (0, 0, 1): 0.5, (1, 0, 0): 1.0}
    chain = read(write("2 3\n0 0 0.5 7\n0 1 0.5 7\n1 0 1 8\n"))
    assert {key: x[0] for key, x in entries(chain).items()} == {(0, 0, 0): 0.5, (0, 0, 1): 0.5, (1, 0, 0): 1.0}


def test_names_that_change_within_a_choice_are_no_actions(write):
    assert read(write("2 2 3\n0 0 0 0.5 a7\n0 0 1 0.5 a8\n1 0 0 1 a1\n")).action.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (TRA, "", ": found an empty file, expected a header of whole numbers: states choices transitions."),
        ("4 4 6", "4 4 6 1", ", line 2: found '4 4 6 1', expected a header of whole numbers"),
        ("4 4 6", "4 x 6", ", line 2: found '4 x 6', expected a header of whole numbers"),
        ("4 4 6", "4 4 7", ", line 2: has 6 transitions, expected 7 as its header says."),
        ("4 4 6", "4 5 6", ", line 2: has 4 choices, expected 5 as its header says."),
        ("4 4 6", "1000000000000000 4 6", ", line 2: found 1000000000000000 states for 6 transitions, expected from 1"),
        ("4 4 6", "1100000 4 6", ", line 2: found 1100000 states for 6 transitions, expected from 1 to 1000012."),
        ("4 4 6", "0 4 6", ", line 2: found 0 states"),
        ("4 4 6", "3 4 6", ", line 6, column successor: found 3, expected a whole number from 0 to 2."),
        ("0 0 2 0.75 east", "0 0 2 three east", ", line 4, column probability: found 'three', expected a number."),
        ("0 0 2 0.75 east", "0 0 x 0.75 east", ", line 4, column successor: found 'x', expected a number."),
        (
            "0 0 2 0.75 east",
            "0 0 2",
            ", line 4: found '0 0 2', expected state choice successor probability, and perhap",
        ),
        ("0 0 2 0.75 east", "0 0 2 0.75 0 8", ", line 4: found '0 0 2 0.75 0 8', expected state choice successor"),
        ("0 0 2 0.75 east", "0 0 2 0.75 east west", ", line 4: found '0 0 2 0.75 east west', expected state choice"),
        (
            "0 0 2 0.75 east",
            "0 0 1 0.75 east",
            ", line 4: lists the transition from state 0, choice 0 to state 1 again",
        ),
        ("0 0 2 0.75", "0 0 2 0.5", ", line 3: The probabilities of state 0, action 0 sum to 0.75, expected 1."),
        ("0 0 2 0.75", "0 0 2 nan", ", line 4, column probability: found 'nan', expected a number."),
        (
            "0 0 2 0.75",
            "0 0 2 ]0.5,1[",
            r", line 4: found '0 0 2 \]0.5,1\[ east', expected state choice successor \[low",
        ),
    ],
)
def test_refuses_naming_the_line(write, old, new, message):
    assert old in TRA
    path = write(TRA.replace(old, new))
    with pytest.raises(ModelFileError) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert re.search(message, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[0.2,0.6]", "[0.7,0.6]", r"line 2: The interval from state 0, action 0 to state 1 is \[0.7, 0.6\], expected"),
        ("[0.2,0.6]", "[0.2,1.6]", r"line 2: The interval from state 0, action 0 to state 1 is \[0.2, 1.6\], expected"),
        ("[0.2,0.6]", "[0.7,0.8]", "line 2: The intervals of state 0, action 0 hold no distribution: the lower .* 1.1"),
        ("[0.2,0.6]", "[0.2;0.6]", "line 2: found '0 0 1 .0.2;0.6. a', expected state choice successor .lower,upper."),
        ("[0.2,0.6]", "[0.2,nan]", "line 2: found '0 0 1 .0.2,nan. a', expected state choice successor .lower,upper."),
        ("[0.2,0.6]", "[0.2,1e999]", "line 2, column upper: found inf, expected a finite number."),
        ("0 1 0 1\n", "0 1 0 0.9\n", r"line 4: The intervals of state 0, action 1 hold no distribution"),
    ],
)
def test_refuses_bad_intervals_naming_the_line(write, old, new, message):
    assert old in IMDP
    with pytest.raises(ModelFileError, match=message):
        read(write(IMDP.replace(old, new)))


@pytest.mark.parametrize(
    ("suffix", "text", "message"),
    [
        ("lab", "", "m.lab: found an empty file, expected the labels' names"),
        ("lab", "0=init\n", "m.lab, line 1: found '0=init', expected the labels' names"),
        ("lab", LAB.replace("2: 0 2", "4: 0 2"), "m.lab, line 4: found '4: 0 2', expected a state below 4: its labels"),
        ("lab", LAB.replace("2: 0 2", "2; 0 2"), "m.lab, line 4: found '2; 0 2', expected a state below 4: its labels"),
        (
            "lab",
            LAB.replace("2: 0 2", "2: 0 3"),
            "m.lab, line 4: found the label 3, which the first line does not name",
        ),
        ("srew", "4 1\n0 2\n2 -1\n", "m.srew, line 1: its header is 4 1, expected 4 2 .states rewards. for this model"),
        ("srew", "5 1\n0 2\n", "m.srew, line 1: its header is 5 1, expected 4 1 "),
        ("srew", "4 1 1\n0 2\n", "m.srew, line 1: found '4 1 1', expected a header of whole numbers: states rewards"),
        ("srew", "4 1\n0\n", "m.srew, line 2: found '0' with 1 fields, expected state reward"),
        ("srew", "4 1\n0 x\n", "m.srew, line 2, column reward: found 'x', expected a number"),
        ("srew", "4 1\n4 1\n", "m.srew, line 2, column state: found 4, expected a whole number from 0 to 3"),
        ("srew", "4 2\n0 1\n0 1\n", "m.srew, line 3: repeats an earlier line"),
        ("srew", "4 1\n3 1\n", "m.srew, line 2: pays 1 in state 3, which has no choices and so ends the process"),
        (
            "trew",
            "4 4 1\n0 0 0 1\n",
            "m.trew, line 2: pays for a move from state 0, choice 0 to state 0 that m.tra does",
        ),
        (
            "trew",
            "4 4 1\n0 7 0 1\n",
            "m.trew, line 2: pays for a move from state 0, choice 7 to state 0 that m.tra does",
        ),
        (
            "trew",
            "4 4 1\n3 0 0 1\n",
            "m.trew, line 2: pays for a move from state 3, choice 0 to state 0 that m.tra does",
        ),
        ("trew", "4 4 2\n0 0 1 1\n0 0 1 1\n", "m.trew, line 3: repeats an earlier line"),
        ("trew", "4 3 1\n0 0 1 1\n", "m.trew, line 1: its header is 4 3 1, expected 4 4 1 .states choices rewards."),
        ("trew", "4 1\n0 0 1 1\n", "m.trew, line 1: found '4 1', expected a header of whole numbers: states choices"),
    ],
)
def test_refuses_bad_companions_naming_the_line(write, suffix, text, message):
    with pytest.raises(ModelFileError, match=message):
        read(write(**{suffix: text}))


def test_a_zero_reward_at_the_end_is_no_harm(write):
    assert read(write(srew="4 1\n3 0\n")).terminal.tolist() == [False, False, False, True]
