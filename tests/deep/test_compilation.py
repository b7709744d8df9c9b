"""Compiled programs on the disk: stored, repaired and limited, in the user's cache folder."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from urbe.deep.compilation import cache_compilation, default_folder


@pytest.fixture
def _settings_of_jax():
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    yield
    cache_compilation(before["jax_compilation_cache_dir"])


@pytest.mark.usefixtures("_settings_of_jax")
def test_programs_are_kept_and_broken_ones_removed(tmp_path):
    folder = cache_compilation(tmp_path / "new" / "cache")
    (lambda x: jax.jit(lambda y: y * 3 + 1)(x))(jnp.arange(5, dtype=jnp.float32))
    entries = sorted(folder.glob("*-cache"))
    assert entries
    whole, half, empty, other = (folder / f"{name}-cache" for name in ("whole", "half", "empty", "other"))
    data = entries[0].read_bytes()
    for path, content in ((whole, data), (half, data[:-3]), (empty, b""), (other, b"\x28\xb5\x2f\xfd, of zstandard")):
        path.write_bytes(content)
    cache_compilation(folder)
    assert [path.exists() for path in (whole, half, empty, other)] == [True, False, False, True]


@pytest.mark.usefixtures("_settings_of_jax")
def test_the_oldest_programs_go_when_there_are_too_many(tmp_path):
    for age in range(5):
        path = tmp_path / f"{age}-cache"
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    (tmp_path / "checked").touch()
    cache_compilation(tmp_path, largest=350)
    assert sorted(path.name for path in tmp_path.glob("*-cache")) == ["0-cache", "1-cache", "2-cache"]


def test_the_users_cache_directory_is_respected(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_folder() == Path("/somewhere/urbe/jax")
    for nothing in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", nothing)
        assert default_folder() == tmp_path / ".cache/urbe/jax"


def test_importing_leaves_jax_as_it_is():
    code = (
        "import jax; before = {n: getattr(jax.config, n) for n in ('jax_compilation_cache_dir', 'jax_enable_x64')};"
        "import sys, urbe.deep.training.train, urbe.deep.training.tensorboard, urbe.deep.saving.load;"
        "import urbe.deep.compilation;"
        "assert before == {n: getattr(jax.config, n) for n in before}; assert 'tensorboardX' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
