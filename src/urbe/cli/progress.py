"""Progress of long solves, on standard error, so that output can be piped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def sweeps_progress(show: bool, tolerance: float) -> Iterator[Callable[[int, float], None] | None]:
    """A bar that fills as the logarithm of the certified gap falls to the tolerance; nothing when not on a terminal."""
    console = Console(stderr=True)
    if not show or not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("solving", total=1.0)
        first: list[float] = []

        def report(step: int, gap: float) -> None:
            first.append(gap) if not first else None
            whole = math.log(max(first[0], tolerance * 10, 1e-300)) - math.log(max(tolerance, 1e-300))
            done = math.log(max(first[0], 1e-300)) - math.log(max(gap, 1e-300))
            bar.update(task, completed=min(max(done / whole, 0.0), 1.0), description=f"sweep {step}, gap {gap:.2g}")

        yield report
