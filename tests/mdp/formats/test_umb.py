"""UMB files through umbi: round trips, and the error if it is not installed."""

from dataclasses import replace

import numpy as np
import pytest

import urbe

LABELLED = replace(
    urbe.MDP.from_transitions(
        ["a", "a", "b", "b"], ["x", "y", "x", "z"], ["b", "c", "a", "c"], [1.0] * 4, [0.1, -2.5, 1 / 3, 0.0],
        discount=0.9, terminal=["c"], initial={"a": 0.5, "b": 0.5},
    ),
    propositions={"goal": np.array([2])},
)  # fmt: skip
INTERVALS = urbe.MDP.from_transitions(
    [0, 0], [0, 0], [1, 2], None, [1.0, 0.0], discount=0.9, terminal=[1, 2], lower=[0.4, 0.5], upper=[0.9, 0.8]
)


@pytest.mark.parametrize(
    "mdp", [LABELLED, urbe.library.garnet(5, 2, 3, seed=0), INTERVALS], ids=["named", "ids", "box"]
)
def test_there_and_back(tmp_path, mdp):
    pytest.importorskip("umbi")
    path = tmp_path / "model.umb"
    urbe.write_mdp(mdp, path)
    again = urbe.read_mdp(path, discount=mdp.discount)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.umb"]
    assert again.labels.actions == mdp.labels.actions
    assert {name: states.tolist() for name, states in again.propositions.items()} == {
        name: states.tolist() for name, states in mdp.propositions.items()
    }
    for name in ("row_start", "action", "initial"):
        assert np.array_equal(getattr(again, name), getattr(mdp, name)), name
    for name in ("successor", "probability", "reward"):
        assert np.array_equal(getattr(again.rows, name), getattr(mdp.rows, name)), name
    for one, two in zip(again.bounds or (), mdp.bounds or (), strict=True):
        assert np.array_equal(one, two)


def test_damage_and_missing_files(tmp_path):
    pytest.importorskip("umbi")
    (tmp_path / "x.umb").write_bytes(b"nonsense")
    with pytest.raises(urbe.ModelFileError, match=r"x\.umb: is damaged or not a UMB file"):
        urbe.read_mdp(tmp_path / "x.umb", discount=0.9)
    with pytest.raises(FileNotFoundError):
        urbe.read_mdp(tmp_path / "none.umb", discount=0.9)


def test_without_umbi_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("urbe.extras.find_spec", lambda _: None)
    for call in (
        lambda: urbe.read_mdp(tmp_path / "x.umb", discount=0.9),
        lambda: urbe.write_mdp(LABELLED, tmp_path / "x.umb"),
    ):
        with pytest.raises(ModuleNotFoundError, match=r"UMB files need umbi, .*pip install \"urbe\[umb\]\""):
            call()
