"""Messy logs in files: other separators, strings, gaps, dates, decimal commas, Parquet with strings."""

import gzip
import re

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from fixtures.machines import NAMES, expected_transitions, messy_csv, messy_rows, named, numeric
from urbe import ModelFileError, Transitions, read_log, read_mdp, write_log


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
        ("0,0,1,1\n1,b,1,0\n", "column a: found 'b', expected a number. If states and actions have names, take all"),
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
        ModelFileError, match=r"line 4, column r: found 3 and 2 in line 3, which .* one row for each\. If time begins"
    ):
        read_log(path)


def test_a_number_that_may_be_above_a_thousand_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("s;a;r;s_next\nx;y;8,5;x\nx;y;9.75;x\nx;y;1.250;x\n")
    with pytest.raises(ModelFileError, match=r"line 4, column r: found '1\.250', which may be 1250 or 1\.25: other"):
        read_log(path)
    path.write_text("s;a;r;s_next\nx;y;8,5;x\nx;y;9.75;x\nx;y;1.250,75;x\n")
    assert read_log(path).reward.tolist() == [8.5, 9.75, 1250.75]
    path.write_text("s;a;r;s_next\nx;y;1.250;x\nx;y;980;x\n")
    log = read_log(path)
    assert log.reward.tolist() == [1.25, 980.0]
    assert log.notes == (
        "1.250 in the column r was read with a decimal point. If it is 1250, remove the points.",
    )  # fmt: skip


@pytest.mark.parametrize("field", ["8,4", "1,250"])
def test_a_decimal_comma_between_commas_is_refused_with_advice(tmp_path, field):
    path = tmp_path / "log.csv"
    path.write_text(f's,a,r,s_next\nx,y,"{field}",x\n')
    advice = f"found '{field}', expected a number. Write numbers with a decimal point and no other mark: 8.4 for 8,4"
    with pytest.raises(ModelFileError, match=re.escape(advice)):
        read_log(path)


@pytest.mark.parametrize("row", ["0,0,2,1", "x,0,2,y"])
def test_rows_that_begin_with_a_comment_mark_are_counted(tmp_path, row):
    path = tmp_path / "log.csv"
    path.write_text(f"# kept by hand\ns,a,r,s_next\n{row}\n#{row}\n{row}\n#{row}\n")
    log = read_log(path)
    assert len(log) == 2
    assert any(
        note.startswith("Skipped as comments, because they begin with #: 2 lines, from line 4") for note in log.notes
    )


@pytest.mark.parametrize("header", ["s;a;r;s_next;;", "sep=;\ns;a;r;s_next", "s;a;r;s_next;remark;remark"])
@pytest.mark.parametrize("below", ["", ";;;;;\n;;;;;\n"])
def test_what_spreadsheets_add_is_ignored(tmp_path, header, below):
    path = tmp_path / "log.csv"
    path.write_bytes(f"\ufeff{header}\nx;y;1,5;x;;\nx;y;2;x;;\n{below}".replace("\n", "\r\n").encode())
    assert read_log(path).reward.tolist() == [1.5, 2.0]


def test_separators_at_the_end_of_lines_of_numbers(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("s,a,r,s_next\n0,0,1,1,\n1,0,2,0,\n")
    assert read_log(path).reward.tolist() == [1.0, 2.0]
    path.write_text("s,a,r,s_next\n0,0,1,1,7\n1,0,2,0,\n")
    with pytest.raises(ModelFileError, match="line 2: found '0,0,1,1,7' with 5 fields, expected 4"):
        read_log(path)


def test_a_name_that_is_used_must_be_unique(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("where,a,r,s_next,where\nx,y,1,x,z\n")
    with pytest.raises(ModelFileError, match=r"log\.csv: the header names 'where' twice, expected it once\.$"):
        read_log(path, names={"state": "where"})


@pytest.mark.parametrize("places", [("1.1", "1.10"), ("1E1", "10"), ("9007199254740992", "9007199254740993")])
def test_names_that_are_equal_as_numbers_are_different_labels(tmp_path, places):
    path = tmp_path / "log.csv"
    one, two = places
    path.write_text(f"s,a,r,s_next\n{one},1.0,1,{two}\n{two},1,2,{one}\n")
    log = read_log(path, labels=True)
    assert sorted(map(str, log.labels.states)) == sorted(places)
    assert log.labels.actions == (1,)
    path = tmp_path / "model.csv"
    path.write_text(f"state,action,next_state,probability,reward\n{one},go,{two},1,1\n{two},go,{one},1,2\n")
    assert read_mdp(path, discount=0.9, labels=True).n_states == 2


def test_numbers_too_large_for_ids_may_be_labels(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("s,a,r,s_next\n4006381333931,x,1,4006381333948\n4006381333948,x,2,4006381333931\n")
    with pytest.raises(ModelFileError, match=r"line 2, column s: found 4006381333931, expected an id .* labels=True"):
        read_log(path)


TIMED = "s;a;r;time\n"


@pytest.mark.parametrize(
    "times",
    [
        ("2026-03-29 01:30:00 UTC", "2026-03-29 00:30:00 UTC"),
        ("2026-03-29 01:30:00,250", "2026-03-29 01:30:00,100"),
        ("2026-10-25T02:15:00+01:00", "2026-10-25T02:45:00+02:00"),
    ],
)
def test_time_stamps_of_machines(tmp_path, times):
    path = tmp_path / "log.csv"
    path.write_text(f"{TIMED}late;x;1;{times[0]}\nearly;x;2;{times[1]}\n")
    assert named(read_log(path)) == [("early", "x", 2.0, "late")]


def test_times_with_and_without_a_zone_cannot_be_ordered(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(f"{TIMED}u;x;1;2026-03-29T01:30:00+01:00\nv;x;2;2026-03-29T00:45:00\n")
    with pytest.raises(
        ModelFileError, match="line 3, column time: found '2026-03-29T00:45:00', which has no time zone"
    ):
        read_log(path)
    path.write_text(f"{TIMED}u;x;1;2026-03-29 01:30:00 CET\nv;x;2;2026-03-29 00:45:00 CET\n")
    with pytest.raises(ModelFileError, match="line 2, column time: found '2026-03-29 01:30:00 CET', expected a number"):
        read_log(path)


def test_durations_are_no_rewards():
    with pytest.raises(ValueError, match=r"r\[0\] is .*, expected a number"):
        Transitions.from_columns({"s": [0], "a": [0], "r": np.array([3600], "m8[s]"), "s_next": [0]})


def test_a_log_without_order_is_told_how_to_be_ordered(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("s,a,r\nx,y,1\nx,y,2\n")
    with pytest.raises(
        ModelFileError, match="Or a column episode, step or time: then the next state is that of the foll"
    ):
        read_log(path)
