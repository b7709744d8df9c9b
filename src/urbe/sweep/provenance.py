"""Provenance of results: versions, commit, machine."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def versions() -> dict[str, str]:
    """Versions of this package and of the installed numerical packages."""
    found = {}
    for name in ("urbe", "numpy", "scipy", "numba", "jax", "jaxlib"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def commit() -> str | None:
    """The commit of the code, with "+ changes" if its files differ from it; None if unknown."""
    if (
        _git("ls-files", "--error-unmatch", "__init__.py") is None
    ):  # not a repository that merely contains the installation
        return None
    head = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain", "--", ".")
    return head if head is None or not changes else f"{head} + changes"


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Family and, if the system reports it, model: "x86_64, AMD EPYC 7763"."""
    lines: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return ", ".join(filter(None, (platform.machine(), next(named, platform.processor()))))


def machine() -> dict[str, str]:
    """Processor, cores this process may use, operating system and Python; no names."""
    return {
        "processor": processor(),
        "cores": str(cores()),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=PACKAGE, capture_output=True, text=True, timeout=20.0, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
