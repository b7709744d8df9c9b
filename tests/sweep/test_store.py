"""Finished cells on disk are complete and correct, or absent."""

import json
import math
import re
import struct
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

from urbe.paper.chapter import Chapter, check_chapters, everywhere
from urbe.runs.tensors import load_tensors, save_tensors
from urbe.sweep.cells import Code, columns, directory, identity, job_from_json, jobs
from urbe.sweep.store import CellRecord, Stored, load, load_record, save


@dataclass(frozen=True)
class Dot:
    radius: float
    name: str = "dot"


class Row(NamedTuple):
    agent: str
    step: int
    value: float


ROWS = [
    Row("psrl", 0, 0.1 + 0.2),
    Row("ube", 2**63 - 1, -1e-300),
    Row("psrl", -(2**63), math.inf),
    Row('é, "quoted"\n', 1, -0.0),
    Row("", 2, 5e-324),
]


def experiment(name="f", row=Row):
    return Chapter(name, "Title", everywhere(()), row, __name__, lambda _: [])


def record(**changes):
    expected = {
        "experiment": "f", "cell": "dot", "config": {"radius": 0.1}, "identity": "id", "code": "c", "commit": None,
        "versions": {"numpy": "2"}, "machine": {"cores": "1"}, "finished": "2026-01-31T12:00:00+00:00", "seconds": 1.5,
    }  # fmt: skip
    return CellRecord(**{**expected, **changes})


STORED = Stored(ROWS, record())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "f" / "rows.safetensors"


def test_what_was_saved_is_loaded_to_the_last_bit(path):
    save(path, Row, STORED)
    found = load(path, Row, "id")
    assert found == STORED
    assert all(type(row) is Row for row in found.rows)
    assert [[type(value) for value in row] for row in found.rows] == [[str, int, float]] * len(ROWS)
    assert math.copysign(1.0, found.rows[3].value) == -1.0


def test_nan_keeps_its_bits(path):
    odd = struct.unpack("<d", bytes([1, 2, 3, 0, 0, 0, 0xF8, 0xFF]))[0]
    save(path, Row, Stored([Row("a", 0, odd)], record()))
    assert struct.pack("<d", load(path, Row, "id").rows[0].value) == struct.pack("<d", odd)


def test_no_rows_are_rows_too(path):
    save(path, Row, Stored([], record()))
    assert load(path, Row, "id") == Stored([], record())


def test_numbers_of_numpy_become_plain(path):
    save(path, Row, Stored([Row(np.str_("a"), np.int64(3), np.float64(0.5)), Row("b", 1, 2)], record()))
    rows = load(path, Row, "id").rows
    assert rows == [Row("a", 3, 0.5), Row("b", 1, 2.0)]
    assert [type(value) for row in rows for value in row] == [str, int, float] * 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (Row("a", 1.0, 2.0), r"step of row 1 is 1.0 of type float, expected int"),
        (Row("a", True, 2.0), "bool"),
        (Row(3, 1, 2.0), "agent of row 1 is 3"),
        (Row("a", 1, "2"), "expected float"),
        (Row("a", 1, None), "NoneType"),
        (Row("a", 1, np.zeros(2)), "ndarray"),
    ],
)
def test_values_of_the_wrong_type_are_named_and_not_written(path, row, message):
    with pytest.raises(TypeError, match=message):
        save(path, Row, Stored([ROWS[0], row], record()))
    assert not path.exists()


def test_whole_numbers_beyond_64_bits_are_refused(path):
    with pytest.raises(ValueError, match="64 bits"):
        save(path, Row, Stored([Row("a", 2**63, 0.0)], record()))


def test_many_rows_are_compact(path):
    rows = [Row("psrl" if i % 2 else "ube", i, 0.25) for i in range(200_000)]
    save(path, Row, Stored(rows, record()))
    assert path.stat().st_size < 14 * len(rows)  # a float, a step of 32 bits, a word of 8
    assert load(path, Row, "id").rows == rows


def test_missing_is_none(path):
    assert load(path, Row, "id") is None


def test_another_identity_is_none(path):
    save(path, Row, STORED)
    assert load(path, Row, "other") is None


def _flip(at):
    def damage(raw):
        i = int(at * len(raw))
        return raw[:i] + bytes([raw[i] ^ 0x10]) + raw[i + 1 :]

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda _: b"null",
        lambda _: b"PK\x05\x06" + bytes(18),
        lambda raw: b"\xff\xfe" + raw[2:],
        lambda raw: raw[: len(raw) // 2],
        *map(_flip, (0.05, 0.1, 0.3, 0.4, 0.9)),
    ],
)
def test_damage_is_none(path, damage):
    save(path, Row, STORED)
    raw = path.read_bytes()
    path.write_bytes(damage(raw))
    assert path.read_bytes() != raw
    assert load(path, Row, "id") is None


def _rewrite(path, **changes):
    """The same with other columns or words, and hashes that fit."""
    arrays, about = load_tensors(path)
    expected = {**about, "words": changes.pop("words", about["words"])}
    save_tensors(path, {name: array for name, array in (arrays | changes).items() if array is not None}, expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"value": None},
        {"value": np.zeros(5, np.int64)},
        {"step": np.zeros(4, dtype=np.int64)},
        {"step": np.zeros(5)},
        {"agent": np.array([0, 1, 2, 3, 99], dtype=np.int32)},
        {"words": {}},
        {"words": 3},
        {"surplus": np.zeros(1)},
    ],
)
def test_doctored_columns_are_none(path, changes):
    save(path, Row, STORED)
    _rewrite(path)
    assert load(path, Row, "id") == STORED
    _rewrite(path, **changes)
    assert load(path, Row, "id") is None


def test_records_with_fields_of_another_version_are_read(path):
    save(path, Row, STORED)
    arrays, about = load_tensors(path)
    save_tensors(path, arrays, {**about, "record": {**about["record"], "attempts": 3}})
    assert load(path, Row, "id") == STORED


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path):
    save(path, Row, STORED)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        save(path, Row, Stored(ROWS, record(seconds=float("nan"))))
    assert path.read_bytes() == before
    assert sorted(file.name for file in path.parent.iterdir()) == ["record.json", "rows.safetensors"]


class Renamed(NamedTuple):
    agent: str
    stage: int
    value: float


class Retyped(NamedTuple):
    agent: str
    step: float
    value: float


def code(name="f", row=Row, digest="code"):
    return Code("module", name, row, digest)


def test_identity_depends_on_experiment_row_type_cell_and_code():
    dot = Dot(0.1)
    found = [
        identity(code(), dot),
        identity(code("g"), dot),
        identity(code(row=Renamed), dot),
        identity(code(row=Retyped), dot),
        identity(code(), replace(dot, radius=0.2)),
        identity(code(), replace(dot, name="x")),
        identity(code(digest="other"), dot),
    ]
    assert len(set(found)) == len(found)
    assert identity(code(), Dot(0.1)) == found[0]


def test_the_directory_depends_on_the_configuration_alone_and_never_changes():
    found = {directory("f", dot) for dot in (Dot(0.1), Dot(0.2), Dot(0.1, "x"))} | {directory("g", Dot(0.1))}
    assert len(found) == 4
    assert directory("f", Dot(0.1)) == "dot-ce4a49dd73c8"  # sha256sum of the JSON


@dataclass(frozen=True)
class Odder:
    values: object
    name: str = "odd"


@pytest.mark.parametrize("values", [{1, 2}, [1, 2], (1, (2, {})), Dot(0.1), Row("a", 1, 0.5)])
def test_a_cell_that_is_not_plain_is_named(values):
    expected = "expected a number, a text, None or a tuple of these"
    with pytest.raises(TypeError, match=rf"^values of the cell odd is {re.escape(repr(values))}, {expected}"):
        directory("f", Odder(values))


@pytest.mark.parametrize("values", [(), 0.1, ("a", (1, None, 5e-324), True), math.inf, "\u00e9\n"])
def test_a_job_is_the_same_in_another_process(values, tmp_path):
    (job,) = jobs(code(), [Odder(values)], tmp_path)
    again = job_from_json(job.to_json())
    assert again == job
    assert repr(again.cell) == repr(job.cell)


def test_rows_of_any_code_are_read_when_no_identity_is_asked_for_and_of_other_columns_never(path):
    save(path, Row, STORED)
    assert load(path, Row) == STORED
    assert load(path, Renamed) is None
    assert load(path, Retyped) is None


def test_the_record_is_read_alone_and_lies_beside_for_people(path):
    save(path, Row, STORED)
    assert load_record(path, "id") == STORED.record
    assert load_record(path, "other") is None
    assert json.loads(path.with_name("record.json").read_text()) == vars(STORED.record)
    path.write_bytes(path.read_bytes()[:-40])
    assert load_record(path, "id") is None


class Odd(NamedTuple):
    values: list[float]


def test_a_row_type_of_other_fields_is_refused():
    with pytest.raises(TypeError, match=r"Odd.values is annotated list\[float\], expected str, int or float"):
        columns(Odd)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a/b",), "'a/b'"),
        (("",), "''"),
        ((".hidden",), "hidden"),
        (("x" * 201,), "at most 200"),
        (("a", "b", "a"), "not unique: a, a"),
        (("a", "A"), "not unique: a, A"),
    ],
)
def test_names_that_would_not_do_as_files_are_refused(names, message):
    wrong = Chapter("f", "Title", everywhere(Dot(0.0, name) for name in names), Row, __name__, lambda _: [])
    with pytest.raises(ValueError, match=message):
        check_chapters([wrong])


def test_two_experiments_of_one_name_are_refused():
    with pytest.raises(ValueError, match="The name of a chapter is not unique: f, f"):
        check_chapters([experiment(), experiment()])
    check_chapters([experiment(), experiment("g")])
