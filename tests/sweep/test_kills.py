"""Sweeps killed (SIGKILL): a worker, the launcher, all at once. Rows must be those of an undisturbed sweep."""

import os
import signal
import subprocess
from contextlib import suppress

import pytest

from fixtures.sweep_kills import AGENTS, PATIENCE, SUMS, Sweep, is_gone, until
from urbe.rng import stream


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Rows of an undisturbed sweep."""
    sweep = Sweep(tmp_path_factory.mktemp("whole"), "local")
    sweep.finish()
    assert sweep.finished() == {*AGENTS, *SUMS}
    assert all(sweep.began(cell) == [0] for cell in (*AGENTS, *SUMS))
    return sweep.rows()


def test_worker_launcher_and_all_at_once(tmp_path, whole):
    sweep = Sweep(tmp_path, "local")
    sweep.hold("agent-1", 1000)
    process = sweep.start()
    until(lambda: sweep.step("agent-1") >= 100, process)
    os.kill(sweep.worker("agent-1"), signal.SIGKILL)  # a worker: the sweep goes on, and comes back to the cell
    until(lambda: set(SUMS) <= sweep.finished() and len(sweep.began("agent-1")) == 2, process)
    until(lambda: sweep.status()["lost"] == 1, process)

    workers = [pid for cell in AGENTS if (pid := sweep.worker(cell)) is not None]
    assert workers
    process.kill()  # the launcher: its workers end too, and nothing is half-written
    process.communicate()
    until(lambda: all(map(is_gone, workers)))
    done, at = sweep.finished(), sweep.step("agent-1")
    assert 100 <= at <= 1000
    assert "agent-1" not in done

    sweep.hold("agent-1", 2000)
    process = sweep.start()
    until(lambda: sweep.step("agent-1") > at, process)
    sweep.kill(process)  # all at once, as when the machine stops
    process.communicate()

    sweep.hold("agent-1", None)
    sweep.finish()
    assert sweep.rows() == whole
    assert all(sweep.began(cell) == [0] for cell in SUMS)  # finished cells are not run again
    first, *later = sweep.began("agent-1")
    assert first == 0
    assert later == sorted(later)
    assert later[0] >= 100  # from its checkpoint, not from the beginning
    assert len(later) == 3
    assert not list(sweep.output.rglob("work-*"))
    assert sweep.status()["state"] == "done"


def test_a_second_sweep_in_the_folder_is_refused(tmp_path):
    sweep = Sweep(tmp_path, "local")
    first = sweep.start()
    try:
        until(lambda: (sweep.output / "status.json").exists(), first)
        second = sweep.start()
        _, err = second.communicate()
        assert second.returncode != 0
        assert f"process {first.pid} on host" in err
        assert first.poll() is None
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()


@pytest.mark.slow
def test_thirty_kills_at_random_moments(tmp_path, whole):
    """Launcher, worker or all, anywhere from the first import on, until thirty are dead; then the sweep is let be."""
    draws, sweep, kills, rounds = stream(1, "sweep kills"), None, 0, 0
    while kills < 30:
        rounds += 1
        sweep = Sweep(tmp_path / str(rounds), "local")
        while True:
            process = sweep.start()
            if kills < 30:
                kills += _kill_once(process, sweep, draws)
            _, err = process.communicate(timeout=PATIENCE)
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL, err
        assert sweep.rows() == whole
        for cell in (*AGENTS, *SUMS):
            began = sweep.began(cell)
            assert began[0] == 0
            assert began == sorted(began)
    print(f"{kills} kills in {rounds} sweeps")


def _kill_once(process, sweep, draws):
    """Kills something at a random moment; says how many died."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(draws.uniform(0.0, 25.0))
    if process.poll() is not None:
        return 0
    what = draws.choice(["worker", "launcher", "all"])
    if what == "worker":
        workers = [pid for cell in AGENTS if (pid := sweep.worker(cell)) is not None and not is_gone(pid)]
        if not workers:
            return 0
        os.kill(workers[0], signal.SIGKILL)
    elif what == "launcher":
        process.kill()
    else:
        sweep.kill(process)
    return 1
