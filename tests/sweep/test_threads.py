"""The environment of processes with one thread."""

import os
from contextlib import suppress

import pytest

from urbe.sweep.threads import environment, one_thread


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
    assert one_thread() == {**dict.fromkeys(libraries, "1"), "XLA_FLAGS": after}


def test_the_environment_is_as_before_afterwards(monkeypatch):
    monkeypatch.setenv("NPROC", "4")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    with suppress(RuntimeError), environment(one_thread()):
        assert os.environ["NPROC"] == "1"
        raise RuntimeError
    assert os.environ["NPROC"] == "4"
    assert "XLA_FLAGS" not in os.environ
