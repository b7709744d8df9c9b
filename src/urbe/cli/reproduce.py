"""`urbe reproduce`: the experiments, from models to a page of figures."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from urbe.progress import progress

if TYPE_CHECKING:
    from urbe.sweep.launcher import Launcher
    from urbe.sweep.run import Watch

HELP = """\
An experiment consists of cells. Each finished cell is kept in DIR/cells, so a run that was interrupted (Ctrl-C, kill,
power cut) continues where it stopped when it is started again: deep agents from their last checkpoint, everything else
from its last finished cell. A cell is computed again only after the code it depends on has changed. A cell whose
process was killed is begun again. Results do not depend on the launcher or on the number of processes.

scales:
  quick     under 20 minutes on two cores
  medium    the paper's networks and settings, 10 seeds, fewer steps
  paper     the paper's numbers of episodes, 10 seeds: more than a day on two cores
Cells that are the same at two scales are run once.

launchers:
  local     processes of this machine, each with one thread
  ray       a Ray cluster (pip install "urbe[ray]"): that at --address, or a new one on this machine

written into DIR:
  index.html       the report, one page, to be opened in any browser
  rows/            the numbers behind each chapter, as CSV and Parquet
  figures/         every drawing, as PNG, SVG and PDF
  claims.md        the paper's claims and their verdicts
  manifest.json    configuration, commits, versions, times
  status.json      what is being run, while it is; urbe report DIR draws what is finished

examples:
  urbe reproduce                                       everything, on all cores
  urbe reproduce --scale paper                         as much as the paper
  urbe reproduce --scale paper --launcher ray --address 10.0.0.5:6379
                                                       the same on a cluster
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
    scales, launchers = ("quick", "medium", "paper"), ("local", "ray")
    parser.add_argument("--output", default="results", metavar="DIR", help="where to write (results)")
    parser.add_argument("--scale", choices=scales, default="quick", help="how much to run (quick)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these chapters and no others; see --list")
    parser.add_argument("--list", action="store_true", help="print the chapters and their cells' number; run none")
    parser.add_argument("--launcher", choices=launchers, default="local", help="where to run (local)")
    parser.add_argument("--processes", type=int, metavar="N", help="cells to run at once (as many as cores)")
    parser.add_argument("--address", metavar="HOST:PORT", help="of a Ray cluster; auto finds the one of this machine")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the chapters; returns the exit code."""
    from urbe.paper import CHAPTERS, reproduce
    from urbe.paper.row_files import NO_PARQUET, parquet_is_there

    if options.list:
        width = max(len(chapter.name) for chapter in CHAPTERS)
        for chapter in CHAPTERS:
            print(f"{chapter.name:<{width}}  {len(chapter.cells[options.scale]):>5} cells  {chapter.title}")
        return 0
    known = {chapter.name: chapter for chapter in CHAPTERS}
    unknown = [name for name in options.only or () if name not in known]
    if unknown:
        raise ValueError(f"--only {unknown[0]} is no chapter, expected one of {', '.join(known)}; see --list.")
    chapters = [chapter for chapter in CHAPTERS if options.only is None or chapter.name in options.only]
    launcher = _launcher(options)
    with _bar() as watch:
        page = reproduce(Path(options.output), watch, scale=options.scale, chapters=chapters, launcher=launcher)
    if not parquet_is_there():
        print(NO_PARQUET)
    print(f"The report is {page.resolve()}")
    return 0


def _launcher(options: argparse.Namespace) -> Launcher:
    from urbe.sweep.local import Local
    from urbe.sweep.ray import Ray

    if options.launcher == "ray":
        return Ray(options.address, at_once=options.processes)
    if options.address is not None:
        raise ValueError(f"--address {options.address} is of a Ray cluster; add --launcher ray.")
    return Local(options.processes)


@contextmanager
def _bar() -> Iterator[Watch]:
    """Gives a function that shows a sweep's status."""
    with progress("urbe reproduce", None, unit="cells") as show:

        def watch(status: dict[str, Any]) -> None:
            ended = status["done"] + status["failed"]
            total = ended + status["waiting"] + status["running"]
            show(ended, _doing(status), total=total, left=status["left"] or None)

        yield watch


def _doing(status: dict[str, Any]) -> str:
    told = [
        cell["cell"] + ("" if cell["fraction"] is None else f" {cell['fraction']:.0%}") for cell in status["cells"][:2]
    ]
    more = f" and {status['running'] - 2} more" if status["running"] > 2 else ""
    return ", ".join(told) + more if told else {"running": "running", "done": "drawing"}.get(status["state"], "")
