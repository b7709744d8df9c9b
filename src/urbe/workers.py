"""Threads for sweeps: rows are divided into blocks, one per thread; kernels release the interpreter lock.

Rows are computed independently, so the result does not depend on the number of threads, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType

import numpy as np

from urbe import checks
from urbe.types import IntArray

SMALLEST_BLOCK = 200_000
"""With fewer entries, a second thread costs more than it saves."""


class Workers:
    """A pool of threads that runs `task(first_row, last_row)` over blocks of rows of similar size.

    Args:
      threads: number of threads; one runs everything in the calling thread.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = checks.whole_number("threads", threads, 1)
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None

    def run(self, entry_start: IntArray, task: Callable[[int, int], object]) -> None:
        """Calls `task` on blocks that cover all rows of `entry_start`, and waits."""
        n_rows, n_entries = len(entry_start) - 1, int(entry_start[-1])
        if self._pool is None or n_entries < 2 * SMALLEST_BLOCK:
            task(0, n_rows)
            return
        # one block per thread, the first in this one: switching threads costs more than uneven blocks
        cuts = np.linspace(0, n_entries, self.threads + 1)[1:-1]
        edges = [0, *np.searchsorted(entry_start, cuts).tolist(), n_rows]
        first, *others = list(pairwise(edges))
        running = [self._pool.submit(task, a, b) for a, b in others if a < b]
        task(*first)
        for done in running:
            done.result()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()


SERIAL = Workers(1)
