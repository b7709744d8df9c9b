"""Policies from files: what the writers wrote, what people write by hand, and what is refused."""

import re

import numpy as np
import pytest

import urbe

NAMED = urbe.library.riverswim(3, discount=0.9).with_labels(states=["bank", "mid", "far"], actions=["rest", "swim"])
ENDING = urbe.MDP.from_columns(
    {
        "s": ["a", "a", "b"],
        "a": ["go", "stay", "go"],
        "s_next": ["b", "a", "end"],
        "p": [1.0] * 3,
        "r": [1.0, 2.0, 3.0],
    },
    discount=0.9,
)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("mdp", [NAMED, urbe.library.riverswim(3, discount=0.9), ENDING])
@pytest.mark.parametrize("kind", ["best", "random", "horizon"])
def test_what_solutions_write_is_read_back(tmp_path, mdp, kind, suffix):
    method = urbe.BackwardInduction(4) if kind == "horizon" else None
    given = urbe.solve(mdp, urbe.L1Ball(0.3), method)
    if kind == "random":
        weights = np.zeros((mdp.n_states, mdp.n_actions))
        weights[mdp.row_state, mdp.action] = 1.0 / np.diff(mdp.row_start)[mdp.row_state]
        given = urbe.evaluate_policy(mdp, weights)
    given.write(tmp_path / f"policy.{suffix}")
    found = urbe.read_policy(tmp_path / f"policy.{suffix}", mdp)
    assert isinstance(found, list) == (kind == "horizon")
    np.testing.assert_allclose(np.array(found), given.policy, atol=1e-15)
    if kind != "horizon":
        urbe.write_policy(tmp_path / "own.csv", given.policy, given.value, mdp.labels)
        np.testing.assert_allclose(urbe.read_policy(tmp_path / "own.csv", mdp), given.policy, atol=1e-15)


def test_hand_written_files(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("\ufeffState;Do;why\nfar; swim;x\nbank;rest;y\nmid;swim;z\n", encoding="utf-8")
    assert urbe.read_policy(path, NAMED, names={"action": "Do"}).tolist() == [0, 1, 1]
    path.write_text("state,action\na,go\nb,go\nend,\n")
    assert urbe.read_policy(path, ENDING).tolist() == [ENDING.labels.actions.index("go")] * 2 + [-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("state,action\nbank,swim\nmid,fly\n", "line 3, column action: found 'fly', expected an action of the model"),
        ("state,action\nshore,swim\n", "line 2, column state: found 'shore', expected a state of the model: bank"),
        ("state,action\nbank,swim\nfar,rest\n", "has no action for mid, expected one for every state."),
        ("state,action\nbank,swim\nmid,swim\nbank,rest\nfar,rest\n", "line 4, column state: gives a second action for"),
        ("state,value\nbank,3\n", "missing action (or a, idaction)"),
        ("state,action,step\nbank,swim,0\nmid,swim,2\n", "the column step has other steps than 0, 1, 2, ..."),
        ("state,action\nbank,\nmid,swim\nfar,swim\n", "line 2, column action: found '', expected an action"),
    ],
)  # fmt: skip
def test_refusals_name_the_line(tmp_path, text, said):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(urbe.ModelFileError, match=re.escape(said)):
        urbe.read_policy(path, NAMED)
