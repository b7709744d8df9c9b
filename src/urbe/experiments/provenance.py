"""Where results come from: code, versions, machine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent

_NOT_RESULTS = ("cli", "io", "report")
"""Packages that no number depends on."""


def versions() -> dict[str, str]:
    """Of this package and of those that compute."""
    return {name: version(name) for name in ("urbe", "numpy", "scipy", "numba")}


@cache
def code_digest() -> str:
    """A hash of the sources that numbers depend on, and of the versions they run with."""
    digest = hashlib.sha256(repr(sorted(versions().items())).encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        if relative.parts[0] not in _NOT_RESULTS:
            digest.update(f"\0{relative.as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def commit() -> str | None:
    """The commit the code is at, with "+ changes" if its files differ from it; None when unknown."""
    if _git("ls-files", "--error-unmatch", "__init__.py") is None:  # not the repository that happens to be around us
        return None
    head = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain", "--", ".")
    return head if head is None or not changes else f"{head} + changes"


def machine() -> dict[str, str]:
    """Processor family, cores this process may use, operating system and Python; no names."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": platform.machine(),
        "cores": str(cores),
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
