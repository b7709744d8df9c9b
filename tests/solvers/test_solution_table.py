"""Solutions and variances as tables, files, frames and text."""

import csv
import sys

import numpy as np
import pyarrow.parquet
import pytest

import urbe

RIVER = urbe.library.riverswim(4, discount=0.9).with_labels(
    states=["bank", "shoal", "deep", "far"], actions=["left", "right"]
)


def test_a_row_for_each_state_by_label():
    solution = urbe.solve(RIVER, urbe.L1Ball(0.1))
    table = solution.table()
    assert list(table) == ["state", "action", "value", "lower", "upper"]
    assert table["state"].tolist() == ["bank", "shoal", "deep", "far"]
    assert table["action"].tolist() == [RIVER.labels.action(a) for a in solution.policy]
    for name in ("value", "lower", "upper"):
        assert np.array_equal(table[name], getattr(solution, name))


def test_ids_where_there_are_no_labels_and_minus_one_where_terminal():
    mdp = urbe.MDP.from_transitions([0], [3], [1], [1.0], 5.0, discount=0.9, terminal=[1])
    table = urbe.solve(mdp).table()
    assert table["state"].tolist() == [0, 1]
    assert table["action"].tolist() == [3, -1]
    labelled = urbe.MDP.from_transitions(["a"], ["x"], ["b"], [1.0], 5.0, discount=0.9, terminal=["b"])
    assert urbe.solve(labelled).table()["action"].tolist() == ["x", "end"]


def test_mixtures_have_a_row_for_each_action_and_add_up():
    transition = np.array([[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], [[0, 1, 0], [0, 1, 0]], [[0, 0, 1], [0, 0, 1]]], float)
    mdp = urbe.MDP.from_dense(transition, [[0, 0], [1, 1], [1.2, 1.2]], discount=0.9, terminal=[])
    solution = urbe.solve(mdp, urbe.SRectangular(urbe.L1Ball(0.5)))
    table = solution.table()
    total = np.bincount(table["state"], table["probability"])
    assert total == pytest.approx(np.ones(3))
    for s, a, p in zip(table["state"], table["action"], table["probability"], strict=True):
        assert solution.policy[s, a] == p
    ends = urbe.MDP.from_dense(transition, [[0, 0], [1, 1], [1.2, 1.2]], discount=0.9, terminal=[2])
    table = urbe.solve(ends, urbe.SRectangular(urbe.L1Ball(0.5))).table()
    assert (table["state"][-1], table["action"][-1], table["probability"][-1]) == (2, -1, 1.0)


def test_a_horizon_has_rows_for_each_step():
    solution = urbe.solve(RIVER, urbe.L1Ball(0.1), urbe.BackwardInduction(3))
    table = solution.table()
    assert table["step"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert np.array_equal(table["value"], solution.value[:3].ravel())


def test_variances_have_a_row_for_each_pair():
    posterior = urbe.Posterior.before(RIVER, concentration=5.0)
    found = urbe.value_variance(posterior, urbe.L1Ball(0.1))
    table = found.table()
    assert table["state"].tolist() == ["bank", "bank", "shoal", "shoal", "deep", "deep", "far", "far"]
    assert np.array_equal(table["deviation"], found.deviation)
    assert str(found).splitlines()[2].split()[:2] == ["bank", "left"]
    steps = urbe.value_variance(posterior, urbe.L1Ball(0.1), horizon=2).table()
    assert steps["step"].tolist() == [0] * 8 + [1] * 8


def test_tables_are_written(tmp_path):
    solution = urbe.solve(RIVER)
    solution.write(tmp_path / "x.csv")
    rows = list(csv.DictReader((tmp_path / "x.csv").read_text().splitlines()))
    assert [row["state"] for row in rows] == ["bank", "shoal", "deep", "far"]
    assert [float(row["value"]) for row in rows] == solution.value.tolist()
    solution.write(tmp_path / "x.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "x.parquet").column("upper").to_pylist() == solution.upper.tolist()
    with pytest.raises(ValueError, match=r"x\.txt ends in '\.txt', expected one of \.csv, \.parquet, \.pq"):
        solution.write(tmp_path / "x.txt")


def test_frames_need_pandas_and_say_so(monkeypatch):
    class Frames:
        DataFrame = dict

    solution = urbe.solve(RIVER)
    monkeypatch.setattr("urbe.extras.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"Data frames need pandas, .*pip install \"urbe\[frames\]\""):
        solution.to_frame()
    with pytest.raises(ModuleNotFoundError, match=r"Figures need matplotlib, .*pip install \"urbe\[plots\]\""):
        solution.plot()
    monkeypatch.setattr("urbe.extras.find_spec", lambda _: object())
    monkeypatch.setitem(sys.modules, "pandas", Frames)
    assert solution.to_frame()["action"].tolist() == solution.table()["action"].tolist()


def test_frames_are_those_of_pandas():
    pytest.importorskip("pandas")
    frame = urbe.solve(RIVER).to_frame()
    assert frame.shape == (4, 5)
    assert frame.set_index("state").loc["far", "action"] == "right"
