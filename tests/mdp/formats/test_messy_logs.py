"""Messy logs in files: other separators, strings, gaps, dates, decimal commas, Parquet with strings."""

import gzip
import re

import pyarrow
import pyarrow.parquet
import pytest

from fixtures.machines import NAMES, expected_transitions, messy_csv, messy_rows, named, numeric
from urbe import ModelFileError, Transitions, read_log, write_log


@pytest.fixture
def machines(tmp_path):
    path = tmp_path / "machines.csv"
    path.write_text(messy_csv())
    return path


def test_semicolons_texts_dates_and_gaps(machines):
    log = read_log(machines, names=NAMES, missing="drop")
    assert sorted(named(log)) == sorted(expected_transitions())
    assert log.labels.states == ("broken", "good", "worn")


def test_the_first_gap_is_named_by_its_line(machines):
    with pytest.raises(ModelFileError, match=re.escape("line 19, column profit: is missing, expected a value. 5")):
        read_log(machines, names=NAMES)


def test_what_is_not_found_is_asked_for(machines):
    message = "line 1: found the columns machine, date, condition, decision, profit, missing state (or s,"
    with pytest.raises(ModelFileError, match=re.escape(message)) as caught:
        read_log(machines)
    assert "names={'state': 'condition', 'action': 'decision'}" in str(caught.value)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_recognised(tmp_path, separator):
    path = tmp_path / "log.csv"
    path.write_text("# kept by hand\n\n" + "s,a,r,s_next\nup,1,2.5,down\n\ndown,0,-1,up\n".replace(",", separator))
    log = read_log(path)
    assert named(log) == [("up", "1", 2.5, "down"), ("down", "0", -1.0, "up")]
    assert log.labels.actions is None


def test_decimal_commas_quotes_and_leading_zeros(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('s;a;r;s_next\n"007";"wait; see";2,5;"010"\n"010";go;-1,25;"007"\n')
    log = read_log(path)
    assert named(log) == [("007", "wait; see", 2.5, "010"), ("010", "go", -1.25, "007")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("up,0,1,down\ndown,0,x,up\n", "line 3, column r: found 'x', expected a number."),
        ("up,0,1,down\ndown,0,up\n", "line 3: found 'down,0,up' with 3 fields, expected 4 as in the header."),
        ("up,0,1,down\n3,0,1,up\n", "line 3, column s: found 3, expected a text. Other values are texts: correct it"),
        (
            "0,0,1,1\n1,0,,0\n",
            "column r: found '', expected a number. Leave out rows that lack a value with missing=\"",
        ),
        ("0,0,1,1\n1,b,1,0\n", "column a: found 'b', expected a number. Where states and actions have names, take all"),
        ("up,0,1e999,down\n", "line 2, column r: found inf, expected a finite number."),
        ("", "has a header and no rows"),
    ],
)
def test_refusals_name_line_and_column_and_say_what_to_do(tmp_path, text, message):
    path = tmp_path / "log.csv"
    path.write_text("s,a,r,s_next\n" + text)
    with pytest.raises(ModelFileError, match=re.escape(message)):
        read_log(path)


def test_numbers_as_labels(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("s,a,r,s_next\n1,1,0,1001\n1001,2,1,1\n")
    assert read_log(path).notes[0].startswith("The smallest state is 1, and ids begin at 0")
    log = read_log(path, labels=True)
    assert (log.labels.states, log.labels.actions) == ((1, 1001), (1, 2))


def test_parquet_of_texts_and_dates(tmp_path):
    columns = numeric(messy_rows())
    path = tmp_path / "machines.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    assert sorted(named(read_log(path, names=NAMES, missing="drop"))) == sorted(expected_transitions())
    with pytest.raises(ModelFileError, match=re.escape("column profit: row 17 is missing, expected a value.")):
        read_log(path, names=NAMES)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_logs_with_labels_are_written_and_read_back(tmp_path, suffix, machines):
    log = read_log(machines, names=NAMES, missing="drop")
    write_log(tmp_path / f"log{suffix}", log)
    again = read_log(tmp_path / f"log{suffix}")
    assert named(again) == named(log)
    assert again.episode.tolist() == log.episode.tolist()
    assert again.labels == log.labels


def test_a_time_of_any_form_is_no_step(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("state,action,reward,next_state,time\n0,0,1,1,2026-01-01\n1,0,1,0,2026-01-02\n")
    assert isinstance(read_log(path), Transitions)


PLAIN = "s;a;r;s_next\nüber;los;2,5;über\nüber;los;-1,0;über\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("name", ["log.csv", "log.txt", "log.tsv.gz"])
def test_encodings_and_compression(tmp_path, name, encoding):
    content = PLAIN.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    log = read_log(tmp_path / name)
    assert named(log) == [("über", "los", 2.5, "über"), ("über", "los", -1.0, "über")]
    assert log.notes == (("The file is not in UTF-8 and was read as Windows-1252.",) if encoding == "cp1252" else ())


def test_what_is_no_text_is_refused(tmp_path):
    (tmp_path / "log.csv").write_bytes(PLAIN.encode("cp1252") + b"\x81")
    with pytest.raises(ModelFileError, match="is text neither in UTF-8 nor in Windows-1252"):
        read_log(tmp_path / "log.csv")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(PLAIN.encode())[:-9])
    with pytest.raises(ModelFileError, match="is damaged: Compressed file ended"):
        read_log(tmp_path / "log.csv.gz")


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        (("8,5", "1.250"), (8.5, 1250.0)),  # the comma is decimal, so the point is not
        (("8.5", "1,250"), (8.5, 1250.0)),
        (("1.250,75", "12.000"), (1250.75, 12000.0)),
        (("1.250.000", "0,5"), (1.25e6, 0.5)),
        (("1.250", "3.5"), (1.25, 3.5)),
        (("8.5", "9,5"), (8.5, 9.5)),
        (("1,250", "2"), (1.25, 2.0)),
    ],
)
def test_marks_in_numbers_are_what_the_column_shows(tmp_path, fields, numbers):
    path = tmp_path / "log.csv"
    path.write_text("s;a;r;s_next\n" + "".join(f"x;y;{field};x\n" for field in fields))
    assert read_log(path).reward.tolist() == list(numbers)


def test_marks_that_contradict_each_other_are_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("s;a;r;s_next\nx;y;8,5;x\nx;y;9.5;x\nx;y;1.250,5,0;x\n")
    with pytest.raises(ModelFileError, match=r"line 4, column r: found '1\.250,5,0', expected a number"):
        read_log(path)


def test_fields_in_quotes_may_hold_anything(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('s,a,r,s_next,done,remark\n0,0,1.5,1,no,"said ""so""\non two lines"\n1,0,2,0,yes,\n')
    log = read_log(path)
    assert log.reward.tolist() == [1.5, 2.0]
    assert log.terminated.tolist() == [False, True]


def test_lines_are_named_where_ids_are_wrong_or_rows_contradict(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("s;a;r;s_next\n0;0;1;1\n-999;0;1;0\n")
    with pytest.raises(ModelFileError, match=r"line 3, column s: found -999, expected .* missing_values=\[\.\.\.\]"):
        read_log(path)
    assert len(read_log(path, missing="drop", missing_values=[-999])) == 1
    path.write_text("s;a;r;time\nx;y;1;1\nx;y;2;2\nx;y;3;2\n")
    with pytest.raises(
        ModelFileError, match=r"line 4, column r: found 3 and 2 in line 3, which .* one row for each\.$"
    ):
        read_log(path)
