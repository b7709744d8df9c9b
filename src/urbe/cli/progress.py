"""Progress of long solves, on standard error, so that output can be piped."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from urbe.progress import progress


@contextmanager
def sweeps_progress(show: bool, tolerance: float) -> Iterator[Callable[[int, float], None] | None]:
    """A bar that fills as the logarithm of the certified gap falls to the tolerance; nothing when not on a terminal."""
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
