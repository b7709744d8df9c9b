"""Report progress on standard error: a bar on a terminal, otherwise lines.

Without a terminal (a log file, a job on a cluster) a line is written at the start, about every 30 seconds and at the
end, with the count, the pace and the remaining time.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Protocol

EVERY = 30.0
"""Minimum seconds between two lines."""


class Show(Protocol):
    """A function that reports progress."""

    def __call__(self, done: float, note: str = "", *, total: float | None = None, left: float | None = None) -> None:
        """Reports progress.

        Args:
          done: amount done, including what was done before the start.
          note: a short text, such as an intermediate result.
          total: the new total, if it has changed.
          left: remaining seconds, if there is a better estimate than from the pace so far.
        """


@contextmanager
def progress(name: str, total: float | None, *, start: float = 0, unit: str = "", shown: bool = True) -> Iterator[Show]:
    """Yields a function that reports the progress of a task.

    Args:
      name: name of the task.
      total: amount to do; None if the first call sets it.
      start: amount done before.
      unit: unit of the amount, in the plural.
      shown: whether to report at all.
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


def _live() -> Any:
    """Bars on the terminal, which vanish at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def _bar(name: str, total: float | None, start: float) -> Iterator[Show]:
    with _live() as live:
        task = live.add_task(name, total=total, completed=int(start), note="")

        def show(done: float, note: str = "", *, total: float | None = None, left: float | None = None) -> None:
            known = "" if left is None else f"{duration(left)} left"
            live.update(task, completed=done, total=total, note="  ".join(filter(None, (note, known))))

        yield show


class Report(Protocol):
    """A function that reports a task of several stages."""

    def __call__(self, stage: str, done: float, total: float | None = None, note: str = "") -> None:
        """Reports the current stage.

        Args:
          stage: name of the stage, such as "solving".
          done: amount of the stage that is done.
          total: amount of the stage; None if it is unknown.
          note: a short text, such as an intermediate result.
        """


def silent(stage: str, done: float, total: float | None = None, note: str = "") -> None:
    """Reports nothing."""


@contextmanager
def stages(name: str, *, shown: bool = True) -> Iterator[Report]:
    """Yields a function that reports the stages of a task, of which nobody knows how long they take.

    Without a terminal, the first line is written after `EVERY` seconds, so short tasks stay silent.

    Args:
      name: name of the task.
      shown: whether to report at all.
    """
    if not shown:
        yield silent
    elif sys.stderr.isatty():
        with _stage_bar(name) as report:
            yield report
    else:
        yield StageLines(name)


@contextmanager
def _stage_bar(name: str) -> Iterator[Report]:
    now: list[str] = []
    with _live() as live:
        task = live.add_task(name, total=None, note="")

        def report(stage: str, done: float, total: float | None = None, note: str = "") -> None:
            if now != [stage]:
                now[:] = [stage]
                live.reset(task, total=total, description=f"{name}: {stage}")
            live.update(task, completed=done, total=total, note=note)

        yield report


def of_gap(report: Report, tolerance: float) -> Callable[[int, float], None]:
    """Reports a solve in percent: how far the logarithm of the certified gap has fallen to that of the tolerance."""
    first: list[float] = []

    def tell(step: int, gap: float) -> None:
        first.append(gap) if not first else None
        whole = math.log(max(first[0], tolerance * 10, 1e-300)) - math.log(max(tolerance, 1e-300))
        done = math.log(max(first[0], 1e-300)) - math.log(max(gap, 1e-300))
        report("solving", int(100 * min(max(done / whole, 0.0), 1.0)), 100, f"sweep {step}, gap {gap:.2g}")

    return tell


class StageLines:
    """Prints a line about the current stage at most every `EVERY` seconds.

    Args:
      name: name of the task.
      clock: returns the time in seconds.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock, self._last = name, clock, clock()

    def __call__(self, stage: str, done: float, total: float | None = None, note: str = "") -> None:
        now = self._clock()
        if now - self._last < EVERY:
            return
        self._last = now
        of = "" if total is None else f" of {total:.12g}"
        text = ", ".join(filter(None, (f"{self._name}: {stage}", f"{done:.12g}{of}", note)))
        print(f"{text}.", file=sys.stderr, flush=True)


class Lines:
    """Prints a line at the start, at most every `EVERY` seconds, and at the end.

    Args:
      name: name of the task.
      total: amount to do; None if the first call sets it.
      start: amount done before.
      unit: unit of the amount, in the plural.
      clock: returns the time in seconds.
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
        """Prints the last line."""
        if self._done > self._start:
            took = f"in {duration(self._clock() - self._begun)}"
            self._print(", ".join(filter(None, (f"{self._count()} {took}", self._note))) + ".")

    def _count(self) -> str:
        of = "" if self._total is None else f" of {self._total:.12g}"
        return f"{self._done:.12g}{of} {self._unit}".strip()

    def _print(self, text: str) -> None:
        print(f"{self._name}: {text}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Formats a duration in its two largest units.

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
