"""A bar for people to look at while episodes are played."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(name: str, total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with how many more episodes are done; on standard error, so that output can be piped."""
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as live:
        task = live.add_task(name, total=total)
        yield lambda count: live.advance(task, count)
