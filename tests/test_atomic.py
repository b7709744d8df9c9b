"""Files appear completely or not at all, and failures leave nothing behind."""

import copy
import os
import stat

import numpy as np
import pytest

from urbe import MDP
from urbe.atomic import replace_files, text_writer
from urbe.mdp.formats import ModelFileError, write_mdp


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writes_and_replaces_several_files(tmp_path):
    (tmp_path / "a").write_text("old")
    replace_files({tmp_path / "a": text_writer(["new ", "ünd"]), tmp_path / "b": text_writer([])})
    assert (tmp_path / "a").read_text(encoding="utf-8") == "new ünd"
    assert (tmp_path / "b").read_bytes() == b""
    assert names(tmp_path) == ["a", "b"]


def test_a_failing_writer_changes_nothing(tmp_path):
    (tmp_path / "a").write_text("old")

    def parts():
        yield "half"
        assert len(names(tmp_path)) == 3  # both are being written, beside the old one
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_files({tmp_path / "a": text_writer(["new"]), tmp_path / "b": text_writer(parts())})
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_all_is_on_the_disk_before_the_first_name_changes(tmp_path, monkeypatch):
    events = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor):
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def noted_replace(source, target):
        events.append("name")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    replace_files({tmp_path / "a": text_writer(["1"]), tmp_path / "b": text_writer(["2"])})
    assert events == ["file", "file", "name", "name", "folder"]


def test_a_failing_rename_leaves_nothing_behind(tmp_path, monkeypatch):
    def broken(*_):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="no"):
        replace_files({tmp_path / "a": text_writer(["1"])})
    assert names(tmp_path) == []


def test_a_link_keeps_pointing_and_its_file_changes(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    replace_files({tmp_path / "link": text_writer(["new"])})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_new_files_have_ordinary_rights(tmp_path):
    (tmp_path / "plain").write_text("")
    replace_files({tmp_path / "a": text_writer(["1"])})
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_folders_are_named_when_they_are_in_the_way_or_missing(tmp_path):
    with pytest.raises(IsADirectoryError, match="expected a file name"):
        replace_files({tmp_path: text_writer(["1"])})
    with pytest.raises(FileNotFoundError, match=r"No such directory to write into: .*nowhere"):
        replace_files({tmp_path / "nowhere" / "a": text_writer(["1"])})


def test_pipes_and_devices_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(FileExistsError, match="device, pipe or socket, expected a file name"):
            replace_files({tmp_path / name: text_writer(["1"])})
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert names(tmp_path) == ["link", "pipe"]


def test_a_file_that_cannot_be_made_is_named_as_given(tmp_path, monkeypatch):
    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", os.fspath(path))

    monkeypatch.setattr("urbe.atomic.os.open", refuse)
    with pytest.raises(PermissionError) as caught:
        replace_files({tmp_path / "a": text_writer(["1"])})
    assert caught.value.filename == str(tmp_path / "a")


@pytest.mark.parametrize("name", ["model.csv", "model.npz", "model.tra", "model.bmdp"])
def test_models_are_written_this_way(tmp_path, monkeypatch, name):
    mdp = MDP.from_dense(np.full((2, 1, 2), 0.5), 0.0, discount=0.9)
    write_mdp(mdp, tmp_path / name)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        write_mdp(mdp.with_discount(0.5), tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_errors_can_be_copied_as_between_processes():
    error = copy.copy(ModelFileError("m.csv", "found x.", 3, "reward"))
    assert str(error) == "m.csv, line 3, column reward: found x."
    assert (error.path, error.line, error.column) == ("m.csv", 3, "reward")
