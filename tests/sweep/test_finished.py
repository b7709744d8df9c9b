"""What of a sweep is there, whatever the code is today."""

import json
from typing import NamedTuple

import pytest

from fixtures.deep_cells import Small
from urbe.sweep import store
from urbe.sweep.cells import Code, jobs
from urbe.sweep.finished import load_finished, read_plan, write_plan
from urbe.sweep.store import CellRecord, Stored


class Row(NamedTuple):
    value: float


class Other(NamedTuple):
    number: float


@pytest.fixture
def planned(tmp_path):
    """Four cells of two experiments; two of the first are finished, the second of them by newer code."""
    code = Code("module", "f", Row, "old")
    mine = jobs(code, [Small(seed, "log") for seed in range(3)], tmp_path / "cells")
    others = jobs(code._replace(experiment="g"), [Small(7, "log")], tmp_path / "cells")
    write_plan(tmp_path, "medium", {"f": mine, "g": others})
    for job, digest in ((mine[2], "new"), (mine[0], "old")):
        record = CellRecord("f", job.cell.name, {}, job.identity, digest, None, {}, {}, "", 1.0)
        store.save(job.rows, Row, Stored([Row(float(job.cell.seed))], record))
    return tmp_path


def test_the_plan_comes_back(planned):
    plan = read_plan(planned)
    assert plan.scale == "medium"
    assert [name.rpartition("-")[0] for name in plan.cells["f"]] == ["sum-0", "sum-1", "sum-2"]
    assert len(plan.cells["g"]) == 1


def test_rows_are_read_in_the_order_of_the_plan_whatever_code_computed_them(planned):
    found = load_finished(planned, "f", Row)
    assert found.rows() == [Row(0.0), Row(2.0)]
    assert [cell.record.code for cell in found.cells] == ["old", "new"]
    assert [name.rpartition("-")[0] for name in found.missing] == ["sum-1"]
    assert found.other_code == ()


def test_cells_of_other_code_than_todays_are_named(planned):
    assert load_finished(planned, "f", Row, {"new"}).other_code == ("sum-0",)
    assert load_finished(planned, "f", Row, {"newest"}).other_code == ("sum-0", "sum-2")


def test_rows_of_other_columns_are_missing_rather_than_guessed(planned):
    found = load_finished(planned, "f", Other)
    assert found.cells == ()
    assert len(found.missing) == 3


def test_an_experiment_that_was_not_run_is_named(planned):
    assert load_finished(planned, "g", Row).cells == ()
    with pytest.raises(KeyError, match=r"h is not an experiment of .*, expected one of f, g"):
        load_finished(planned, "h", Row)


def test_no_sweep_says_how_to_run_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no sweep was run into .*; run one with: urbe reproduce --output"):
        read_plan(tmp_path)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"version": 1, "experiments": {}}', '{"version": 1, "scale": "", "experiments": 3}'],
)
def test_a_damaged_plan_is_refused(tmp_path, content):
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(ValueError, match=r"sweep\.json is not the plan of a sweep"):
        read_plan(tmp_path)


def test_a_plan_of_another_version_is_refused(planned):
    expected = json.loads((planned / "sweep.json").read_text())
    (planned / "sweep.json").write_text(json.dumps({**expected, "version": 9}))
    with pytest.raises(ValueError, match="version is 9, expected 1"):
        read_plan(planned)


def test_cells_of_an_older_version_are_refused_with_what_to_do(planned):
    directory = read_plan(planned).cells["f"][1]
    (planned / "cells" / "f" / directory).mkdir()
    (planned / "cells" / "f" / directory / "rows.npz").touch()
    with pytest.raises(
        ValueError, match=r"sum-1-.* was written by urbe 0.1.0, expected rows.safetensors; run it again"
    ):
        load_finished(planned, "f", Row)
