"""The sweep itself, with a small launcher that runs cells in this process."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures import dots
from urbe.runs.lock import RunLocked, acquire, release
from urbe.sweep import cells
from urbe.sweep.launcher import CellsFailed, Event
from urbe.sweep.run import sweep
from urbe.sweep.sources import code_digest
from urbe.sweep.status import read_status
from urbe.sweep.work import perform

DIGEST = code_digest(dots.__name__)


@dataclass(frozen=True)
class Priced:
    """A dot that says what it costs."""

    seed: int
    log: str
    cost: float = 1.0
    deed: str = ""

    @property
    def name(self):
        return f"dot-{self.seed}"

    @property
    def radius(self):
        return float(self.seed)


class Direct:
    """Performs one job after the other; those named fail, and the launcher breaks at `breaks`."""

    def __init__(self, fails=(), breaks=None):
        self.begun, self.closed = [], False
        self._fails, self._breaks = fails, breaks

    def launch(self, jobs):
        try:
            for job in jobs:
                self.begun.append(job.cell.seed)
                yield Event("begun", job)
                if job.cell.seed == self._breaks:
                    raise OSError("the cluster is gone")
                if job.cell.seed in self._fails:
                    yield Event("failed", job, f"Traceback\nValueError: {job.cell.name}")
                else:
                    perform(job)
                    yield Event("done", job)
        finally:
            self.closed = True

    def __str__(self):
        return "this process"


def make(folder, costs):
    (folder / "log").mkdir(exist_ok=True)
    code = cells.Code(dots.__name__, "dots", dots.Row, DIGEST)
    wanted = [Priced(seed, str(folder / "log"), cost) for seed, cost in enumerate(costs)]
    return {"dots": cells.jobs(code, wanted, folder / "results" / "cells")}


def test_the_costliest_come_first_and_the_rest_in_order(tmp_path):
    launcher = Direct()
    sweep(tmp_path / "results", make(tmp_path, (1.0, 2.0, 9.0, 1.0, 3.0)), launcher)
    assert launcher.begun == [2, 4, 1, 0, 3]
    assert launcher.closed


def test_failures_are_reported_in_the_order_of_cells_and_only_they_are_begun_again(tmp_path):
    jobs, launcher = make(tmp_path, (1.0, 2.0, 3.0)), Direct(fails=(0, 2))
    with pytest.raises(CellsFailed, match="2 of 3 cells failed") as failed:
        sweep(tmp_path / "results", jobs, launcher)
    assert [failure.job.cell.seed for failure in failed.value.failures] == [0, 2]
    assert read_status(tmp_path / "results")["state"] == "failed"
    launcher = Direct()
    sweep(tmp_path / "results", jobs, launcher)
    assert launcher.begun == [2, 0]
    status = read_status(tmp_path / "results")
    assert (status["state"], status["launcher"], status["experiments"]["dots"]["kept"]) == (
        "done", "this process", 1,
    )  # fmt: skip


def test_a_launcher_that_breaks_leaves_what_is_finished_and_says_stopped(tmp_path):
    jobs = make(tmp_path, (1.0, 1.0, 1.0))
    with pytest.raises(OSError, match="the cluster is gone"):
        sweep(tmp_path / "results", jobs, Direct(breaks=1))
    status = read_status(tmp_path / "results")
    assert (status["state"], status["done"], status["running"]) == ("stopped", 1, 1)
    launcher = Direct()
    sweep(tmp_path / "results", jobs, launcher)
    assert launcher.begun == [1, 2]


def test_an_interrupt_closes_the_launcher(tmp_path, monkeypatch):
    launcher = Direct()

    def watch(status):
        if status["running"]:
            raise KeyboardInterrupt

    monkeypatch.setattr("urbe.sweep.run.EVERY", 0.0)
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "results", make(tmp_path, (1.0, 1.0)), launcher, watch=watch)
    assert launcher.closed
    assert launcher.begun == [0]


def test_one_sweep_at_a_time(tmp_path):
    output = tmp_path / "results"
    output.mkdir()
    held = acquire(output / "sweep.lock")
    with pytest.raises(RunLocked):
        sweep(output, make(tmp_path, (1.0,)), Direct())
    assert not (output / "sweep.json").exists()
    release(held)
    sweep(output, make(tmp_path, (1.0,)), Direct())


def test_a_launcher_that_lies_is_found_out(tmp_path):
    class Liar(Direct):
        def launch(self, jobs):
            for job in jobs:
                yield Event("done", job)

    with pytest.raises(OSError, match=r"rows\.safetensors was changed by another program"):
        sweep(tmp_path / "results", make(tmp_path, (1.0,)), Liar())


def test_paths_do_not_depend_on_where_a_process_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jobs = make(Path(), (1.0,))
    assert all(job.folder.is_absolute() for job in jobs["dots"])
    sweep(Path("results"), jobs, Direct())
    assert json.loads((tmp_path / "results" / "sweep.json").read_text())["version"] == 1
