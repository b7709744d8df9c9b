"""Run directories: one config, one process, the newest checkpoints, and logs that match them."""

import copy
import os
import re
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from fixtures.old_files import write_folder_checkpoint
from urbe.runs.directory import RunDirectory, read_checkpoint, read_config, read_finished, read_logs, saved_steps
from urbe.runs.errors import CheckpointError
from urbe.runs.lock import RunLocked
from urbe.runs.row_log import read_rows
from urbe.runs.tensors import save_tensors

CONFIG = {"seed": 3, "net": {"sizes": [64, 32], "rate": 1e-3}, "name": None}


def state(k):
    return {"w": np.full(3, k, np.float32)}


def test_a_new_run_has_its_config_and_nothing_else(tmp_path):
    with RunDirectory(tmp_path / "deep" / "run", CONFIG) as run:
        assert run.latest() is None
        assert run.finished() is None
        assert sorted(os.listdir(run.path)) == ["checkpoints", "config.json", "lock"]
    assert read_config(tmp_path / "deep" / "run") == CONFIG
    assert saved_steps(tmp_path / "deep" / "run") == []
    with pytest.raises(CheckpointError, match="run: has no checkpoint, expected one"):
        read_checkpoint(tmp_path / "deep" / "run")


def test_the_newest_checkpoint_comes_back(tmp_path):
    with RunDirectory(tmp_path, CONFIG) as run:
        run.save(5, state(5), {"k": 5})
        run.save(10**12 - 1, state(7))
        for found in (run.latest(), read_checkpoint(tmp_path)):
            assert (found.step, found.tensors["w"].tolist(), found.about) == (10**12 - 1, [7, 7, 7], {})
    with RunDirectory(tmp_path, CONFIG) as run:
        assert run.latest().step == 10**12 - 1
    assert read_checkpoint(tmp_path, 5).about == {"k": 5}
    with pytest.raises(CheckpointError, match=r"has checkpoints of the steps 5, 999999999999, expected one of step 6"):
        read_checkpoint(tmp_path, 6)


@pytest.mark.parametrize(("keep", "left"), [(2, [5, 6]), (1, [6]), (3, [4, 5, 6])])
def test_old_checkpoints_go(keep, left, tmp_path):
    with RunDirectory(tmp_path, CONFIG, keep=keep) as run:
        for step in range(7):
            run.save(step, state(step))
    assert saved_steps(tmp_path) == left
    assert [read_checkpoint(tmp_path, step).tensors["w"][0] for step in left] == left
    assert sorted(os.listdir(tmp_path / "checkpoints")) == [f"{step:012d}.safetensors" for step in left]


def test_the_same_step_replaces_and_earlier_ones_are_refused(tmp_path):
    with RunDirectory(tmp_path, CONFIG) as run:
        run.save(5, state(1))
        run.save(5, state(2))
        assert run.latest().tensors["w"][0] == 2
        for step, message in [(4, "step is 4, expected a whole number of at least 5"), (10**12, "at most 12 digits")]:
            with pytest.raises(ValueError, match=message):
                run.save(step, state(3))
        with pytest.raises(ValueError, match=r"^about.best is inf, expected a finite number"):
            run.save(6, state(3), {"best": float("inf")})
        assert saved_steps(tmp_path) == [5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 4}, "config.json: seed is 3 in the file, expected 4 as given. Start as this run was started, or in"),
        ({"seed": 3.0}, "seed is 3 in the file, expected 3.0 as given"),
        ({"net": {"sizes": [64, 16], "rate": 1e-3}}, "net.sizes[1] is 32 in the file, expected 16 as given."),
        ({"net": {"sizes": [64], "rate": 2e-3}}, "net.rate is 0.001 in the file, expected 0.002 as given (also "
         "different: net.sizes[1])"),
        ({"more": True}, "more is not there in the file, expected true as given"),
        ({"name": []}, "name is null in the file, expected [] as given"),
        ({"net": None}, "net is not there in the file, expected null as given (also different: net.sizes[0], "),
    ],
)  # fmt: skip
def test_another_config_is_refused_in_words(change, message, tmp_path):
    RunDirectory(tmp_path, CONFIG).close()
    with pytest.raises(CheckpointError, match=re.escape(message)):
        RunDirectory(tmp_path, CONFIG | change)
    RunDirectory(tmp_path, dict(reversed(CONFIG.items()))).close()  # the order of fields is no difference


def test_other_folders_are_refused_and_not_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(CheckpointError, match=r"is not a run's folder: it has no config.json but holds thesis.tex"):
        RunDirectory(tmp_path, CONFIG)
    assert os.listdir(tmp_path) == ["thesis.tex"]
    with pytest.raises(CheckpointError, match=r"thesis.tex: is a file, expected a run's folder"):
        RunDirectory(tmp_path / "thesis.tex", CONFIG)


@pytest.mark.parametrize("name", ["config.json", "finished.json"])
def test_damaged_files_are_refused(name, memory):
    with RunDirectory(memory, CONFIG) as run:
        run.finish({"best": 0.5})
    sound = (memory / name).read_bytes()
    read = {"config.json": read_config, "finished.json": read_finished}[name]
    for at in range(len(sound)):
        (memory / name).write_bytes(sound[:at] + bytes([sound[at] ^ 1 << at % 8]) + sound[at + 1 :])
        with pytest.raises(CheckpointError, match=name):
            read(memory)


def test_configs_that_json_would_change_are_refused(tmp_path):
    with pytest.raises(TypeError, match=re.escape("config.sizes is of type tuple")):
        RunDirectory(tmp_path / "run", {"sizes": (1, 2)})
    with pytest.raises(ValueError, match="keep is 0, expected a whole number of at least 1"):
        RunDirectory(tmp_path / "run", {}, keep=0)
    assert os.listdir(tmp_path) == []


def test_a_finished_run_says_so(tmp_path):
    with RunDirectory(tmp_path, CONFIG) as run:
        run.finish({"return": 195.5})
        assert run.finished() == {"return": 195.5}
    assert read_finished(tmp_path) == {"return": 195.5}
    assert read_finished(tmp_path / "nowhere") is None


# locks


def test_the_second_in_a_folder_is_refused_and_learns_who_is_there(tmp_path):
    with RunDirectory(tmp_path, CONFIG) as run:
        with pytest.raises(RunLocked) as failure:
            RunDirectory(tmp_path, CONFIG)
        assert f"process {os.getpid()} on host {socket.gethostname()} since 20" in str(failure.value)
        assert "Wait for it or end it" in str(failure.value)
        assert failure.value.holder["pid"] == os.getpid()
        assert str(copy.copy(failure.value)) == str(failure.value)
        run.save(1, state(1))  # the first goes on
    RunDirectory(tmp_path, CONFIG).close()


def test_who_is_there_may_not_be_known_yet(tmp_path):
    with RunDirectory(tmp_path, CONFIG):
        for text in ("", "[1]", "{", "[" * 4000):
            (tmp_path / "lock").write_text(text)
            with pytest.raises(RunLocked, match="process unknown on host unknown since unknown"):
                RunDirectory(tmp_path, CONFIG)


def test_the_lock_of_another_process_holds_until_it_is_killed(tmp_path):
    code = (
        "import sys, time; from urbe.runs.directory import RunDirectory\n"
        "run = RunDirectory(sys.argv[1], {}); print('in', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "in\n"
        with pytest.raises(RunLocked, match=f"process {process.pid} on host"):
            RunDirectory(tmp_path, {})
        process.send_signal(signal.SIGKILL)
        process.wait()
        RunDirectory(tmp_path, {}).close()


def test_a_refused_opening_frees_the_lock(tmp_path):
    RunDirectory(tmp_path, CONFIG).close()
    with pytest.raises(CheckpointError):
        RunDirectory(tmp_path, {})
    RunDirectory(tmp_path, CONFIG).close()


def test_a_closed_run_does_nothing(tmp_path):
    run = RunDirectory(tmp_path, CONFIG)
    run.close()
    run.close()
    for call in (lambda: run.save(1, {}), lambda: run.log("log.csv", ["x"]), run.finish):
        with pytest.raises(ValueError, match="is closed, expected an open one"):
            call()


# logs


def test_logs_are_cut_to_what_the_newest_checkpoint_knew(tmp_path):
    with RunDirectory(tmp_path, CONFIG) as run:
        first = run.log("log.csv", ["x"])
        first.append({"x": 1})
        run.save(1, {})
        first.append({"x": 2})
        late = run.log("late.csv", ["y"])
        late.append({"y": 3})
    with RunDirectory(tmp_path, CONFIG) as run:
        run.log("late.csv", ["z"])  # no checkpoint knew it: begins anew
        run.save(2, {})  # log.csv, not opened, stays as step 1 knew it
    with RunDirectory(tmp_path, CONFIG) as run:
        run.log("log.csv", ["x"]).append({"x": 4})
        with pytest.raises(ValueError, match=re.escape("name is 'log.csv', which is open already")):
            run.log("log.csv", ["x"])
    assert read_rows(tmp_path / "log.csv")["x"].tolist() == [1, 4]
    assert (tmp_path / "late.csv").read_text() == "z\n"


def test_without_a_checkpoint_logs_begin_anew(tmp_path):
    for x in (1, 2):
        with RunDirectory(tmp_path, CONFIG) as run:
            run.log("log.csv", ["x"]).append({"x": x})
    assert read_rows(tmp_path / "log.csv")["x"].tolist() == [2]


def test_lost_logs_are_refused(tmp_path):
    with RunDirectory(tmp_path, CONFIG) as run:
        run.log("log.csv", ["x"]).append({"x": 1})
        run.save(1, {})
    (tmp_path / "log.csv").unlink()
    with (
        RunDirectory(tmp_path, CONFIG) as run,
        pytest.raises(CheckpointError, match=r"log.csv: is missing, expected at"),
    ):
        run.log("log.csv", ["x"])


@pytest.mark.parametrize("name", ["log", "../log.csv", "config.json", "a/b.csv", ".csv", "", "log.csv\n"])
def test_logs_have_plain_names(name, tmp_path):
    with RunDirectory(tmp_path, CONFIG) as run, pytest.raises(ValueError, match="expected letters, digits"):
        run.log(name, ["x"])


# what a crash or the disk leaves


def test_what_a_crash_left_is_ignored_and_cleared_away(tmp_path):
    with RunDirectory(tmp_path, CONFIG) as run:
        run.save(1, state(1))
    half = tmp_path / "checkpoints" / f"{2:012d}"  # as urbe 0.1.0 left it
    half.mkdir()
    (half / f"tensors-{'0' * 64}.safetensors").write_bytes(b"x")
    (half / f".manifest.json.{'0' * 16}.tmp").write_bytes(b"x")
    (tmp_path / "checkpoints" / f".{2:012d}.safetensors.{'0' * 16}.tmp").write_bytes(b"x")
    (tmp_path / f".finished.json.{'0' * 16}.tmp").write_bytes(b"x")
    (tmp_path / "notes.txt").write_text("mine")
    assert saved_steps(tmp_path) == [1]
    assert read_checkpoint(tmp_path).step == 1
    with RunDirectory(tmp_path, CONFIG) as run:
        assert run.latest().step == 1
        assert os.listdir(tmp_path / "checkpoints") == [f"{1:012d}.safetensors"]
        assert sorted(os.listdir(tmp_path)) == ["checkpoints", "config.json", "lock", "notes.txt"]


def test_a_crash_before_the_config_is_no_other_folder(tmp_path):
    (tmp_path / "lock").write_text("")
    (tmp_path / f".config.json.{'0' * 16}.tmp").write_text("half")
    with RunDirectory(tmp_path, CONFIG) as run:
        assert sorted(os.listdir(run.path)) == ["checkpoints", "config.json", "lock"]


def test_a_damaged_checkpoint_is_not_passed_over_in_silence(tmp_path):
    with RunDirectory(tmp_path, CONFIG) as run:
        log = run.log("log.csv", ["x"])
        for step in (1, 2):
            log.append({"x": step})
            run.save(step, state(step))
    file = tmp_path / "checkpoints" / f"{2:012d}.safetensors"
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with RunDirectory(tmp_path, CONFIG) as run:
        message = f"is damaged: its arrays have the SHA-256 .* Delete {file} to resume from step 1."
        with pytest.raises(CheckpointError, match=message):
            run.latest()
    file.write_text("{")
    with pytest.raises(CheckpointError, match=r"is truncated, damaged or not safetensors"):
        RunDirectory(tmp_path, CONFIG)
    file.unlink()
    with RunDirectory(tmp_path, CONFIG) as run:  # as the message said
        assert run.latest().step == 1
        run.log("log.csv", ["x"])
    assert read_rows(tmp_path / "log.csv")["x"].tolist() == [1]


def test_checkpoints_of_others_in_the_folder_are_refused(tmp_path):
    RunDirectory(tmp_path, CONFIG).close()
    folder = tmp_path / "checkpoints" / f"{3:012d}.safetensors"
    expected = {"step": 3, "logs": {}, "about": {}}
    for about, message in [
        ({}, "is not the checkpoint of step 3 of a run"),
        (expected | {"step": 4}, "is not the checkpoint of step 3 of a run"),
        (expected | {"logs": []}, "has no logs, expected a dict"),
        (expected | {"logs": {"../x.csv": 3}}, "gives the log '../x.csv' the length 3, expected bytes of a .csv"),
        (expected | {"logs": {"x.csv": -3}}, "gives the log 'x.csv' the length -3"),
        (expected | {"logs": {"x.csv": True}}, "gives the log 'x.csv' the length True"),
    ]:
        save_tensors(folder, {}, about)
        with pytest.raises(CheckpointError, match=re.escape(message)):
            RunDirectory(tmp_path, CONFIG)
    save_tensors(folder, {}, expected)
    RunDirectory(tmp_path, CONFIG).close()


def test_a_reader_follows_a_run_that_goes_on(tmp_path, monkeypatch):
    """The newest checkpoint is deleted, by the process that writes, just before it is read."""
    from urbe.runs import directory as runs

    with RunDirectory(tmp_path, CONFIG, keep=1) as run:
        run.save(1, state(1))
        load = runs.load_tensors

        def overtaken(folder):
            if folder.stem.endswith("1"):
                run.save(2, state(2))
            return load(folder)

        monkeypatch.setattr(runs, "load_tensors", overtaken)
        assert read_checkpoint(tmp_path).step == 2


# damaged logs


def logged(folder):
    """A run with a log of which a checkpoint knows two rows; its bytes."""
    with RunDirectory(folder, CONFIG) as run:
        log = run.log("log.csv", ["x", "y"])
        log.extend({"x": [1, 2], "y": [0.5, 0.25]})
        run.save(1, {})
    return (folder / "log.csv").read_bytes()


def test_every_flipped_byte_of_a_log_is_refused(memory):
    data = logged(memory / "run")
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1
        (memory / "run" / "log.csv").write_bytes(damaged)
        with RunDirectory(memory / "run", CONFIG) as run, pytest.raises(CheckpointError, match=r"log\.csv: "):
            run.log("log.csv", ["x", "y"])
    (memory / "run" / "log.csv").write_bytes(data)
    with RunDirectory(memory / "run", CONFIG) as run:
        run.log("log.csv", ["x", "y"])


def test_a_damaged_log_is_not_cut(memory):
    data = logged(memory / "run")
    damaged = data.replace(b"0.25", b"0.35") + b"3,4.0\n"
    (memory / "run" / "log.csv").write_bytes(damaged)
    with RunDirectory(memory / "run", CONFIG) as run, pytest.raises(CheckpointError, match="is damaged: its first"):
        run.log("log.csv", ["x", "y"])
    assert (memory / "run" / "log.csv").read_bytes() == damaged
    with pytest.raises(CheckpointError, match="is damaged: its first"):
        read_logs(memory / "run", read_checkpoint(memory / "run"))


def test_the_rows_of_a_checkpoint_are_read_from_a_log_that_goes_on(memory):
    data = logged(memory / "run")
    (memory / "run" / "log.csv").write_bytes(data + b"3,4.0\n4,")
    rows = read_logs(memory / "run", read_checkpoint(memory / "run"))
    assert {name: column.tolist() for name, column in rows["log.csv"].items()} == {"x": [1, 2], "y": [0.5, 0.25]}
    (memory / "run" / "log.csv").write_bytes(data[:-1])
    with pytest.raises(CheckpointError, match="lines are lost"):
        read_logs(memory / "run", read_checkpoint(memory / "run"))


def test_a_run_of_an_older_version_goes_on(memory):
    """Its checkpoints are folders, and know no hashes of logs."""
    path = memory / "run"
    with RunDirectory(path, CONFIG) as run:
        run.log("log.csv", ["x"]).extend({"x": [1, 2, 3]})
    expected = {"step": 1, "logs": {"log.csv": len("x\n1\n")}, "about": {"k": 1}}
    write_folder_checkpoint(path / "checkpoints" / f"{1:012d}", state(1), expected)
    expected = {"step": 2, "logs": {"log.csv": len("x\n1\n2\n")}, "about": {"k": 2}}
    write_folder_checkpoint(path / "checkpoints" / f"{2:012d}", state(2), expected)
    assert saved_steps(path) == [1, 2]
    found = read_checkpoint(path)
    assert (found.step, found.about, found.tensors["w"].tolist()) == (2, {"k": 2}, [2, 2, 2])
    with RunDirectory(path, CONFIG) as run:
        assert run.latest().step == 2
        run.log("log.csv", ["x"]).append({"x": 5})
        run.save(2, state(20))
        assert run.latest().tensors["w"][0] == 20
        run.save(3, state(3))
    assert sorted(os.listdir(path / "checkpoints")) == [f"{step:012d}.safetensors" for step in (2, 3)]
    assert read_rows(path / "log.csv")["x"].tolist() == [1, 2, 5]
    (half,) = [path / "checkpoints" / f"{4:012d}"]
    write_folder_checkpoint(half, state(4), expected)
    (file,) = half.glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(CheckpointError, match="is damaged: 'w' has another SHA-256"):
        read_checkpoint(path, 4)
