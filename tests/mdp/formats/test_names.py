"""Names of states and actions in the formats of other tools: there and back, and a word where they are lost."""

import re
from importlib.metadata import version

import numpy as np
import pytest

import urbe
from urbe.cli.main import main
from urbe.mdp.formats import LabelsLost
from urbe.mdp.formats.names import label_of, text_of, variables_of

WORKSHOP = urbe.MDP.from_transitions(
    ["idle", "idle", "busy"], ["go", "stay", "stay"], ["busy", "idle", "idle"], [1.0] * 3, [1.0, 0.0, 2.0], discount=0.9
)
PROGRAM = """mdp
module m
  x : [0..2] init 0;
  b : bool init false;
  [go] x<2 -> 0.5 : (x'=x+1) + 0.5 : (b'=!b);
  [stay] true -> true;
endmodule
"""


@pytest.mark.parametrize("suffix", ["drn", "umb", "tra"])
@pytest.mark.parametrize(
    "states", [("busy", "idle"), ("7", "two\nlines"), (7, 2.5), ("", ' "x" '), ("x=0 & !b", "x=1 & b"), ("[a", "(b)]")]
)
def test_names_there_and_back(tmp_path, suffix, states):
    if suffix == "umb":
        pytest.importorskip("umbi")
    urbe.write_mdp(WORKSHOP.with_labels(states=states), tmp_path / f"m.{suffix}")
    again = urbe.read_mdp(tmp_path / f"m.{suffix}", discount=0.9)
    assert again.labels.states == states
    assert [type(label) for label in again.labels.states] == [type(label) for label in states]
    assert set(again.labels.actions) == {"go", "stay"}
    at = states[1]
    assert [again.row_name(k) for k in range(3)][1:] in (
        [f"state {at}, action go", f"state {at}, action stay"], [f"state {at}, action stay", f"state {at}, action go"],
    )  # fmt: skip


def test_storm_reads_files_with_names(tmp_path):
    stormpy = pytest.importorskip("stormpy")
    pytest.importorskip("umbi")
    for suffix in ("drn", "umb"):
        urbe.write_mdp(WORKSHOP, tmp_path / f"m.{suffix}")
    assert stormpy.build_model_from_drn(str(tmp_path / "m.drn")).nr_choices == 3
    assert stormpy.build_model_from_umb(str(tmp_path / "m.umb")).nr_choices == 3


def test_states_of_a_program_keep_their_names(tmp_path):
    stormpy = pytest.importorskip("stormpy")
    (tmp_path / "m.prism").write_text(PROGRAM)
    mdp = urbe.read_mdp(tmp_path / "m.prism", discount=0.9)
    assert "b & x=1" in mdp.labels.states
    for name in ("m.drn", "m.tra"):
        assert main(["convert", str(tmp_path / "m.prism"), str(tmp_path / name)]) == 0
        assert urbe.read_mdp(tmp_path / name, discount=0.9).labels == mdp.labels
    assert (tmp_path / "m.sta").read_text().startswith("(b,x)\n0:(false,0)\n")  # as PRISM writes it
    options = stormpy.BuilderOptions()
    options.set_build_state_valuations()
    built = stormpy.build_model(stormpy.parse_prism_program(str(tmp_path / "m.prism")), options=options)
    stormpy.io.export_to_drn(built, str(tmp_path / "storm.drn"))
    assert set(urbe.read_mdp(tmp_path / "storm.drn", discount=0.9).labels.states) == set(mdp.labels.states)


def test_a_model_without_names_removes_those_of_an_earlier_one(tmp_path):
    urbe.write_mdp(WORKSHOP, tmp_path / "m.tra")
    urbe.write_mdp(urbe.library.riverswim(2), tmp_path / "m.tra")
    assert not urbe.read_mdp(tmp_path / "m.tra", discount=0.9).labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n0:(1)\n", "m.sta, line 1: found 'x', expected the variables of states, as (x,y)."),
        ("(x)\n0:(1)\n5:(1)\n", "m.sta, line 3: found '5:(1)', expected a state below 2:(x)."),
        ("(x,y)\n0:(1)\n", "m.sta, line 2: found '0:(1)', expected a state below 2:(x,y)."),
        ("(x)\n0:(1)\n1:(1)\n", "m.sta, line 3: found '1:(1)', expected each state once, and names that differ."),
        ("(x)\n0:(1)\n", "m.sta: has 1 states, expected 2 as the file of transitions."),
    ],
)
def test_damaged_names_are_refused(tmp_path, text, message):
    urbe.write_mdp(WORKSHOP, tmp_path / "m.tra")
    (tmp_path / "m.sta").write_text(text)
    with pytest.raises(urbe.ModelFileError, match=re.escape(message)):
        urbe.read_mdp(tmp_path / "m.tra", discount=0.9)


@pytest.mark.parametrize(
    ("name", "actions", "lost"),
    [
        ("m.tra", ("go", "stay"), None),
        ("m.tra", ("0", "1"), None),
        ("m.tra", (10, 20), "actions"),
        ("m.tra", ("a1", "a0"), "actions"),
        ("m.tra", ("go on", "stay"), "actions"),
        ("m.drn", ("go on", "stay"), "actions"),
        ("m.drn", (10, 20), None),
        ("m.csv", ("go on", "stay"), None),
    ],
)
def test_names_that_a_format_does_not_hold_are_said_to_be_lost(tmp_path, recwarn, capsys, name, actions, lost):
    mdp = WORKSHOP.with_labels(actions=actions)
    urbe.write_mdp(mdp, tmp_path / name)
    message = f"{tmp_path / name} does not hold the names of {lost}. Write .npz or .csv to keep them."
    assert [str(each.message) for each in recwarn if each.category is LabelsLost] == [message] * (lost is not None)
    again = urbe.read_mdp(tmp_path / name, discount=0.9)
    used = set(again.labels.action_texts(again.action))
    assert used == {str(a) for a in actions} or lost
    recwarn.clear()
    urbe.write_mdp(mdp, tmp_path / "m.npz")
    assert main(["convert", str(tmp_path / "m.npz"), str(tmp_path / name)]) == 0
    assert (message in capsys.readouterr().out) == (lost is not None)
    assert not recwarn.list


def test_interval_files_of_bmdp_tool_hold_no_names(tmp_path):
    mdp = urbe.MDP.from_transitions(
        ["a", "a"], ["go", "go"], ["a", "z"], None, [0.0, 1.0], discount=1.0, terminal=["z"], lower=[0.2, 0.2],
        upper=[0.8, 0.8],
    )  # fmt: skip
    with pytest.warns(LabelsLost, match="does not hold the names of states and actions"):
        urbe.write_mdp(mdp, tmp_path / "m.bmdp")


@pytest.mark.parametrize(
    "label", ["", " a", "a\n", "7", "07", "1.5", "1e5", '"', '"7"', 7, -3, 2.5, "é", "\u2028", "nan"]
)
def test_texts_of_labels_read_back(label):
    text = text_of(label)
    assert label_of(text) == label
    assert type(label_of(text)) is type(label)
    assert not set(text) & set("\r\n")
    assert text == text.strip()


def test_single_words_are_names_and_not_variables():
    assert variables_of(["idle"]) is None
    assert variables_of(["x=1 & !b", "x=2"]) is None
    assert variables_of(["x=1 & !b", "x=2 & b"]) == (("x", "b"), [["1", "false"], ["2", "true"]])


def test_umb_files_without_initial_states_are_read_in_silence(tmp_path, caplog):
    pytest.importorskip("umbi")
    urbe.write_mdp(urbe.library.garnet(3, 2, 2, seed=0), tmp_path / "m.umb")
    assert urbe.read_mdp(tmp_path / "m.umb", discount=0.9).initial is None
    assert not caplog.records


def test_values_of_variables_in_umb_files_of_storm_are_names(tmp_path):
    stormpy = pytest.importorskip("stormpy")
    pytest.importorskip("umbi")
    if int(version("bitstring").partition(".")[0]) > 4:
        pytest.skip("umbi cannot read values of variables with bitstring 5")
    (tmp_path / "m.prism").write_text(PROGRAM)
    options = stormpy.BuilderOptions()
    options.set_build_state_valuations()
    built = stormpy.build_model(stormpy.parse_prism_program(str(tmp_path / "m.prism")), options=options)
    stormpy.io.export_to_umb(built, str(tmp_path / "m.umb"))
    assert "b & x=1" in urbe.read_mdp(tmp_path / "m.umb", discount=0.9).labels.states
    assert np.isfinite(urbe.solve(urbe.read_mdp(tmp_path / "m.umb", discount=0.9)).value).all()
