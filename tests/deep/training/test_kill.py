"""`urbe train` killed (SIGKILL) at random times, and restarted until it is done.

A third of the moments are drawn over the life of a process, from its first import on; the others from when it has
begun to learn, since starting takes longer than learning here; a few fall into compilation, with nothing compiled
before. The run evaluates and keeps its best agent meanwhile. Logs, the best agent and every tensor must be those of a
run that was never killed, byte for byte, and TensorBoard must show the same.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oracles.event_files import shown
from urbe.rng import stream
from urbe.runs.directory import saved_steps
from urbe.runs.tensors import load_tensors

STEPS, EVERY = 3000, 40
OPTIONS = (
    *("train", "cartpole", "--agent", "dqn-urbe", "--seed", "3", "--log-every", "50", "--over", "half_length=0.25,1"),
    *("--checkpoint-every", str(EVERY), "--set", "network.hidden=16,16", "batch=16", "capacity=300", "warm_up=50"),
    *("--evaluate-every", "70", "--evaluate-over", "half_length=0.25,1", "--evaluate-episodes", "3", "--tensorboard"),
    *("--keep-best", "worst"),
)
MAIN = "import sys; from urbe.cli import main; sys.exit(main(sys.argv[1:]))"


def started(folder, steps=STEPS, **environment):
    command = [sys.executable, "-c", MAIN, *OPTIONS, "--steps", str(steps), "--out", str(folder)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ | environment)


def finished(process):
    out, err = process.communicate()
    assert (process.returncode, only_progress(err)) == (0, True), err
    return out


def only_progress(err):
    return all(line.startswith("dqn-urbe: ") for line in err.splitlines())


def await_learning(process, folder):
    """Returns when the process has saved a checkpoint of its own, or has ended."""
    before = newest(folder)
    while newest(folder) <= max(before, 0) and process.poll() is None:
        time.sleep(0.002)


def newest(folder):
    return max(saved_steps(folder), default=-1)


def left(folder):
    """All files by name; the bytes of all but the lock, and of what tells the time a checkpoint was made; curves."""
    events = folder / "tensorboard"
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.parent != events)
    contents = [(folder / path).read_bytes() for path in files if path.name != "lock"]
    tensors, _ = load_tensors(folder / "checkpoints" / f"{STEPS:012d}.safetensors")
    return (
        files,
        contents,
        {name: (str(array.dtype), array.tobytes()) for name, array in tensors.items()},
        shown(events),
    )


def whole_run(folder):
    """What an uninterrupted run leaves, and the seconds it takes to begin to learn and to end."""
    finished(started(folder / "warm", 2 * EVERY))  # whatever had to be compiled
    begun, process = time.perf_counter(), started(folder / "whole")
    await_learning(process, folder / "whole")
    learning = time.perf_counter() - begun
    assert "a new run" in finished(process)
    assert (folder / "whole" / "best.safetensors").exists()
    return left(folder / "whole"), learning, time.perf_counter() - begun


def kill_often(folder, kills):
    """Kills so many processes; returns what the runs left, and in which state of the folder they died."""
    whole, learning, life = whole_run(folder)
    compiling = 1 + kills // 100  # kills of processes that find nothing compiled
    draws, deaths, lefts = stream(1, "kills"), [], []
    while len(deaths) < kills:
        run = folder / f"killed{len(lefts)}"
        while True:
            cold = len(deaths) < compiling
            process = started(run, **({"XDG_CACHE_HOME": str(folder / "nothing")} if cold else {}))
            if len(deaths) < kills:
                _wait(process, run, draws, learning * (2 if cold else 1), life, anywhere=cold or draws.random() < 0.35)
                process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
            assert only_progress(err), err
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL
            deaths.append(_death(run, out))
        lefts.append(left(run))
    return whole, lefts, deaths


def _wait(process, run, draws, learning, life, *, anywhere):
    if anywhere:
        time.sleep(draws.uniform(0.0, 0.8 * max(learning, life)))
    else:
        await_learning(process, run)
        time.sleep(draws.uniform(0.0, 0.4 * (life - learning)))  # often enough before it is done


def _death(run, out):
    """How far the process had come, and whether it died within saving."""
    return {"step": newest(run), "spoke": bool(out), "torn": any(run.rglob("*.tmp"))}


def check(folder, kills):
    whole, lefts, deaths = kill_often(folder, kills)
    assert len(deaths) == kills
    for each in lefts:
        assert each == whole
    assert {death["spoke"] for death in deaths} == {True, False}  # before the first word, and after
    assert len({death["step"] for death in deaths}) >= kills // 4  # all over the run
    print(f"{kills} kills, {sum(death['torn'] for death in deaths)} within saving, {len(lefts)} runs")


def test_a_run_killed_five_times_ends_as_the_one_that_was_not(tmp_path):
    check(tmp_path, 5)


@pytest.mark.slow
def test_a_run_killed_two_hundred_times_ends_as_the_one_that_was_not(tmp_path):
    check(tmp_path, 200)


def test_a_second_process_in_the_folder_is_refused(tmp_path):
    first = started(tmp_path / "run", steps=10**7)
    try:
        await_learning(first, tmp_path / "run")
        second = started(tmp_path / "run", steps=10**7)
        _, err = second.communicate()
        assert second.returncode == 1
        assert f"process {first.pid} on host" in err
        assert first.poll() is None
    finally:
        first.kill()
        first.communicate()
    assert Path(tmp_path / "run" / "config.json").exists()
