"""Whatever call to the system fails, or is the last one: the old checkpoint or the new one is there, whole.

Every call that changes the disk fails in turn (`Disk`), in four ways: once, half-way through a write, from then on for
want of space, or as the last thing the process does. In the last case power may fail as well: bytes that were not
waited for are gone.
"""

import errno
import io
import os
import stat
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from urbe.runs.directory import RunDirectory, read_finished, saved_steps
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import load_tensors, save_tensors

CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "rmdir", "ftruncate", "pwrite")
GROWING = ("open", "write", "mkdir", "pwrite")  # what a full disk refuses


class Crash(BaseException):
    """The process is no more."""


class Disk:
    """Counts the calls that change the disk, and lets one of them fail.

    Args:
      at: which, from 0; None for none.
      how: "once", "half" (a write leaves half of its bytes), "full" (no room from then on), "crash" or "power".
    """

    def __init__(self, monkeypatch, at=None, how="once"):
        self.at, self.how = at, how
        self.calls, self.synced, self.dead = [], {}, False
        self.real = {name: getattr(os, name) for name in CALLS}
        for name in CALLS:
            monkeypatch.setattr(os, name, self.checked(name))
        monkeypatch.setattr(os, "fdopen", lambda descriptor, _: io.BufferedWriter(Raw(self, descriptor), 64))

    def checked(self, name):
        def call(*arguments, **keywords):
            if name == "open" and not arguments[1] & os.O_CREAT:
                return self.real[name](*arguments, **keywords)  # for reading
            self.count(name, arguments)
            result = self.real[name](*arguments, **keywords)
            if name == "open":
                self.note(result, 0)
            elif name == "fsync":
                self.note(arguments[0])
            return result

        return call

    def note(self, descriptor, size=None):
        """How many bytes of a file power cannot take."""
        about = os.fstat(descriptor)
        self.synced[about.st_ino] = about.st_size if size is None else size

    def count(self, name, arguments):
        if self.dead:
            raise Crash
        now, failing = len(self.calls), False
        self.calls.append(name)
        if self.at is not None:
            failing = now == self.at or (self.how == "full" and now > self.at and name in GROWING)
        if not failing:
            return
        if name == "write" and self.how != "once":
            self.real["write"](arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
        if self.how in ("crash", "power"):
            self.dead = True
            raise Crash
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def power_off(self, folder):
        """Cuts files to the bytes that were waited for."""
        for path in folder.rglob("*"):
            if path.is_file():
                os.truncate(path, min(path.stat().st_size, self.synced.get(path.stat().st_ino, 1 << 40)))


class Raw(io.FileIO):
    """A file whose writes are calls of `Disk`."""

    def __init__(self, disk, descriptor):
        super().__init__(descriptor, "wb")
        self.disk = disk

    def write(self, data):
        if self.disk.dead:
            return len(data)  # nobody is there to write
        return os.write(self.fileno(), data)


WAYS = ("once", "half", "full", "crash", "power")


@contextmanager
def failing(at, how, folder):
    """Calls within fail as planned; afterwards the disk is as such a process leaves it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        disk = Disk(monkeypatch, at, how)
        with suppress(Crash):
            yield disk
    if how == "power" and disk.dead:
        disk.power_off(folder)


def arrays(k):
    return {"w": np.full((3, 5), k, np.float32), "n": np.array(k), "late": np.arange(40 + k)[::2]}


def loaded(folder):
    """Which of `arrays` a checkpoint holds, all of it."""
    tensors, about = load_tensors(folder)
    k = about["k"]
    assert {name: array.tobytes() for name, array in tensors.items()} == {
        name: array.tobytes() for name, array in arrays(k).items()
    }
    return k


def count(folder, action):
    with failing(None, "once", folder) as disk:
        action()
    return disk.calls


def save(folder, k):
    save_tensors(folder, arrays(k), {"k": k})


def leftovers(file):
    """Half-written files that were to become this one."""
    return [each.name for each in file.parent.glob(f".{file.name}.*")]


@pytest.mark.parametrize("how", WAYS)
def test_saving_over_a_checkpoint(how, memory):
    save(memory / "trial", 1)
    calls = count(memory, lambda: save(memory / "trial", 2))
    assert {"open", "write", "fsync", "replace"} <= set(calls)
    found = set()
    for at in range(len(calls)):
        folder = memory / f"{at}"
        save(folder, 1)
        error = None
        with failing(at, how, memory):
            try:
                save(folder, 2)
            except OSError as caught:
                error = caught
        k = loaded(folder)
        found.add(k)
        if how in ("crash", "power"):
            pass  # leftovers are the next save's to find
        elif error is not None:
            assert error.errno == errno.ENOSPC
            assert str(folder) in str(error)
            assert "No space left on device. Saving failed" in str(error)
            assert "Free space or repair the disk, then resume" in str(error)
            assert leftovers(folder) == []
        save(folder, 3)
        assert loaded(folder) == 3
    assert found == {1, 2}


@pytest.mark.parametrize("how", WAYS)
def test_saving_the_first_checkpoint(how, memory):
    calls = count(memory, lambda: save(memory / "trial", 2))
    complete = set()
    for at in range(len(calls)):
        folder = memory / f"{at}"
        error = None
        with failing(at, how, memory):
            try:
                save(folder, 2)
            except OSError as caught:
                error = caught
        there = folder.exists()
        complete.add(there)
        if there:
            assert loaded(folder) == 2
        else:
            with pytest.raises(CheckpointError):
                load_tensors(folder)
            assert error is None or leftovers(folder) == []
        save(folder, 3)
        assert loaded(folder) == 3
    assert complete == {True, False}


def train(path, until, keep=2):
    """A run whose rows and arrays are functions of the step, saved at every other step."""
    with RunDirectory(path, {"seed": 0}, keep=keep) as run:
        newest = run.latest()
        log, other = run.log("log.csv", ["step", "x"]), run.log("other.csv", ["half"])
        for step in range(newest.step + 1 if newest else 1, until + 1):
            log.append({"step": step, "x": step / 3})
            if step % 2 == 0:
                other.extend({"half": np.array([step / 2, -0.0])})
                run.save(step, arrays(step), {"k": step})
        run.finish({"steps": until})


def content(path):
    return {name: (path / name).read_bytes() for name in ("log.csv", "other.csv", "finished.json")}


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("keep", [1, 2])
def test_runs_go_on_as_if_nothing_had_happened(how, keep, memory):
    """From any system call: what is there loads, no later than the last step reported, and the end is the same."""
    train(memory / "whole", 6, keep)
    expected = content(memory / "whole")
    calls = count(memory, lambda: train(memory / "trial", 6, keep))
    assert {"mkdir", "unlink"} <= set(calls)
    stages = set()
    for at in range(len(calls)):
        path = memory / f"{at}"
        with failing(at, how, path), suppress(OSError):
            train(path, 6, keep)
        steps = saved_steps(path)
        for step in steps:
            assert loaded_run(path, step) == step
        stages.add(steps[-1] if steps else 0)
        train(path, 6, keep)
        assert content(path) == expected
        assert saved_steps(path) == [4, 6][-keep:]
        assert read_finished(path) == {"steps": 6}
        left = sorted(str(name.relative_to(path)) for name in path.rglob("*") if name.is_file())
        assert len(left) == 5 + keep
    assert stages == {0, 2, 4, 6}


def loaded_run(path, step):
    tensors, about = load_tensors(path / "checkpoints" / f"{step:012d}.safetensors")
    assert {name: array.tobytes() for name, array in tensors.items()} == {
        name: array.tobytes() for name, array in arrays(step).items()
    }
    assert about["logs"]["log.csv"] <= (path / "log.csv").stat().st_size
    return about["about"]["k"]


def test_rows_that_do_not_fit_leave_no_half_line(memory):
    with RunDirectory(memory / "run", {}) as run:
        log = run.log("log.csv", ["step", "x"])
        log.append({"step": 1, "x": 0.5})
        for how in ("once", "half", "full"):
            with failing(0, how, memory), pytest.raises(OSError, match="No space left on device"):
                log.append({"step": 2, "x": 0.25})
            assert (memory / "run" / "log.csv").read_text() == "step,x\n1,0.5\n"
            assert log.position() == 13
        log.append({"step": 3, "x": 0.125})
    assert (memory / "run" / "log.csv").read_text() == "step,x\n1,0.5\n3,0.125\n"


def test_names_change_only_after_what_they_stand_for_is_on_the_disk(memory, monkeypatch):
    save(memory / "c", 1)
    events = []
    fsync, replace, unlink = os.fsync, os.replace, os.unlink

    def noted_fsync(descriptor):
        events.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        fsync(descriptor)

    def noted_replace(source, target):
        events.append("name")
        replace(source, target)

    def noted_unlink(path):
        events.append("delete")
        unlink(path)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    monkeypatch.setattr(os, "unlink", noted_unlink)
    save(memory / "c", 2)
    assert events == ["sync file", "name", "sync folder"]


@pytest.fixture
def synced(monkeypatch):
    """Paths of what was waited for, in order."""
    paths, fsync = [], os.fsync

    def noted(descriptor):
        paths.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    return paths


def test_logs_are_on_the_disk_before_the_checkpoint_that_knows_them(memory, synced):
    with RunDirectory(memory / "run", {}) as run:
        synced.clear()
        log = run.log("log.csv", ["x"])
        assert synced == [memory / "run"]  # the new name
        log.append({"x": 1})
        for call in (lambda: run.save(1, {}, {}), run.finish):
            synced.clear()
            call()
            assert synced[0] == memory / "run" / "log.csv"


def test_new_folders_are_on_the_disk(memory, synced):
    save(memory / "c", 1)
    assert synced[-1] == memory
    synced.clear()
    RunDirectory(memory / "run", {}).close()
    assert synced[0] == memory
    assert synced[-1] == memory / "run"


FULL = """
import errno, os, sys
import numpy as np
from urbe.runs.directory import RunDirectory, read_checkpoint, saved_steps

folder, outcomes = sys.argv[1], []
with RunDirectory(f"{folder}/run", {}) as run:
    log = run.log("log.csv", ["x"])
    run.save(0, {"w": np.full(5000, 0.0)})
    for step in range(1, 40):
        held, size = f"{folder}/ballast", os.statvfs(folder)
        with open(held, "wb") as file:  # leaves ever more pages free
            file.write(bytes(size.f_frsize * max(0, size.f_bavail - step // 2)))
        before, files = saved_steps(run.path), sorted(map(str, run.path.rglob("*")))
        try:
            run.save(step, {"w": np.full(5000, float(step))})
            outcomes.append(step)
        except OSError as error:
            assert error.errno == errno.ENOSPC and "Saving failed" in str(error), error
            assert (before, files) == (saved_steps(run.path), sorted(map(str, run.path.rglob("*"))))
            outcomes.append(None)
        os.unlink(held)
        newest = read_checkpoint(run.path)
        assert newest.step == max([0, *filter(None, outcomes)])
        assert (newest.tensors["w"] == newest.step).all()
print(outcomes.count(None), len(outcomes))
"""


def test_a_full_disk_leaves_the_checkpoint_before(memory):
    """A disk of 256 kB in memory, in a namespace of its own, with room for ever more of a checkpoint."""
    (memory / "full.py").write_text(FULL)
    (memory / "disk").mkdir()
    mounted = f"mount -t tmpfs -o size=256k none {memory}/disk"
    try:
        subprocess.run(["unshare", "--mount", "sh", "-c", mounted], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting is not allowed here; the tests above fail calls one by one")
    script = f"{mounted} && exec {sys.executable} {memory}/full.py {memory}/disk"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    refused, tried = map(int, done.stdout.split())
    assert 10 <= refused <= tried - 10
