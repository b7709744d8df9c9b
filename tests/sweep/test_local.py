"""Local worker processes started from scripts, and processes that do not start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures import dots
from urbe.sweep import cells, launcher, local, store, worker
from urbe.sweep.run import sweep
from urbe.sweep.sources import code_digest
from urbe.sweep.status import read_status

UNGUARDED = """\
import sys
from pathlib import Path

print("the script is run", flush=True)

from fixtures import dots
from urbe.sweep import cells
from urbe.sweep.local import LocalProcesses
from urbe.sweep.run import sweep
from urbe.sweep.sources import code_digest

code = cells.Code(dots.__name__, "dots", dots.Row, code_digest(dots.__name__))
wanted = [dots.Dot(radius, sys.argv[1]) for radius in (0.0, 0.5, 1.0)]
sweep(Path(sys.argv[2]), {"dots": cells.jobs(code, wanted, Path(sys.argv[2], "cells"))}, LocalProcesses(2))
"""


def run_script(tmp_path, text):
    """Runs a script that sweeps into `tmp_path`/results."""
    script, log, output = tmp_path / "script.py", tmp_path / "log", tmp_path / "results"
    log.mkdir()
    script.write_text(text)
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(script), str(log), str(output)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
    return done, json.loads((output / "status.json").read_text())


def test_a_script_needs_no_guard(tmp_path):
    done, status = run_script(tmp_path, UNGUARDED)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "the script is run\n"  # once: workers do not
    assert (status["state"], status["done"], status["lost"]) == ("done", 3, 0)


def test_an_experiment_defined_in_the_script_is_refused(tmp_path):
    code = cells.Code("__main__", "own", dots.Row, "digest")
    with pytest.raises(ValueError, match=r"The cell dot-1 is defined in the script that is run.*move the experiment"):
        cells.jobs(code, [dots.Dot(1.0, "")], tmp_path)


def dot_jobs(folder, n, deed=""):
    (folder / "log").mkdir()
    code = cells.Code(dots.__name__, "dots", dots.Row, code_digest(dots.__name__))
    wanted = [dots.Dot(float(radius), str(folder / "log"), deed) for radius in range(n)]
    return {"dots": cells.jobs(code, wanted, folder / "results" / "cells")}


def test_processes_that_do_not_start_stop_the_sweep_and_show_why(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(local.worker, "start", counted(started, worker.start))
    monkeypatch.setattr(worker, "_COMMAND", "raise ImportError('half of the package is missing')")
    jobs = dot_jobs(tmp_path, 50)
    with pytest.raises(launcher.WorkersDoNotStart) as stopped:
        sweep(tmp_path / "results", jobs, local.LocalProcesses(1))
    assert len(started) == 3
    message = str(stopped.value)
    assert message.startswith("3 processes in a row died before they could run a cell; the last one ended with code 1.")
    assert message.endswith("\nImportError: half of the package is missing")
    assert read_status(tmp_path / "results")["state"] == "stopped"
    assert all(one.process.poll() is not None for one in started)


def test_a_process_that_starts_forgives_those_that_did_not(tmp_path, monkeypatch):
    """Every second process dies at once, by a signal, and every cell ends its own: no three die in a row."""
    started, good = [], worker._COMMAND

    def start():
        bad = len(started) % 2 == 0
        monkeypatch.setattr(worker, "_COMMAND", "import os; os.kill(os.getpid(), 9)" if bad else good)
        started.append(worker_start())
        return started[-1]

    worker_start = worker.start
    monkeypatch.setattr(local.worker, "start", start)
    jobs = dot_jobs(tmp_path, 4, "exit")
    (tmp_path / "log" / "deeds").touch()
    with pytest.raises(launcher.CellsFailed, match="4 of 4 cells failed"):
        sweep(tmp_path / "results", jobs, local.LocalProcesses(1, retries=0))
    assert len(started) == 8
    assert read_status(tmp_path / "results")["lost"] == 4  # by the starts: a cell lost its only attempt each
    assert [store.load(job.rows, dots.Row, job.identity) for job in jobs["dots"]] == [None] * 4


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "--xla_cpu_multi_thread_eigen=false"),
        ("--xla_cpu_multi_thread_eigen=true", "--xla_cpu_multi_thread_eigen=false"),
        ("--xla_dump_to=/x --xla_cpu_multi_thread_eigen=true", "--xla_dump_to=/x --xla_cpu_multi_thread_eigen=false"),
    ],
)
def test_every_library_has_one_and_other_flags_stay(monkeypatch, before, after):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    if before is not None:
        monkeypatch.setenv("XLA_FLAGS", before)
    libraries = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
    assert launcher.one_thread() == {**dict.fromkeys(libraries, "1"), "XLA_FLAGS": after}


def counted(started, start):
    def counting():
        started.append(start())
        return started[-1]

    return counting
