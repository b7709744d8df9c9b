"""`urbe reproduce`: the experiments, from models to a page of figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

HELP = """\
An experiment consists of cells. Each finished cell is kept in DIR/cells, so an interrupted run (Ctrl-C) continues where
it stopped, and a cell is computed again only after the code it depends on has changed. Results do not depend on the
number of processes.

scales:
  quick     under 20 minutes on two cores
  medium    the paper's networks and settings, 10 seeds, fewer steps
  paper     the paper's numbers of episodes, 10 seeds: days on one machine
Cells that are the same at two scales are run once.

written into DIR:
  index.html       the report, one page, to be opened in any browser
  rows/NAME.csv    the numbers behind each chapter
  manifest.json    configuration, commit, versions, times

examples:
  urbe reproduce                                       everything, on all cores
  urbe reproduce --scale paper                         as much as the paper
  urbe reproduce --list                                what there is
  urbe reproduce --only price_of_robustness            a report with one chapter
  urbe reproduce --output /tmp/report --processes 1    elsewhere, one core
"""


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "reproduce",
        help="run the experiments and write the report",
        description="Runs the experiments and writes a report of one page, with figures, tables and verdicts.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", default="results", metavar="DIR", help="where to write (results)")
    parser.add_argument(
        "--scale", choices=("quick", "medium", "paper"), default="quick", help="how much to run (quick)"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these experiments and no others; see --list")
    parser.add_argument("--list", action="store_true", help="print the experiments and their cells' number; run none")
    parser.add_argument("--processes", type=int, metavar="N", help="cells to run at once (as many as cores)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the experiments; returns the exit code."""
    from urbe.experiments import FIGURES, reproduce

    if options.list:
        width = max(len(figure.NAME) for figure in FIGURES)
        for figure in FIGURES:
            print(f"{figure.NAME:<{width}}  {len(figure.CELLS[options.scale]):>5} cells  {figure.TITLE}")
        return 0
    known = {figure.NAME: figure for figure in FIGURES}
    unknown = [name for name in options.only or () if name not in known]
    if unknown:
        raise ValueError(f"--only {unknown[0]} is no experiment, expected one of {', '.join(known)}; see --list.")
    figures = [figure for figure in FIGURES if options.only is None or figure.NAME in options.only]

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("reading", total=None)

        def report(done: int, total: int, what: str) -> None:
            if bar.tasks[0].total is None:  # cells kept from before must not count as speed
                bar.reset(task, total=total, completed=done)
            bar.update(task, completed=done, description=what)

        page = reproduce(
            Path(options.output), report, scale=options.scale, figures=figures, processes=options.processes
        )
    print(f"The report is {page.resolve()}")
    return 0
