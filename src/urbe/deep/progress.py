"""A bar for people to look at while an agent learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Show = Callable[[int, Mapping[str, float]], None]


@contextmanager
def bar(name: str, start: int, end: int, *, shown: bool) -> Iterator[Show]:
    """Gives a function to call with the step and the last row of the log."""
    if not shown:
        yield lambda _step, _row: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as live:
        task = live.add_task(name, total=end, completed=start, told="")

        def show(step: int, row: Mapping[str, float]) -> None:
            live.update(task, completed=step, told=f"return {row['mean_return']:.1f}  TD {row['td_error']:.3g}")

        yield show
        live.update(task, completed=end)
