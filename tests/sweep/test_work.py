"""Running one job: the folder from which it resumes, the lock, the record."""

import json
import os
import platform
import sys
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest

from urbe.runs import lock
from urbe.sweep import cells, store, work
from urbe.sweep.sources import code_digest

MODULE = """
from typing import NamedTuple

class Row(NamedTuple):
    step: int

def run(cell, folder):
    found = sorted(path.name for path in folder.iterdir())
    (folder / f"step-{len(found)}").touch()
    if len(found) < cell.stop:
        raise RuntimeError(f"stopped at {len(found)}")
    return [Row(len(found))]
"""


class Row(NamedTuple):
    step: int


@dataclass(frozen=True)
class Cell:
    stop: int
    name: str = "cell"


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Writes an experiment's code, and gives a job of it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(work, "_imported", work._imported.__wrapped__)  # as in a new process

    def job(text=MODULE, stop=2):
        (tmp_path / "lab_of_work.py").write_text(text)
        sys.modules.pop("lab_of_work", None)
        code = cells.Code("lab_of_work", "lab", Row, code_digest("lab_of_work"))
        (found,) = cells.jobs(code, [Cell(stop)], tmp_path / "cells")
        return found

    yield job
    sys.modules.pop("lab_of_work", None)


def begin(job, times=1):
    for _ in range(times):
        with pytest.raises(RuntimeError, match="stopped at"):
            work.perform(job)


def rows(job):
    return store.load(job.rows, Row, job.identity).rows


def test_an_interrupted_cell_finds_its_folder_and_loses_it_when_done(make):
    job = make()
    begin(job, 2)
    assert {path.name for path in job.work.iterdir()} == {"step-0", "step-1"}
    work.perform(job)
    assert rows(job) == [(2,)]
    assert {path.name for path in job.folder.iterdir()} == {"rows.safetensors", "record.json", "lock"}


def test_other_code_never_meets_what_was_left_and_it_is_deleted_in_the_end(make):
    old = make()
    begin(old, 2)
    new = make(MODULE.replace("stopped at", "has stopped at"))
    assert new.folder == old.folder
    assert new.work != old.work
    with pytest.raises(RuntimeError, match="has stopped at 0"):
        work.perform(new)
    assert old.work.exists()  # the code may come back
    again = make()
    assert again.work == old.work
    work.perform(again)
    assert rows(again) == [(2,)]
    assert not new.work.exists()


def test_another_configuration_has_another_directory(make):
    one, other = make(), make(stop=1)
    begin(one)
    begin(other)
    work.perform(other)
    assert rows(other) == [(1,)]
    assert one.folder != other.folder
    assert one.work.exists()


def test_a_finished_cell_is_not_run_again_and_leaves_no_work(make):
    job = make(stop=0)
    work.perform(job)
    before = job.rows.stat().st_mtime_ns
    job.work.mkdir()  # killed between storing and cleaning
    work.perform(job)
    assert job.rows.stat().st_mtime_ns == before
    assert not job.work.exists()


def test_other_code_than_the_jobs_is_refused_before_anything_happens(make):
    job = replace(make(), code="of yesterday")
    with pytest.raises(RuntimeError, match="code changed"):
        work.perform(job)
    assert not job.folder.exists()


def test_a_cell_that_another_process_holds_is_waited_for_and_then_named(make, monkeypatch):
    monkeypatch.setattr(work, "PATIENCE", 0.3)
    job = make(stop=0)
    job.folder.mkdir(parents=True)
    held = lock.acquire(job.folder / "lock")
    begun = time.monotonic()
    with pytest.raises(lock.RunLocked, match=f"process {os.getpid()} on host"):
        work.perform(job)
    assert time.monotonic() - begun >= 0.3
    lock.release(held)
    work.perform(job)
    assert rows(job) == [(0,)]


def test_the_record_tells_where_rows_come_from(make):
    job = make(stop=0)
    work.perform(job)
    record = json.loads((job.folder / "record.json").read_text())
    assert (record["experiment"], record["cell"], record["config"]) == ("lab", "cell", {"stop": 0, "name": "cell"})
    assert (record["identity"], record["code"]) == (job.identity, job.code)
    assert set(record["versions"]) >= {"urbe", "numpy"}
    assert record["machine"]["processor"].startswith(platform.machine())
    assert record["machine"]["python"] == sys.version.split()[0]
    assert record["finished"].endswith("+00:00")
    assert 0.0 < record["seconds"] < 60.0
