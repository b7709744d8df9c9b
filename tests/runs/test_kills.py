"""A run killed at twenty random times leaves the bytes of an uninterrupted one; checkpoints are complete.

One process, started by the test, forks the processes that train and kills them (SIGKILL) after seeded delays: so
nothing is imported twenty times. How many of the kills fall within saving is up to the machine: there are more than
twenty until two of them did.
"""

import json
import subprocess
import sys

import pytest

TRAINING = '''
import json, os, random, signal, sys, time
from pathlib import Path

import numpy as np

from urbe.runs.directory import RunDirectory, read_checkpoint, saved_steps
from urbe.runs.tree import flatten, unflatten

UNTIL, EVERY = 160, 4
KILLS, TORN, MOST = 20, 2, 1000


def start():
    return {
        "params": {"w": np.zeros(300, np.float32), "momentum": np.zeros(300, np.float32)},
        "replay": [np.zeros((500, 4), np.float16), np.zeros(500, bool)],
        "episodes": 0,
    }


def train(path, seed):
    """Noisy descent with a replay buffer; saved at every fourth step, and started from what was saved."""
    rng, state, step = np.random.default_rng(seed), start(), 0
    with RunDirectory(path, {"seed": seed}) as run:
        log, episodes = run.log("log.csv", ["step", "loss", "rate"]), run.log("episodes.csv", ["episode", "ended"])
        newest = run.latest()
        if newest is not None:
            state, step = unflatten(newest.tensors, state), newest.step
            rng.bit_generator.state = newest.about["rng"]
        for step in range(step + 1, UNTIL + 1):
            params, (rows, flags) = state["params"], state["replay"]
            at = step % len(rows)
            rows[at], flags[at] = rng.normal(size=4), rng.random() < 0.5
            batch = rows[rng.integers(0, min(step, len(rows)), 32)]
            params["momentum"] = np.float32(0.9) * params["momentum"] + batch.mean(dtype=np.float32) - params["w"]
            params["w"] = params["w"] + np.float32(0.01) * params["momentum"]
            log.append({"step": step, "loss": np.square(params["w"]).sum(), "rate": 1 / step})
            if flags[at]:
                state["episodes"] += 1
                episodes.append({"episode": state["episodes"], "ended": step})
            if step % EVERY == 0:
                run.save(step, flatten(state), {"rng": rng.bit_generator.state})
        run.finish({"episodes": state["episodes"]})


def left(path):
    """Everything that must not depend on interruptions."""
    newest = read_checkpoint(path)
    files = {name: (path / name).read_bytes() for name in ("log.csv", "episodes.csv", "config.json", "finished.json")}
    arrays = {name: (str(array.dtype), array.tobytes()) for name, array in newest.tensors.items()}
    return newest.step, newest.about, saved_steps(path), files, arrays


def forked(path, seed):
    child = os.fork()
    if child == 0:
        train(path, seed)
        os._exit(0)
    return child


folder, delays = Path(sys.argv[1]), random.Random(5)
begun = time.perf_counter()
train(folder / "whole", 0)
seconds, whole = time.perf_counter() - begun, left(folder / "whole")
train(folder / "other", 1)
kills, torn, runs = 0, 0, 0


def more():
    return kills < KILLS or (torn < TORN and kills < MOST)


while more():
    runs += 1
    path, done = folder / f"killed{runs}", False
    while not done:
        child = forked(path, 0)
        if more():
            time.sleep(delays.uniform(0.0, seconds / 8))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        done = os.WIFEXITED(status)
        assert not done or os.WEXITSTATUS(status) == 0
        kills += not done
        names = [str(name) for name in path.rglob("*")]
        torn += not done and any(name.endswith(".tmp") for name in names)
        if saved_steps(path):
            read_checkpoint(path)
    assert left(path) == whole, "a killed run differs"
    files = [str(name.relative_to(path)) for name in path.rglob("*") if name.is_file()]
    assert len(files) == 5 + 2, files
assert left(folder / "other") != whole
print(json.dumps({"kills": kills, "torn": torn, "runs": runs, "seconds": seconds, "steps": whole[2]}))
'''


OVERWRITING = """
import json, os, random, signal, sys, time

import numpy as np

from urbe.runs.tensors import load_tensors, save_tensors


def arrays(k):
    return {"a": np.full(250_000, k), "b": np.full(250_000, k, np.float32)}


def overwrite(folder, k):
    while True:
        k += 1
        save_tensors(folder, arrays(k), {"k": k})


folder, delays, found = sys.argv[1] + "/c", random.Random(6), [0]
begun = time.perf_counter()
save_tensors(folder, arrays(0), {"k": 0})
longest, kills = 4 * (time.perf_counter() - begun), 0
while kills < 20 or found[-1] < 10:
    child = os.fork()
    if child == 0:
        overwrite(folder, found[-1])
    time.sleep(delays.uniform(0.0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    kills += 1
    tensors, about = load_tensors(folder)
    assert about["k"] >= found[-1]
    assert all((tensors[name] == about["k"]).all() for name in "ab")
    longest *= 1.0 if about["k"] > found[-1] else 1.25  # so that there is progress on a busy machine, too
    found.append(about["k"])
save_tensors(folder, arrays(0), {"k": 0})
left = [name for name in os.listdir(sys.argv[1]) if not name.endswith((".py", ".tmp"))]
print(json.dumps({"kills": kills, "left": left}))
"""


def run_script(text, folder):
    (folder / "script.py").write_text(text)
    command = [sys.executable, folder / "script.py", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    return run_script(TRAINING, tmp_path_factory.mktemp("kills"))


def test_a_killed_run_ends_as_the_one_that_was_not(reported):
    """Arrays, logs, counters and generators, byte for byte; the comparison is made where the runs are."""
    assert reported["kills"] >= 20
    assert reported["steps"] == [156, 160]


def test_kills_fell_within_saving(reported):
    assert reported["torn"] >= 2


def test_a_checkpoint_overwritten_again_and_again_is_always_whole(tmp_path):
    reported = run_script(OVERWRITING, tmp_path)
    assert reported["kills"] >= 20
    assert reported["left"] == ["c"]
