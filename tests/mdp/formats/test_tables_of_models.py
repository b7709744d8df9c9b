"""Models as tables: frames, Parquet files, and columns of any name."""

import re

import numpy as np
import pytest

import urbe
from urbe.cli.main import main

COLUMNS = {
    "state": ["new", "new", "old"],
    "action": ["use", "use", "sell"],
    "next_state": ["new", "old", "sold"],
    "probability": [0.7, 0.3, 1.0],
    "reward": [5.0, 5.0, 2.0],
}
NAMES = {"state": "from", "action": "do", "next_state": "to", "probability": "chance", "reward": "gain"}
OWN = {own: COLUMNS[name] for name, own in NAMES.items()}
OPTION = ",".join(f"{name}={own}" for name, own in NAMES.items())


def frame(kind, columns):
    if kind == "dict":
        return columns
    library = pytest.importorskip({"arrow": "pyarrow", "lazy": "polars"}.get(kind, kind))
    if kind == "arrow":
        return library.table(columns)
    made = library.DataFrame(columns)
    return made.lazy() if kind == "lazy" else made


def same(one, two):
    assert one.labels == two.labels
    for name in ("successor", "probability", "entry_start"):
        assert np.array_equal(getattr(one.rows, name), getattr(two.rows, name)), name
    assert np.array_equal(one.rows.expected_reward(), two.rows.expected_reward())
    assert np.array_equal(one.terminal, two.terminal)


MODEL = urbe.MDP.from_columns(COLUMNS, discount=0.9)


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "lazy", "arrow"])
def test_frames_are_transitions(kind):
    table = frame(kind, COLUMNS)
    same(urbe.MDP.from_transitions(table, discount=0.9), MODEL)
    first = urbe.MDP.from_transitions(table, discount=0.9, terminal=["sold"], initial="new")
    assert first.initial.tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="state is a table, which has all columns, so reward must be left out"):
        urbe.MDP.from_transitions(table, reward=1.0, discount=0.9)


def test_a_column_that_is_missing_is_named():
    with pytest.raises(ValueError, match="next_state is None, expected one value for each transition"):
        urbe.MDP.from_transitions([0], [0], discount=0.9)
    with pytest.raises(ValueError, match="reward is None, expected one value for each transition"):
        urbe.MDP.from_transitions([0], [0], [0], [1.0], discount=0.9)
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([0])
    same(
        urbe.MDP.from_transitions(series, series, series, pandas.Series([1.0]), 1.0, discount=0.9),
        urbe.MDP.from_transitions([0], [0], [0], [1.0], 1.0, discount=0.9),
    )


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "lazy", "arrow"])
def test_frames_are_logs(kind):
    columns = {"where": ["a", "b"], "action": [0, 1], "reward": [1.0, 2.0], "next_state": ["b", "a"]}
    log = urbe.read_log(frame(kind, columns), names={"state": "where"})
    assert log.labels.state_texts(log.state) == ["a", "b"]
    assert log.labels.state_texts(log.next_state) == ["b", "a"]
    with pytest.raises(TypeError, match=r"path is 3, expected the path of a file"):
        urbe.read_log(3)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_of_any_name(tmp_path, capsys, suffix):
    from urbe.tables import write_table

    pytest.importorskip("pyarrow")
    path = tmp_path / f"model.{suffix}"
    write_table(path, {name: np.array(column) for name, column in OWN.items()})
    same(urbe.read_mdp(path, discount=0.9, names=NAMES), MODEL)
    with pytest.raises(urbe.ModelFileError, match="Say which column is which, as in names="):
        urbe.read_mdp(path, discount=0.9)

    assert main(["solve", str(path), "--discount", "0.9", "--columns", OPTION, "--quiet"]) == 0
    there = tmp_path / "there.npz"
    assert main(["convert", str(path), str(there), "--discount", "0.9", "--columns", OPTION]) == 0
    same(urbe.read_mdp(there), MODEL)
    capsys.readouterr()
    assert main(["solve", str(path), "--discount", "0.9"]) == 2
    assert "Say which column is which, as in --columns state=condition,action=decision." in capsys.readouterr().err
    assert main(["solve", str(there), "--columns", OPTION]) == 2
    assert f"--columns is for CSV and Parquet files, which {there} is not" in capsys.readouterr().err


@pytest.mark.parametrize("mdp", [MODEL, urbe.library.riverswim(3, discount=0.9)], ids=["labels", "ids"])
def test_parquet_there_and_back(tmp_path, mdp):
    pytest.importorskip("pyarrow")
    urbe.write_mdp(mdp, tmp_path / "m.parquet")
    again = urbe.read_mdp(tmp_path / "m.parquet", discount=0.9)
    same(again, mdp)


def test_damaged_parquet_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "m.parquet").write_bytes(b"PAR1nonsense")
    with pytest.raises(urbe.ModelFileError, match=r"m\.parquet: is damaged or not a Parquet file"):
        urbe.read_mdp(tmp_path / "m.parquet", discount=0.9)
    urbe.tables.write_table(
        tmp_path / "n.parquet", {name: np.array(column) for name, column in (OWN | {"chance": ["1", "x", "1"]}).items()}
    )
    message = "n.parquet, column chance: row 1 is 'x', expected a number. Rows count from 0."
    with pytest.raises(urbe.ModelFileError, match=re.escape(message)):
        urbe.read_mdp(tmp_path / "n.parquet", discount=0.9, names=NAMES)
