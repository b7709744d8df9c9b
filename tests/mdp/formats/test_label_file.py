"""Labels of states are kept by every format; CSV and bmdp-tool files store them in a second file."""

from dataclasses import replace

import numpy as np
import pytest

import urbe

NUMBERED = replace(
    urbe.MDP.from_transitions(
        [0, 0, 1, 1], [0, 1, 0, 0], [1, 2, 0, 2], [1.0, 1.0, 0.5, 0.5], [0, 1.0, 0, 1.0], discount=0.9, terminal=[2]
    ),
    propositions={"goal": np.array([2]), "far from it": np.array([0, 1])},
)
NAMED = replace(
    urbe.MDP.from_transitions(
        ["z", "z", "b"], ["go", "stay", "go"], ["b", "z", "end"], [1.0] * 3, [0, 1.0, 2.0], discount=0.9,
        terminal=["end"],
    ),
    propositions={"goal": np.array([0]), "early": np.array([1])},
)  # fmt: skip


def named(mdp):
    return {name: sorted(mdp.labels.state(int(s)) for s in states) for name, states in mdp.propositions.items()}


@pytest.mark.parametrize("suffix", [".npz", ".tra", ".drn", ".umb", ".csv", ".bmdp"])
def test_ids_keep_their_labels(tmp_path, suffix):
    if suffix == ".umb":
        pytest.importorskip("umbi")
    path = tmp_path / f"model{suffix}"
    mdp = NUMBERED
    if suffix == ".drn":  # which has one reward for each action
        mdp = replace(mdp, rows=replace(mdp.rows, reward=np.ones(3)))
    urbe.write_mdp(mdp, path)
    again = urbe.read_mdp(path, discount=0.9)
    assert {name: states.tolist() for name, states in again.propositions.items()} == {
        "goal": [2], "far from it": [0, 1]
    }  # fmt: skip


def test_labels_follow_states_that_are_counted_anew(tmp_path):
    mdp = NAMED.with_labels(states=("z", "b", "end"))  # not in the order in which a file is read
    urbe.write_mdp(mdp, tmp_path / "model.csv")
    again = urbe.read_mdp(tmp_path / "model.csv", discount=0.9)
    assert again.labels.states == ("b", "end", "z")
    assert named(again) == named(mdp)


def test_a_models_labels_do_not_outlive_it_and_others_are_left_alone(tmp_path):
    urbe.write_mdp(NUMBERED, tmp_path / "model.tra")
    before = (tmp_path / "model.lab").read_bytes()
    urbe.write_mdp(NUMBERED, tmp_path / "model.csv")
    assert (tmp_path / "model.csv.lab").read_text() == '0="goal" 1="far from it"\n0: 1\n1: 1\n2: 0\n'
    assert (tmp_path / "model.lab").read_bytes() == before
    urbe.write_mdp(replace(NUMBERED, propositions={}), tmp_path / "model.csv")
    assert urbe.read_mdp(tmp_path / "model.csv", discount=0.9).propositions == {}
    (tmp_path / "model.csv.lab").write_text('0="goal"\n7: 0\n')
    with pytest.raises(urbe.ModelFileError, match=r"model\.csv\.lab, line 2: found '7: 0', expected a state below 3"):
        urbe.read_mdp(tmp_path / "model.csv", discount=0.9)


def test_names_of_actions_where_a_process_ends_are_no_actions(tmp_path):
    """Storm's loops of terminal states have names of their own; they were labels of actions that nobody has."""
    urbe.write_mdp(NAMED, tmp_path / "model.drn")
    again = urbe.read_mdp(tmp_path / "model.drn", discount=0.9)
    assert again.labels.actions == ("go", "stay")
    assert again.n_actions == 2
