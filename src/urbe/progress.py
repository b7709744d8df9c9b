"""Show the progress of long computations on standard error: a bar on a terminal, otherwise an occasional line.

Without a terminal (a log file, a job on a cluster) a line is written at the start, about every 30 seconds and at the
end, with the amount done, the pace and the remaining time.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Protocol

EVERY = 30.0
"""Least number of seconds between two lines."""


class Show(Protocol):
    """Shows progress."""

    def __call__(self, done: float, note: str = "", *, total: float | None = None, left: float | None = None) -> None:
        """Shows the progress.

        Args:
          done: the amount done, counted from 0.
          note: a few words on the results so far.
          total: the total, if it has changed.
          left: remaining seconds, if a better estimate than by the pace is known.
        """


@contextmanager
def progress(name: str, total: float | None, *, start: float = 0, unit: str = "", shown: bool = True) -> Iterator[Show]:
    """Yields a function that shows progress.

    Args:
      name: of what is done.
      total: of how much; None when the first call will say it.
      start: done before.
      unit: what is counted, in the plural.
      shown: whether to show anything at all.
    """
    if not shown:
        yield lambda *_, **__: None
    elif sys.stderr.isatty():
        with _bar(name, total, start) as show:
            yield show
    else:
        lines = Lines(name, total, start, unit)
        yield lines
        lines.end()


@contextmanager
def _bar(name: str, total: float | None, start: float) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as live:
        task = live.add_task(name, total=total, completed=int(start), note="")

        def show(done: float, note: str = "", *, total: float | None = None, left: float | None = None) -> None:
            known = "" if left is None else f"{duration(left)} left"
            live.update(task, completed=done, total=total, note="  ".join(filter(None, (note, known))))

        yield show


@contextmanager
def gap_progress(show: bool, tolerance: float) -> Iterator[Callable[[int, float], None] | None]:
    """A bar that fills as the logarithm of the certified gap falls to the tolerance; nothing without a terminal."""
    if not show or not sys.stderr.isatty():
        yield None
        return
    first: list[float] = []
    with progress("solving", 100) as update:

        def report(step: int, gap: float) -> None:
            first.append(gap) if not first else None
            whole = math.log(max(first[0], tolerance * 10, 1e-300)) - math.log(max(tolerance, 1e-300))
            done = math.log(max(first[0], 1e-300)) - math.log(max(gap, 1e-300))
            update(int(100 * min(max(done / whole, 0.0), 1.0)), f"sweep {step}, gap {gap:.2g}")

        yield report


class Lines:
    """Writes lines of text: at the start, at intervals, and at the end.

    Args:
      name: of what is done.
      total: of how much; None when the first call will say it.
      start: done before.
      unit: what is counted.
      clock: seconds.
    """

    def __init__(
        self,
        name: str,
        total: float | None,
        start: float = 0,
        unit: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._unit, self._clock = name, unit, clock
        self._done = self._start = start
        self._total, self._note = total, ""
        self._begun = self._last = clock()
        if total is not None and start < total:
            self._print(f"{self._count()}.")

    def __call__(self, done: float, note: str = "", *, total: float | None = None, left: float | None = None) -> None:
        now, first = self._clock(), self._total is None
        if first:
            self._start = done
        self._done, self._note = done, note
        self._total = self._total if total is None else total
        if now - self._last < EVERY and not first:
            return
        self._last = now
        pace = (done - self._start) / max(now - self._begun, 1e-9)
        if left is None and pace > 0 and self._total is not None:
            left = (self._total - done) / pace
        speed = f"{pace:.3g} {self._unit}/s" if self._unit and pace >= 1 else ""
        remaining = "" if left is None else f"{duration(left)} left"
        self._print(", ".join(filter(None, (self._count(), speed, remaining, note))) + ".")

    def end(self) -> None:
        """The last line."""
        if self._done > self._start:
            took = f"in {duration(self._clock() - self._begun)}"
            self._print(", ".join(filter(None, (f"{self._count()} {took}", self._note))) + ".")

    def _count(self) -> str:
        of = "" if self._total is None else f" of {self._total:.12g}"
        return f"{self._done:.12g}{of} {self._unit}".strip()

    def _print(self, text: str) -> None:
        print(f"{self._name}: {text}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Formats a time in its two largest units.

    >>> duration(4.2), duration(75), duration(3 * 3600 + 240), duration(50 * 3600)
    ('4 s', '1 min 15 s', '3 h 4 min', '2 d 2 h')
    """
    whole = max(round(seconds), 0)
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    for (name, size), (finer, part) in pairwise(units):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {name} {rest} {finer}" if rest else f"{whole // size} {name}"
    return f"{whole} s"
