"""Minimum CPU and wall time over repeats, peers interleaved so that a noisy minute hits all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Timing(NamedTuple):
    """Seconds, each the minimum over repeats."""

    cpu: float
    wall: float


class Task(NamedTuple):
    """A timed function, which gets the result of an untimed preparation."""

    prepare: Callable[[], Any]
    run: Callable[[Any], object]


def task(run: Callable[[], object]) -> Task:
    """Makes a task without preparation."""
    return Task(lambda: None, lambda _: run())


def best_of(tasks: dict[str, Task], repeats: int) -> dict[str, Timing]:
    """Times each task `repeats` times, taking turns; a first, untimed run compiles and warms caches."""
    for each in tasks.values():
        each.run(each.prepare())
    cpu = dict.fromkeys(tasks, float("inf"))
    wall = dict.fromkeys(tasks, float("inf"))
    for _ in range(repeats):
        # twice in a row: the first run finds the caches full of another task's data
        for name, each in [pair for pair in tasks.items() for _ in range(2)]:
            ready = each.prepare()
            wall_began, cpu_began = time.perf_counter(), time.process_time()
            each.run(ready)
            cpu[name] = min(cpu[name], time.process_time() - cpu_began)
            wall[name] = min(wall[name], time.perf_counter() - wall_began)
    return {name: Timing(cpu[name], wall[name]) for name in tasks}
