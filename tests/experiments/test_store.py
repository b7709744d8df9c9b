"""Finished cells on disk: whole and right, or not at all."""

import json
from dataclasses import dataclass

import pytest

from urbe.experiments import store
from urbe.experiments.base import Row
from urbe.experiments.store import Finished, cell_hash, load, save


@dataclass(frozen=True)
class Dot:
    radius: float
    name: str = "dot"


ROWS = [
    Row("f", "dot", "m", "L1", 0.1, "robust", metric, value) for metric, value in (("a", 0.1 + 0.2), ("b", -1e-300))
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "dot.json"


def test_what_was_saved_is_loaded_to_the_last_bit(path):
    save(path, "f", Dot(0.1), Finished(ROWS, 1.5))
    assert load(path, "f", Dot(0.1)) == Finished(ROWS, 1.5)
    assert all(isinstance(row, Row) for row in load(path, "f", Dot(0.1)).rows)


def test_missing_is_none(path):
    assert load(path, "f", Dot(0.1)) is None


@pytest.mark.parametrize("other", [("g", Dot(0.1)), ("f", Dot(0.2)), ("f", Dot(0.1, "dash"))])
def test_another_cell_is_none(path, other):
    save(path, "f", Dot(0.1), Finished(ROWS, 1.5))
    assert load(path, *other) is None


def test_other_code_is_none(path, monkeypatch):
    save(path, "f", Dot(0.1), Finished(ROWS, 1.5))
    monkeypatch.setattr(store, "code_digest", lambda: "changed")
    assert load(path, "f", Dot(0.1)) is None


def _edit(change):
    def damage(raw):
        content = json.loads(raw)
        change(content)
        return json.dumps(content).encode()

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"\xff\xfe" + raw,
        lambda _: b"[1, 2]",
        lambda _: b"null",
        lambda _: b"[" * 100_000,
        lambda raw: raw.replace(b"-1e-300", b"-2e-300"),
        _edit(lambda content: content.pop("rows")),
        _edit(lambda content: content.update(seconds="long")),
        _edit(lambda content: content.update(seconds=float("nan"))),
        _edit(lambda content: content["rows"].pop()),
        _edit(lambda content: content.update(rows=[[1, 2]], rows_hash=store._hash([[1, 2]]))),
    ],
)
def test_damage_is_none(path, damage):
    save(path, "f", Dot(0.1), Finished(ROWS, 1.5))
    raw = path.read_bytes()
    path.write_bytes(damage(raw))
    assert path.read_bytes() != raw
    assert load(path, "f", Dot(0.1)) is None


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path):
    save(path, "f", Dot(0.1), Finished(ROWS, 1.5))
    before = path.read_bytes()
    with pytest.raises(ValueError):
        save(path, "f", Dot(0.1), Finished([ROWS[0]._replace(value=float("nan"))], 1.0))
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["dot.json"]


def test_hash_depends_on_every_field():
    hashes = {
        cell_hash("f", Dot(0.1)),
        cell_hash("g", Dot(0.1)),
        cell_hash("f", Dot(0.2)),
        cell_hash("f", Dot(0.1, "x")),
    }
    assert len(hashes) == 4
    assert cell_hash("f", Dot(0.1)) in hashes
