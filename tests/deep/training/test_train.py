"""Training in folders: after any interruption, log and weights equal those of an uninterrupted run."""

import errno
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

from oracles.event_files import shown
from urbe import atomic
from urbe.deep.compilation import cache_compilation, default_folder
from urbe.deep.core.finite import NotFinite
from urbe.deep.presets import dqn, dqn_urbe
from urbe.deep.saving.load import load
from urbe.deep.settings import Network
from urbe.deep.training import tensorboard
from urbe.deep.training.history import EPISODES, LOG
from urbe.deep.training.train import train
from urbe.runs import tensors as tensors_module
from urbe.runs.directory import RunDirectory, read_finished, saved_steps
from urbe.runs.errors import CheckpointError
from urbe.runs.lock import RunLocked
from urbe.runs.row_log import RowLog, read_rows
from urbe.simulators import CartPole, Outcomes, UncertaintySet

TINY = {"network": Network(hidden=(16, 16)), "batch": 16, "capacity": 300, "warm_up": 50}
STEPS, CSV = 400, ("log.csv", "episodes.csv")


class Interrupted(BaseException):
    """Nobody catches it."""


@pytest.fixture(scope="module", autouse=True)
def _compiled_once():
    cache_compilation()


def pole(seed=3, **changes):
    poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    return dqn_urbe(CartPole(), poles, seed=seed, log_every=50, **TINY, **changes)


@pytest.fixture(scope="module")
def agent():
    """One compiled agent for all tests: `train` makes it what the folder says."""
    return pole()


@pytest.fixture(scope="module")
def start(agent):
    return agent.tensors()


@pytest.fixture
def fresh(agent, start):
    """The agent as it was before its first step."""
    agent.load_tensors(start, "start")
    return agent


@pytest.fixture(scope="module")
def whole(agent, start, tmp_path_factory):
    """The run that was never interrupted: its folder, and what it left."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    agent.load_tensors(start, "start")
    train(agent, folder, STEPS, tensorboard=True)
    return left(folder)


def left(folder):
    """Everything that must not depend on interruptions: bytes of the logs, of the mark, and of every tensor."""
    files = {name: (folder / name).read_bytes() for name in (*CSV, "finished.json", "config.json")}
    tensors, _ = tensors_module.load_tensors(folder / "checkpoints" / f"{STEPS:012d}.safetensors")
    return files | {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in tensors.items()}


def test_what_a_run_leaves(whole, fresh, tmp_path):
    train(fresh, tmp_path / "run", STEPS)
    assert left(tmp_path / "run") == whole
    log, episodes = (read_rows(tmp_path / "run" / name) for name in CSV)
    assert tuple(log), tuple(episodes) == (LOG, EPISODES)
    assert log["step"].tolist() == list(range(50, STEPS + 1, 50))
    assert log["episodes"][-1] == len(episodes["step"])
    assert episodes["step"].dtype == episodes["length"].dtype == log["updates"].dtype == np.int64
    assert (np.diff(np.concatenate([[0], episodes["step"]])) == episodes["length"]).all()
    for name in LOG:
        np.testing.assert_array_equal(log[name], fresh.history.log[name])
    for name in EPISODES:
        np.testing.assert_array_equal(episodes[name], fresh.history.episodes[name])
    assert read_finished(tmp_path / "run") == {"step": STEPS}


def test_another_seed_leaves_something_else(whole, tmp_path):
    train(pole(seed=4), tmp_path / "run", STEPS)
    other = left(tmp_path / "run")
    assert other["log.csv"] != whole["log.csv"]
    assert other["trainer/learner/q/0/weight"] != whole["trainer/learner/q/0/weight"]


@pytest.mark.parametrize("every", [1000, 400, 73, 50, 7])
def test_where_checkpoints_fall_changes_nothing(whole, fresh, tmp_path, every):
    train(fresh, tmp_path / "run", STEPS, checkpoint_every=every)
    assert left(tmp_path / "run") == whole


@pytest.mark.parametrize("stops", [(130,), (50, 51, 399), (100, 100, 250)])
def test_a_run_can_be_extended(whole, fresh, tmp_path, stops):
    for steps in (*stops, STEPS):
        assert train(fresh, tmp_path / "run", steps, checkpoint_every=60).step == steps
        assert read_finished(tmp_path / "run") == {"step": steps}
    assert left(tmp_path / "run") == whole


def test_the_log_ends_where_the_run_ends(fresh, tmp_path):
    train(fresh, tmp_path / "run", 130)
    log, episodes, members = (read_rows(tmp_path / "run" / f"{name}.csv") for name in ("log", "episodes", "members"))
    assert log["step"].tolist() == members["step"].tolist() == [50, 100, 130]
    assert episodes["step"].max() > 100
    assert log["episodes"][-1] == len(episodes["step"])
    short = train(pole(), tmp_path / "short", 30)
    assert read_rows(tmp_path / "short" / "log.csv")["step"].tolist() == [30]
    assert len(read_rows(tmp_path / "short" / "episodes.csv")["step"]) == short.trainer.learner.episodes > 0


def test_a_finished_run_is_returned_at_once(whole, fresh, tmp_path, start):
    train(fresh, tmp_path / "run", STEPS)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.json")}
    for steps in (STEPS, STEPS - 1, 0):
        fresh.load_tensors(start, "start")
        assert train(fresh, tmp_path / "run", steps).step == STEPS
    assert left(tmp_path / "run") == whole
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.json")}


@pytest.mark.parametrize("calls", [1, 2, 5, 9])
@pytest.mark.parametrize("where", ["before saving", "while saving", "after saving", "after a row"])
def test_interrupted_anywhere_it_ends_as_if_nothing_had_been(whole, fresh, tmp_path, monkeypatch, where, calls):
    """Python's exceptions here; real kills are in test_kill.py."""
    count = iter(range(1, 100))

    def interrupting(function, late):
        def call(*arguments):
            stop = next(count) == calls
            if stop and not late:
                raise Interrupted
            function(*arguments)
            if stop:
                raise Interrupted

        return call

    with monkeypatch.context() as patch:
        if where == "after a row":
            patch.setattr(RowLog, "extend", interrupting(RowLog.extend, late=True))
        elif where == "while saving":
            patch.setattr(tensors_module, "replace_files", interrupting(tensors_module.replace_files, late=False))
        else:
            late = where == "after saving"
            patch.setattr(RunDirectory, "save", interrupting(RunDirectory.save, late=late))
        with pytest.raises(Interrupted):
            train(fresh, tmp_path / "run", STEPS, checkpoint_every=30)
    assert not (tmp_path / "run" / "finished.json").exists()
    fresh.learn(17)  # whatever the agent knows when it comes back
    train(fresh, tmp_path / "run", STEPS, checkpoint_every=45)
    assert left(tmp_path / "run") == whole


def test_ctrl_c_loses_what_follows_the_last_checkpoint_and_no_more(whole, fresh, tmp_path, monkeypatch):
    seen = []

    def pressed(self, trainer):
        seen.append(trainer.step)
        if trainer.step == 250:
            signal.raise_signal(signal.SIGINT)
        return added(self, trainer)

    added = type(fresh.history).add
    with monkeypatch.context() as patch:
        patch.setattr(type(fresh.history), "add", pressed)
        with pytest.raises(KeyboardInterrupt):
            train(fresh, tmp_path / "run", STEPS, checkpoint_every=120)
    assert seen[-1] == 250
    assert saved_steps(tmp_path / "run")[-1] == 240
    train(fresh, tmp_path / "run", STEPS)
    assert left(tmp_path / "run") == whole


def test_an_agent_that_learned_elsewhere_brings_its_log(whole, fresh, tmp_path):
    train(fresh.learn(120), tmp_path / "run", STEPS)
    assert left(tmp_path / "run") == whole
    assert saved_steps(tmp_path / "run") == [120, 400]


def test_runs_can_be_loaded_newest_or_any(whole, fresh, tmp_path):
    folder = tmp_path / "run"
    train(fresh, folder, STEPS, checkpoint_every=300)
    newest, earlier = load(folder), load(folder / "checkpoints" / "000000000300.safetensors")
    assert newest.step == STEPS
    assert earlier.learn(100).step == STEPS
    for agent in (newest, earlier):
        assert {name: array.tobytes() for name, array in agent.trainer_tensors().items()} == {
            name: value[2] for name, value in whole.items() if isinstance(value, tuple)
        }
        for name, rows in agent.history.files().items():
            found = read_rows(folder / name)
            assert all(np.array_equal(found[column], values, equal_nan=True) for column, values in rows.items())
    assert newest.about() == fresh.about()


# what is refused


def test_another_agent_is_refused_by_the_field_that_differs(fresh, tmp_path):
    train(fresh, tmp_path / "run", 60)
    with pytest.raises(CheckpointError, match=r"seed is 3 in the file, expected 5"):
        train(pole(seed=5), tmp_path / "run", 120)
    with pytest.raises(CheckpointError, match=r"settings\.discount is 0\.9 in the file, expected 0\.8"):
        train(pole(discount=0.8), tmp_path / "run", 120)


def test_a_second_process_is_refused_and_learns_who_works_there(fresh, tmp_path):
    with (
        RunDirectory(tmp_path / "run", fresh.about()),
        pytest.raises(RunLocked, match=f"process {os.getpid()} on host"),
    ):
        train(fresh, tmp_path / "run", 100)


@pytest.mark.parametrize(("field", "value"), [("steps", -1), ("steps", 1.5), ("checkpoint_every", 0), ("keep", 0)])
def test_numbers_are_checked(fresh, tmp_path, field, value):
    arguments = {"steps": 10} | {field: value}
    with pytest.raises(ValueError, match=field):
        train(fresh, tmp_path / "run", **arguments)


# disks and numbers that fail


def test_no_room_for_a_checkpoint_leaves_the_one_before(whole, fresh, tmp_path, monkeypatch):
    written = []

    def half(path, writer):
        written.extend([path] if "safetensors" in path.name else [])
        if len(written) == 4:
            path.write_bytes(b"half of it")
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        real(path, writer)

    real = atomic.write_new
    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_new", half)
        with pytest.raises(OSError, match="Saving failed") as error:
            train(fresh, tmp_path / "run", STEPS, checkpoint_every=100)
    assert error.value.errno == errno.ENOSPC
    assert saved_steps(tmp_path / "run") == [100, 200]
    assert load(tmp_path / "run").step == 200
    assert not list((tmp_path / "run").rglob("*.tmp"))
    train(fresh, tmp_path / "run", STEPS)
    assert left(tmp_path / "run") == whole


FULL = """
import errno, os, sys
from pathlib import Path
from urbe.deep.compilation import cache_compilation, default_folder
cache_compilation(sys.argv[3])
from urbe.deep.saving.load import load
from urbe.deep.presets import dqn_urbe
from urbe.deep.settings import Network
from urbe.deep.training.train import train
from urbe.runs.directory import saved_steps
from urbe.simulators import CartPole, UncertaintySet

disk, ballast = Path(sys.argv[1]), Path(sys.argv[1], "ballast")
poles, tiny = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0)), {"batch": 16, "capacity": 300, "warm_up": 50}
agent = dqn_urbe(CartPole(), poles, seed=3, log_every=50, network=Network(hidden=(16, 16)), **tiny)
train(agent, disk / "run", 100)
room = os.statvfs(disk)
ballast.write_bytes(bytes(room.f_bavail * room.f_frsize - 30_000))
before = agent.tensors()
try:
    train(agent, disk / "run", 400)
except OSError as error:
    assert error.errno == errno.ENOSPC, error
    print(saved_steps(disk / "run"))
again = load(disk / "run").tensors()
print(all(again[name].tobytes() == before[name].tobytes() for name in before))
ballast.unlink()
train(agent, disk / "run", 400)
for name in ("log.csv", "episodes.csv"):
    Path(sys.argv[2], name).write_bytes((disk / "run" / name).read_bytes())
"""


def test_a_disk_that_is_really_full_leaves_the_checkpoint_before(whole, tmp_path):
    """A disk of 2 MB in memory, in a namespace of its own."""
    (tmp_path / "full.py").write_text(FULL)
    (tmp_path / "disk").mkdir()
    mounted = f"mount -t tmpfs -o size=2m none {tmp_path}/disk"
    try:
        subprocess.run(["unshare", "--mount", "sh", "-c", mounted], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting is not allowed here; the test above lets the call fail")
    command = f"{mounted} && exec {sys.executable} {tmp_path}/full.py {tmp_path}/disk {tmp_path} {default_folder()}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split("\n")[:2] == ["[0, 100]", "True"]
    for name in CSV:
        assert (tmp_path / name).read_bytes() == whole[name]


@dataclass(frozen=True)
class Breaking:
    """A walk of the user's own that ends at 5; the reward at 4 is not a number, if it is broken."""

    broken: bool
    time_limit: int = 60
    n_actions: int = 2

    def nominal(self):
        return CartPole().nominal()

    def start(self, _key, _params):
        return jnp.int32(0)

    def outcomes(self, state, action, _params):
        after = jnp.abs(state + jnp.where(action == 1, 1, -1).astype(jnp.int32))
        reward = jnp.where((after == 4) & self.broken, jnp.float32(jnp.nan), jnp.float32(1.0))
        return Outcomes(jnp.ones(1, jnp.float32), after[None], reward[None], (after == 5)[None])

    def observe(self, state):
        return state[None].astype(jnp.float32)


def test_a_number_that_is_none_stops_the_run_which_goes_on_once_it_is_mended(tmp_path):
    def made(broken):
        return dqn(Breaking(broken), seed=1, log_every=20, **TINY)

    sound = train(made(False), tmp_path / "sound", 160, checkpoint_every=20)
    replay = sound.trainer.learner.replay
    first = int(np.argmax(np.asarray(replay.successors.obs)[:, 0, 0, 0] == 4.0)) + 1  # of the steps, which count from 1
    assert 20 < first < 160
    with pytest.raises(NotFinite, match=rf"The reward at step {first} is not finite"):
        train(made(True), tmp_path / "run", 160, checkpoint_every=20)
    saved = saved_steps(tmp_path / "run")
    assert saved[-1] == (first - 1) // 20 * 20
    assert load(tmp_path / "run").step == saved[-1]
    assert (tmp_path / "sound/log.csv").read_bytes().startswith((tmp_path / "run/log.csv").read_bytes())
    train(made(False), tmp_path / "run", 160)
    for name in CSV:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "sound" / name).read_bytes()
    one, other = (load(tmp_path / name).tensors() for name in ("run", "sound"))
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


# TensorBoard


def test_tensorboard_shows_every_row_once(fresh, tmp_path, monkeypatch):
    """Killed between checkpoints and after rows that no checkpoint knows, twice, and extended."""
    save = RunDirectory.save

    def stopped(run, step, *what):
        if step in (170, 290):
            raise Interrupted
        save(run, step, *what)

    for steps in (170, 290):
        with monkeypatch.context() as patch:
            patch.setattr(RunDirectory, "save", stopped)
            with pytest.raises(Interrupted):
                train(fresh, tmp_path / "run", steps, checkpoint_every=80, tensorboard=True)
    train(fresh, tmp_path / "run", STEPS, checkpoint_every=80, tensorboard=True)
    assert len(list((tmp_path / "run" / "tensorboard").iterdir())) == 3
    curves = shown(tmp_path / "run" / "tensorboard")
    log, episodes = (read_rows(tmp_path / "run" / name) for name in CSV)
    for column, values in log.items():
        expected = [(s, np.float32(x)) for s, x in zip(log["step"], values, strict=True) if x == x]
        assert column == "step" or curves[f"train/{column}"] == expected
    for column in ("return", "length"):
        expected = list(zip(episodes["step"], episodes[column].astype(np.float32), strict=True))
        assert curves[f"episode/{column}"] == expected
    members = read_rows(tmp_path / "run" / "members.csv")
    for column in members.keys() - {"step"}:
        expected = list(zip(members["step"], members[column].astype(np.float32), strict=True))
        assert curves[f"members/{column}"] == expected
    columns = {"train": LOG[1:], "members": members.keys() - {"step"}, "episode": ("return", "length")}
    assert set(curves) == {f"{kind}/{name}" for kind, names in columns.items() for name in names}


def test_without_the_package_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match=r"urbe\[tensorboard\]"):
        tensorboard.Events(tmp_path / "tensorboard", 0)
