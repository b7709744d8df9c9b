"""Sweeps on Ray: the same rows, failures and resumption as on processes of this machine."""

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import urbe.sweep.ray as ray_launcher
from fixtures import dots
from fixtures.sweep_kills import AGENTS, SUMS, Sweep, is_gone, until
from urbe import extras
from urbe.sweep import cells, store
from urbe.sweep.launcher import Losses
from urbe.sweep.local import LocalProcesses
from urbe.sweep.ray import Ray
from urbe.sweep.run import sweep
from urbe.sweep.sources import code_digest

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra urbe[ray]; make test-slow installs it")


def dot_jobs(folder, deeds, radii=(0.0, 0.5, 1.0, 1.5)):
    log = folder / "log"
    log.mkdir(parents=True)
    (log / "deeds").touch()
    code = cells.Code(dots.__name__, "dots", dots.Row, code_digest(dots.__name__))
    wanted = [dots.Dot(radius, str(log), deeds.get(radius, "")) for radius in radii]
    return {"dots": cells.jobs(code, wanted, folder / "results" / "cells")}


def rows(jobs):
    return [stored and stored.rows for job in jobs["dots"] for stored in [store.load(job.rows, dots.Row, job.identity)]]


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "urbe\[ray\]"'):
        Ray()


def test_a_cell_whose_rows_the_driver_does_not_see_has_failed(tmp_path, monkeypatch):
    (job,) = dot_jobs(tmp_path, {}, radii=(0.5,))["dots"]
    error = type("RayError", (Exception,), {})
    fake = SimpleNamespace(get=lambda answer: answer, exceptions=SimpleNamespace(RayError=error))
    monkeypatch.setitem(sys.modules, "ray", fake)
    event = ray_launcher._answer(None, job, Losses(1))
    assert (event.kind, job.folder.exists()) == ("failed", False)
    assert "on a machine that does not share this folder" in event.text
    assert ray_launcher._answer(ray_launcher._task(job), job, Losses(1)).kind == "done"
    assert ray_launcher._answer("ValueError: no", job, Losses(1)).text == "ValueError: no"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home for Ray's notes."""
    return str(tmp_path_factory.mktemp("home"))


@contextmanager
def node(home, *options):
    """A machine of a cluster: a group of processes of this one, which the kernel ends at the end."""
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "HOME": home, "PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", *options],
        env=environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    for line in process.stdout:
        if "started" in line:
            break
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # lost before
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@contextmanager
def cluster(home, name, cpus):
    """The first machine of a cluster, with so many cores; its address."""
    port = 20_000 + (os.getpid() + len(name)) % 20_000
    with node(home, "--head", f"--port={port}", f"--num-cpus={cpus}", "--include-dashboard=false"):
        yield f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def address(home):
    """A cluster of two cores that is there already."""
    with cluster(home, "two cores", 2) as found:
        yield found


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of Ray's, on what will change in it
def test_a_cluster_by_address_computes_the_same_rows_with_one_thread_and_tells_the_same_failures(
    tmp_path, address, home, monkeypatch
):
    monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    found = []
    for name, launcher in (("ray", Ray(address, retries=1)), ("local", LocalProcesses(2, retries=1))):
        jobs = dot_jobs(tmp_path / name, {0.5: "raise", 1.0: "kill"})
        with pytest.raises(RuntimeError) as failed:
            sweep(tmp_path / name / "results", jobs, launcher)
        tries = Counter(path.name.rsplit(".", 3)[0] for path in (tmp_path / name / "log").glob("*.ran"))
        found.append((rows(jobs), tries, [failure.job.cell.name for failure in failed.value.failures]))
        assert "dots/dot-0.5: ValueError: dot-0.5 does not feel like it" in str(failed.value)
        assert "attempt 2, the last." in str(failed.value)
    assert found[0] == found[1]
    assert found[0][1] == {"dot-0": 1, "dot-0.5": 1, "dot-1": 2, "dot-1.5": 1}
    assert {row.threads for row in found[0][0][0]} == {"1"}


@needs_ray
@pytest.mark.slow
def test_kills_on_a_cluster_of_this_machine(tmp_path, home):
    """A worker, then the driver; the rows are those of undisturbed processes, and agents go on from checkpoints."""
    whole = Sweep(tmp_path / "whole", "local")
    whole.finish()
    killed = Sweep(tmp_path / "killed", "ray", HOME=home)
    killed.hold("agent-1", 1000)  # a driver that is killed takes its tasks along after a moment: time to finish a cell
    process = killed.start()
    until(lambda: killed.step("agent-1") >= 100, process)
    os.kill(killed.worker("agent-1"), signal.SIGKILL)
    until(lambda: set(SUMS) <= killed.finished() and len(killed.began("agent-1")) == 2, process)
    until(lambda: killed.status()["lost"] == 1, process)
    worker = killed.worker("agent-1")
    process.kill()
    process.communicate()
    assert "agent-1" not in killed.finished()
    until(lambda: is_gone(worker))  # Ray ends the tasks of a driver that is gone
    killed.hold("agent-1", None)
    killed.finish()
    assert killed.rows() == whole.rows()
    assert all(killed.began(cell) == [0] for cell in SUMS)
    first, *later = killed.began("agent-1")
    assert (first, len(later)) == (0, 2)
    assert later == sorted(later)
    assert later[0] >= 100
    assert killed.finished() == {*AGENTS, *SUMS}


@needs_ray
@pytest.mark.slow
def test_a_machine_of_a_cluster_is_lost(tmp_path):
    """All its processes at once, its share of Ray's among them: its cell goes on elsewhere from the last checkpoint."""
    home = str(tmp_path)  # of its own: a token that another cluster has left would be asked for
    whole = Sweep(tmp_path / "whole", "local")
    whole.finish()
    with cluster(home, "no cores", 0) as found:
        with node(home, f"--address={found}", "--num-cpus=1") as first:
            killed = Sweep(tmp_path / "killed", "ray", found, HOME=home)
            killed.hold("agent-1", 1000)
            process = killed.start()
            until(lambda: killed.step("agent-1") >= 100, process)
            worker = killed.worker("agent-1")
            os.killpg(first.pid, signal.SIGKILL)
            os.killpg(worker, signal.SIGKILL)  # leads a group of its own
            until(lambda: is_gone(worker))
        killed.hold("agent-1", None)
        with node(home, f"--address={found}", "--num-cpus=1"):
            killed.finish(process)
    assert killed.rows() == whole.rows()
    begun, again = killed.began("agent-1")
    assert (begun, again >= 100) == (0, True)
