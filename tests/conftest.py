"""Settings shared by all tests."""

import gc
import os
import signal
import sys
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fixtures.array_types import check_when_imported

check_when_imported()  # here, since modules of tests import the library as they are collected
# compilation makes first examples slow, so deadlines would test the compiler; examples are the same in every run
common = {"deadline": None, "derandomize": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("compiled", max_examples=30, **common)
settings.register_profile("thorough", max_examples=300, **common)
settings.register_profile("interpreted", max_examples=5, **common)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "compiled"))


@pytest.fixture(autouse=True, scope="module")
def _programs_are_kept_by_request():
    """A module that keeps compiled programs on the disk does so for itself alone."""
    yield
    jax = sys.modules.get("jax")
    if jax is not None and jax.config.jax_compilation_cache_dir is not None:
        from jax.experimental.compilation_cache import compilation_cache

        jax.config.update("jax_compilation_cache_dir", None)
        compilation_cache.reset_cache()


MANY_MAPS = 20_000
"""Of the 65,530 pieces of memory that Linux lets a process map by default; each compiled program takes several."""

MUCH = 3 * 10**9
"""Bytes of a process, after which compiled programs are dropped."""


@pytest.fixture(autouse=True, scope="module")
def _compiled_programs_are_dropped():
    """Drops what JAX compiled before the compiler aborts the process, or the machine runs out of memory."""
    yield
    jax, process = sys.modules.get("jax"), Path("/proc/self")
    if jax is None or not process.exists():
        return
    maps, bytes_ = (process / "maps").read_bytes().count(b"\n"), int((process / "statm").read_text().split()[1]) * 4096
    if maps > MANY_MAPS or bytes_ > MUCH:
        jax.clear_caches()
        gc.collect()


def pytest_terminal_summary(terminalreporter):
    """Counts of models held against the high-precision oracle, over all processes."""
    counts: dict[str, list[int]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for key, value in getattr(report, "user_properties", ()):
                if key == "corpus" and report.when == "call":
                    family, *numbers = value
                    known = counts.get(family, [0, 0, 0])
                    counts[family] = [a + b for a, b in zip_longest(known, numbers, fillvalue=0)]
    if counts:
        terminalreporter.section("models against the high-precision oracle")
        for family, (models, wrong, undecided) in sorted(counts.items()):
            left = f", {undecided} undecided" if undecided else ""
            terminalreporter.line(f"{family:>40}: {models:6d} models, {wrong} with violations{left}")
        models, _, undecided = (sum(column) for column in zip(*counts.values(), strict=True))
        terminalreporter.line(f"{'all':>40}: {models:6d} models, {undecided} undecided")
