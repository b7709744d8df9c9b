"""Logs grow by complete lines, are read back exactly, and can be truncated."""

import csv
import hashlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urbe.runs.errors import CheckpointError
from urbe.runs.row_log import RowLog, read_rows

floats = st.floats(width=64) | st.floats(width=32)


@given(rows=st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), floats, st.booleans()), max_size=8), data=st.data())
def test_numbers_come_back_exactly(rows, data, tmp_path_factory):
    file = tmp_path_factory.mktemp("log") / "log.csv"
    cut = data.draw(st.integers(0, len(rows)))
    with RowLog(file, ["n", "x", "yes"]) as log:
        for n, x, yes in rows[:cut]:
            log.append({"yes": yes, "n": n, "x": x})
        n, x, yes = zip(*rows[cut:], strict=True) if rows[cut:] else ([], [], [])
        log.extend({"n": np.array(n, np.int64), "x": np.array(x, np.float64), "yes": np.array(yes, bool)})
        assert log.position() == file.stat().st_size
    back = read_rows(file)
    assert list(back) == ["n", "x", "yes"]
    if rows:
        assert [array.dtype for array in back.values()] == [np.int64, np.float64, np.int64]
    assert back["n"].tolist() == [n for n, _, _ in rows]
    expected = np.array([x for _, x, _ in rows], np.float64)
    assert np.array_equal(back["x"], expected, equal_nan=True)
    assert np.array_equal(np.signbit(back["x"][expected == 0]), np.signbit(expected[expected == 0]))
    assert back["yes"].tolist() == [int(yes) for _, _, yes in rows]
    with file.open(newline="") as opened:  # and any reader of CSV finds the same
        assert [float(row[1]) for row in list(csv.reader(opened))[1:]] == pytest.approx(expected.tolist(), nan_ok=True)


def test_one_by_one_or_all_at_once_is_the_same_file(tmp_path):
    x, n = np.array([0.1, np.nan, -np.inf, 1e22, 5e-324], np.float32), np.arange(5, dtype=np.uint8)
    with RowLog(tmp_path / "a.csv", ["n", "x"]) as a, RowLog(tmp_path / "b.csv", ["n", "x"]) as b:
        a.extend({"x": x, "n": n})
        for i in range(5):
            b.append({"n": n[i], "x": x[i]})
    text = (tmp_path / "a.csv").read_text()
    assert text == (tmp_path / "b.csv").read_text()
    assert text.splitlines()[:4] == ["n,x", "0,0.10000000149011612", "1,nan", "2,-inf"]
    assert read_rows(tmp_path / "a.csv")["x"].astype(np.float32).tobytes() == x.tobytes()


def test_rows_are_there_for_others_at_once(tmp_path):
    with RowLog(tmp_path / "log.csv", ["x"]) as log:
        log.append({"x": 1.5})
        assert (tmp_path / "log.csv").read_text() == "x\n1.5\n"
        log.sync()


def test_a_log_cut_back_is_the_log_it_was(tmp_path):
    file = tmp_path / "log.csv"
    with RowLog(file, ["x"]) as log:
        log.append({"x": 1})
        position, before = log.position(), file.read_bytes()
        log.append({"x": 2})
        log.truncate(position)
        assert (file.read_bytes(), log.position()) == (before, position)
        log.append({"x": 3})
        assert file.read_text() == "x\n1\n3\n"
    with RowLog(file, ["x"], position) as log:
        log.append({"x": 4})
    assert file.read_text() == "x\n1\n4\n"
    with RowLog(file, ["x"]) as log:
        assert log.position() == 2
    assert file.read_text() == "x\n"


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        (None, 9, "log.csv: is missing, expected at least 9 bytes. Put it back, or start a new run."),
        ("a,b\n1,2\n", 12, "has 8 bytes, expected at least 12: lines are lost"),
        ("", 8, "begins with b'', expected b'a,b': other columns"),
        ("a,c\n1,2\n", 8, "begins with b'a,c', expected b'a,b': other columns"),
        ("a,bc\n1,2\n", 9, "begins with b'a,bc', expected b'a,b'"),
        ("a,b\n1,2\n3,4\n", 9, "has no line that ends at byte 9"),
        ("a,b\n1,2\n", 0, "has no line that ends at byte 0"),
        ("a,b\n1,2\n", 3, "has no line that ends at byte 3"),
    ],
)
def test_logs_that_are_not_what_they_were_are_refused(text, position, message, tmp_path):
    file = tmp_path / "log.csv"
    if text is not None:
        file.write_text(text)
    with pytest.raises(CheckpointError, match=re.escape(message)):
        RowLog(file, ["a", "b"], position)
    assert (file.read_text() if file.exists() else None) == text


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "columns is empty"),
        (["a", "a"], "columns[1] is 'a' again"),
        (["a,b"], "columns[0] is 'a,b', expected a name without commas"),
        (["a", ""], "columns[1] is ''"),
        (["a\n"], "columns[0] is 'a\\n'"),
        (['"a"'], "columns[0] is"),
        ([" a"], "columns[0] is ' a'"),
    ],
)
def test_columns_that_could_not_be_read_back_are_refused(columns, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        RowLog(tmp_path / "log.csv", columns)
    assert not (tmp_path / "log.csv").exists()


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ({"a": [1]}, ValueError, "rows has the columns a, expected a, b"),
        ({}, ValueError, "rows has the columns nothing, expected a, b"),
        ({"a": [1], "b": [2], "c": [3]}, ValueError, "rows has the columns a, b, c, expected a, b"),
        ({"a": [1], "b": [1, 2]}, ValueError, "a has 1, b has 2"),
        ({"a": ["x"], "b": [1]}, TypeError, "rows['a'] has type <U1 and shape (1,), expected numbers"),
        ({"a": 1, "b": 1}, TypeError, "rows['a'] has type int64 and shape (), expected numbers"),
        ({"a": [2**64], "b": [1]}, TypeError, "rows['a'] has type object"),
        ({"a": np.array([2**63], np.uint64), "b": [1]}, ValueError, "rows['a'] holds 9223372036854775808"),
        ({"a": np.array([1], np.longdouble), "b": [1]}, TypeError, "rows['a'] has type float128"),
    ],
)
def test_rows_that_could_not_be_read_back_are_refused(rows, error, message, tmp_path):
    with RowLog(tmp_path / "log.csv", ["a", "b"]) as log:
        with pytest.raises(error, match=re.escape(message)):
            log.extend(rows)
        with pytest.raises(ValueError, match=re.escape("row['a'] has shape (2,), expected a number")):
            log.append({"a": [1, 2], "b": 0})
    assert (tmp_path / "log.csv").read_text() == "a,b\n"
    with pytest.raises(ValueError, match="is closed, expected an open log"):
        log.append({"a": 1, "b": 2})


def test_a_last_line_without_an_end_is_not_counted(tmp_path):
    (tmp_path / "log.csv").write_text("a,b\n1,2.5\n3,0.")
    back = read_rows(tmp_path / "log.csv")
    assert (back["a"].tolist(), back["b"].tolist()) == ([1], [2.5])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has no line, expected one with the names"),
        (b"a,b", "has no line, expected one with the names"),
        (b"a,,b\n", "line 1: columns[1] is ''"),
        (b"a,b\n1,2\n1\n", "line 3: found 1 fields, expected 2"),
        (b"a,b\n1,2\n\n", "line 3: found 1 fields, expected 2"),
        (b"a,b\n1,2\n1,x\n", "line 3, column b: found 'x', expected a number"),
        (b"a,b\n1,2\n1, 2\n", "line 3, column b: found ' 2', expected a number"),
        (b"a,b\n1,1_0\n", "line 2, column b: found '1_0', expected a number"),
        (b"a,b\r\n1,2\r\n", "line 1: columns[1] is 'b\\r'"),
        (b"a\n9223372036854775808\n", "column a: found integers of more than 64 bits"),
        (b"a\n\xff\n", "is not text"),
    ],
)
def test_other_files_are_refused_in_words(data, message, tmp_path):
    (tmp_path / "log.csv").write_bytes(data)
    with pytest.raises(CheckpointError, match=re.escape(message)):
        read_rows(tmp_path / "log.csv")


def test_a_missing_log_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"log.csv: is missing"):
        read_rows(tmp_path / "log.csv")
    with pytest.raises(FileNotFoundError):
        RowLog(tmp_path / "no" / "log.csv", ["a"])


# damage


ROWS = {"step": np.array([50, 100]), "loss": np.array([0.25, np.nan]), "mean": np.array([-1e-05, 3.0])}


def written(file):
    with RowLog(file, list(ROWS)) as log:
        log.extend(ROWS)
        return file.read_bytes(), log.digest()


def test_the_digest_is_that_of_the_bytes_however_they_came(tmp_path):
    data, digest = written(tmp_path / "log.csv")
    assert digest == hashlib.sha256(data).hexdigest()
    with RowLog(tmp_path / "log.csv", list(ROWS), len(data)) as log:
        assert log.digest() == digest
        log.append({"step": 1, "loss": 2, "mean": 3})
        assert log.digest() == hashlib.sha256((tmp_path / "log.csv").read_bytes()).hexdigest()
        log.truncate(len(data))
        assert log.digest() == digest


def test_every_flipped_bit_is_found_and_nothing_is_cut(memory):
    file = memory / "log.csv"
    data, digest = written(file)
    for at in range(len(data)):
        for bit in range(8):
            damaged = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :] + b"150,1.0,2.0\n"
            file.write_bytes(damaged)
            for act in (read_rows, lambda *known: RowLog(known[0], list(ROWS), *known[1:])):
                with pytest.raises(CheckpointError):
                    act(file, len(data), digest)
            assert file.read_bytes() == damaged


def test_lines_that_follow_are_no_damage_and_lost_ones_are(memory):
    file = memory / "log.csv"
    data, digest = written(file)
    file.write_bytes(data + b"150,1.0,2.0\nhalf a li")
    assert read_rows(file, len(data), digest)["step"].tolist() == [50, 100]
    RowLog(file, list(ROWS), len(data), digest).close()
    assert file.read_bytes() == data
    file.write_bytes(data[:-1])
    with pytest.raises(CheckpointError, match="lines are lost"):
        read_rows(file, len(data), digest)
