"""Logs in files: by hand, round trips, damaged Parquet, and without pyarrow; `test_fuzz` damages the text."""

import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urbe import ModelFileError, Transitions, read_log, write_log

HEADER = "state,action,reward,next_state,terminated,episode,step\n"
GOOD = HEADER + "0,1,0.5,1,0,0,0\n1,0,-2,2,1,0,1\n0,0,1e3,0,0,7,0\n"
EXPECTED = {
    "state": [0, 1, 0],
    "action": [1, 0, 0],
    "reward": [0.5, -2.0, 1000.0],
    "next_state": [1, 2, 0],
    "terminated": [False, True, False],
    "episode": [0, 0, 7],
    "step": [0, 1, 0],
}


@pytest.fixture
def file(tmp_path):
    def put(text, name="log.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return put


def lists(log):
    return {name: column.tolist() for name, column in log.columns().items()}


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace(",", " ,\t"),
        GOOD.replace("\n", "\n# a remark\n\n"),
        GOOD.replace("state,action", "idstatefrom,idaction").replace("next_state", "idstateto"),
        GOOD.replace(HEADER, "S,A,R,S_next,Done,Episode,T\n"),
        GOOD.replace(HEADER, '"state","action","reward","next_state","terminated","episode","step"\n'),
        HEADER + "0,1,0.5,1,False,0,0\n1,0,-2,2,true,0,1\n0,0,1e3,0,False,7,0\n",
        HEADER + "0,1,0.5,1,false,0,0\n1,0,-2,2, TRUE ,0,1\n0,0,1e3,0,FALSE,7,0\n",
        HEADER + "0.0,1,.5,1,0.0,0,0\n1,0,-2e0,2,1.0,0,1\n0,0,1000,0,0,7,0\n",
        'note,step,episode,done,s_next,r,a,s\ntrue,0,0,False,1,0.5,1,0\n,1,0,True,2,-2,0,1\n"a, b",0,7,0,0,1000,0,0\n',
    ],
    ids=range(12),
)
def test_reads_the_ways_logs_come(file, text):
    assert lists(read_log(file(text))) == EXPECTED


def test_columns_beyond_the_four_may_be_missing(file):
    assert lists(read_log(file("s,a,r,s_next\n0,0,1,0\n"))) == {
        "state": [0], "action": [0], "reward": [1.0], "next_state": [0],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (GOOD, "", ": is empty, expected a header with state, action, reward, next_state."),
        (GOOD, HEADER, ": has a header and no rows"),
        ("reward", "pay", ", line 1: found the columns state, action, pay, next_state, terminated, episode, step, "
         "missing reward (or r). The first line must name the columns."),
        (HEADER, "", ", line 1: found the columns 0, 1, 0.5, 1, 0, 0, 0, missing state (or s,"),
        ("step\n", "step,t\n", ", line 1: step and t both name the column step"),
        ("step\n", "state\n", ", line 1: state and state both name the column state"),
        ("-2", "two", ", line 3, column reward: found 'two', expected a number."),
        ("-2", "", ", line 3, column reward: found '', expected a number."),
        ("-2", "True", ", line 3, column reward: found 'True', expected a number."),
        ("-2", "1e999", ", line 3, column reward: found inf, expected a finite number."),
        ("1,0,-2", "-1,0,-2", ", line 3, column state: found -1, expected a whole number from 0 to 2147483646."),
        ("1,0,-2", "0.5,0,-2", ", line 3, column state: found 0.5, expected a whole number from 0"),
        ("1,0,-2", "1,true,-2", ", line 3, column action: found 'true', expected a number."),
        ("2,1,0", "2,2,0", ", line 3, column terminated: found 2, expected true or false, or 1 or 0."),
        ("2,1,0", "2,over,0", ", line 3, column terminated: found 'over', expected true or false, or 1 or 0."),
        ("2,1,0", "2,Truefalse,0", ", line 3, column terminated: found 'Truefalse', expected true"),
        ("2,1,0", "2,1,1e300", ", line 3, column episode: found 1e+300, expected a whole number from 0"),
        ("2,1,0,1", "2,1,0", ", line 3: found '1,0,-2,2,1,0' with 6 fields, expected 7 as in the header."),
    ],
)  # fmt: skip
def test_refusals_name_line_and_column(file, old, new, message):
    assert GOOD.replace(old, new) != GOOD
    with pytest.raises(ModelFileError) as caught:
        read_log(file(GOOD.replace(old, new, 1)))
    assert f"log.csv{message}" in str(caught.value)


def test_a_column_keeps_the_name_it_has_in_the_file(file):
    with pytest.raises(ModelFileError, match=re.escape("line 2, column S: found 'x', expected a number.")):
        read_log(file("S,A,R,S_next\nx,0,1,0\n"))


numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def logs(draw):
    n = draw(st.integers(1, 6))
    ids = st.lists(st.integers(0, 2**31 - 2), min_size=n, max_size=n)
    columns = {name: draw(ids) for name in ("state", "action", "next_state")}
    columns["reward"] = draw(st.lists(numbers, min_size=n, max_size=n))
    for name, values in (
        ("terminated", st.booleans()),
        ("episode", st.integers(0, 2**53 - 1)),
        ("step", st.integers(0, 99)),
    ):
        if draw(st.booleans()):
            columns[name] = draw(st.lists(values, min_size=n, max_size=n))
    return Transitions(**columns)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".PQ"])
@given(log=logs())
def test_there_and_back(suffix, log):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"log{suffix}")
        write_log(path, log)
        again = read_log(path)
        assert [entry.name for entry in Path(folder).iterdir()] == [path.name]
    assert list(again.columns()) == list(log.columns())
    for name, column in log.columns().items():
        assert np.array_equal(again.columns()[name], column), name
        assert again.columns()[name].dtype == column.dtype


def test_csv_is_written_plainly(tmp_path):
    write_log(tmp_path / "log.csv", Transitions(**EXPECTED))
    written = (tmp_path / "log.csv").read_text()
    assert written == HEADER + "0,1,0.5,1,0,0,0\n1,0,-2.0,2,1,0,1\n0,0,1000.0,0,0,7,0\n"


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / name
    write_log(path, Transitions(**EXPECTED))
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_log(path, Transitions([5], [0], [0.0], [5]))
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def parquet(path, columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_with_other_names_types_and_columns(tmp_path):
    columns = {
        "note": ["a", "b", "c"],
        "S": pyarrow.array([0, 1, 0], pyarrow.uint8()),
        "a": pyarrow.array([1.0, 0.0, 0.0]),
        "r": pyarrow.array([0.5, -2.0, 1000.0], pyarrow.float32()),
        "idstateto": [1, 2, 0],
        "done": [False, True, False],
        "episode": [0, 0, 7],
        "t": pyarrow.array([0, 1, 0], pyarrow.int16()),
    }
    assert lists(read_log(parquet(tmp_path / "log.parquet", columns))) == EXPECTED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": [0, None, 1]}, ", column state: row 1 is empty, expected a value. Rows count from 0."),
        ({"state": [0, 0, -1]}, ": state[2] is -1, expected at least 0 (0-based state)."),
        ({"reward": [0.0, float("nan"), 1.0]}, ": reward[1] is nan, expected a finite number."),
        ({"reward": ["a", "b", "c"]}, ", column reward: holds values of type string, expected numbers."),
        ({"reward": [[1.0], [2.0], [3.0]]}, ", column reward: holds values of type list<"),
        ({"terminated": [0, 1, 2]}, ": terminated[2] is 2, expected true or false, or 1 or 0."),
        ({"s": [0, 0, 0]}, ": state and s both name the column state"),
        ({"state": None}, ": found the columns action, reward, next_state, terminated, episode, step, missing state"),
        ({name: pyarrow.array([], pyarrow.int64()) for name in EXPECTED}, ": There are no transitions"),
    ],
    ids=["gap", "negative", "nan", "text", "lists", "not boolean", "two names", "missing", "empty"],
)
def test_parquet_refusals_name_column_and_row(tmp_path, change, message):
    columns = {name: x for name, x in (EXPECTED | change).items() if x is not None}
    with pytest.raises(ModelFileError) as caught:
        read_log(parquet(tmp_path / "log.parquet", columns))
    assert f"log.parquet{message}" in str(caught.value)


def test_text_is_no_parquet_and_parquet_is_no_text(tmp_path, file):
    with pytest.raises(ModelFileError, match=r"log\.parquet: is damaged or not a Parquet file: "):
        read_log(file(GOOD, "log.parquet"))
    parquet(tmp_path / "x.parquet", EXPECTED)
    with pytest.raises(ModelFileError):
        read_log((tmp_path / "x.parquet").rename(tmp_path / "x.csv"))


def test_suffixes_and_missing_files(tmp_path):
    with pytest.raises(ValueError, match=r"log\.txt ends in '\.txt', expected one of \.csv, \.parquet, \.pq\."):
        write_log(tmp_path / "log.txt", Transitions(**EXPECTED))
    with pytest.raises(ValueError, match=r"log\.xlsx ends in '\.xlsx', expected .* Export the table as CSV\."):
        read_log(tmp_path / "log.xlsx")
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(FileNotFoundError):
            read_log(tmp_path / name)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for call in (
        lambda: read_log(tmp_path / "x.parquet"),
        lambda: write_log(tmp_path / "x.pq", Transitions(**EXPECTED)),
    ):
        with pytest.raises(ImportError, match=re.escape('pip install "urbe[logs]"')):
            call()
    write_log(tmp_path / "x.csv", Transitions(**EXPECTED))
    assert lists(read_log(tmp_path / "x.csv")) == EXPECTED


def read_or_refuse(path):
    try:
        return read_log(path), None
    except ModelFileError as error:
        return None, str(error)


@settings(max_examples=300)
@given(data=st.data())
def test_damaged_parquet_gives_a_log_or_a_refusal(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.parquet")
        write_log(path, Transitions(**EXPECTED))
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(bytes(content[: data.draw(st.integers(len(content) - 99, len(content)))]))
        log, refusal = read_or_refuse(path)
        if log is None:
            assert str(path) in refusal
            assert len(refusal) < 2000
        else:
            assert np.isfinite(log.reward).all()
            assert min(log.state.min(), log.action.min(), log.next_state.min()) >= 0


@pytest.mark.slow
def test_a_million_lines_read_back_as_written(tmp_path):
    n = 1_000_000
    rng = np.random.default_rng(0)
    log = Transitions(rng.integers(9, size=n), rng.integers(9, size=n), rng.normal(size=n), rng.integers(9, size=n))
    write_log(tmp_path / "log.csv", log)
    again = read_log(tmp_path / "log.csv")
    for name in ("state", "action", "reward", "next_state"):
        assert np.array_equal(getattr(again, name), getattr(log, name))
