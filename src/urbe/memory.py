"""Estimate the available memory, and raise before an allocation exceeds it.

The operating system kills a process that allocates too much, without a message. If the size of arrays depends on
arguments (draws, capacities, dense models), call `require` with their size before allocating them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

UNNOTICED = 100_000_000
"""Smaller requests, in bytes, are not checked: looking up the available memory would cost more than it saves."""


class NotEnoughMemory(MemoryError):
    """A request exceeds the available memory; the message says how much, what for, and what to change.

    Args:
      needed: how much is needed, for what, and how much is available.
      advice: what to change.
    """

    def __init__(self, needed: str, advice: str) -> None:
        super().__init__(f"{needed} {advice}")
        self.needed, self.advice = needed, advice

    def __reduce__(self) -> tuple[type[NotEnoughMemory], tuple[str, str]]:
        return NotEnoughMemory, (self.needed, self.advice)


@contextmanager
def advising(advice: str) -> Iterator[None]:
    """Replaces the advice of `NotEnoughMemory` raised in its block, for interfaces whose options have other names.

    Args:
      advice: what to change, as a sentence.
    """
    try:
        yield
    except NotEnoughMemory as refused:
        raise NotEnoughMemory(refused.needed, advice) from None


def require(parts: Mapping[str, float], advice: str) -> None:
    """Raises if an allocation would exceed the available memory.

    Args:
      parts: peak size of each part in bytes, by its description.
      advice: what to change, as a sentence.

    Raises:
      NotEnoughMemory: the sum of the parts exceeds the available memory.
    """
    total = sum(parts.values())
    if total < UNNOTICED:
        return
    left = available()
    if left is not None and total > left:
        most = max(parts, key=lambda part: parts[part])
        of_total = "" if len(parts) == 1 else f", of which {_gigabytes(parts[most])}"
        raise NotEnoughMemory(
            f"About {_gigabytes(total)} of memory are needed{of_total} for {most}, "
            f"but {_gigabytes(left)} are available.",
            advice,
        )


def available(root: Path = Path("/")) -> int | None:
    """Bytes that this process can allocate without swapping, within its control groups' limits; None if unknown.

    Args:
      root: folder that contains `proc` and `sys`.
    """
    known = [*_of_machine(root), *_of_groups(root)]
    return max(min(known), 0) if known else None


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"


def _of_machine(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        lines = []
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if found:
        yield found[0]
        return
    try:
        yield os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # no such name, or no such function
        return


def _of_groups(root: Path) -> Iterator[int]:
    """Yields the memory left by each control group of this process, for versions 2 and 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    base = root / "sys/fs/cgroup"
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _left(base, path, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _left(base / "memory", path, *names)


def _left(base: Path, path: str, limit: str, usage: str, reclaimable: str) -> Iterator[int]:
    """Yields the memory left by the control group and by each of its ancestors.

    Inside a container the path may be a path of the host; then only the base exists.
    """
    folder = base / path.lstrip("/")
    while True:
        try:
            most, used = (folder / limit).read_text().strip(), int((folder / usage).read_text())
            if most != "max":
                yield int(most) - used + _reclaimable(folder / "memory.stat", reclaimable)
        except (OSError, ValueError):
            pass  # no such group here, or one without a limit
        if folder == base:
            return
        folder = folder.parent


def _reclaimable(path: Path, name: str) -> int:
    """Bytes of cached files that the kernel releases when memory is short."""
    found = dict(line.split() for line in path.read_text().splitlines())
    return int(found.get(name, 0))
