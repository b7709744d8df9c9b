"""`urbe reproduce`: the demonstration, from models to a page of figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "reproduce",
        help="solve the bundled models over a range of radii and write a page",
        description="Solves the bundled classic models nominally and robustly over a range of radii and writes a page "
        "with the price of robustness. Finished parts are not run again.",
    )
    parser.add_argument("--output", default="results", metavar="DIR", help="where to write (results)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the experiments; returns the exit code."""
    from urbe.experiments import reproduce

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("solving")
        page = reproduce(
            Path(options.output),
            lambda done, total, what: bar.update(task, completed=done, total=total, description=what),
        )
    print(f"The report is {page.resolve()}")
    return 0
