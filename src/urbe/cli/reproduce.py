"""`urbe reproduce`: run the experiments and write the report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from urbe.cli.worlds import find_modules_here
from urbe.progress import Show, progress

if TYPE_CHECKING:
    from urbe.paper.chapter import Chapter
    from urbe.paper.choice import Selection
    from urbe.sweep.launcher import Launcher

HELP = """\
An experiment consists of cells. Finished cells are kept in DIR/cells, so an interrupted run (Ctrl-C, kill, power cut)
resumes when the command is run again: deep agents from their last checkpoint, everything else from the last finished
cell. A cell is computed again only if the code it depends on has changed. A cell whose process was killed is
restarted. Results do not depend on the launcher or on the number of processes.

scales:
  quick     under 20 minutes on two cores
  medium    the paper's networks and settings, 10 seeds, fewer steps
  paper     the paper's numbers of episodes, 10 seeds: more than a day on two cores
Cells shared by two scales are run once.

part of one chapter, named with --only:
  --agents dqn,dqn-urbe      only these agents; --list --only NAME prints the available ones
  --agents mine:best         an agent of your own, module:attribute, also from the current folder. In deep chapters
                             (mars_rover, cartpole) a function best(env, uncertainty_set, *, seed, settings) that
                             returns an agent, as urbe.deep.dqn_urbe does; in the others a urbe.paper.tuning.Contender
  --seeds 5                  five seeds per agent
  --set variance.beta=1      a field of the settings of deep agents, as in urbe train --set; or a field of the cells:
                             steps=20000, tuning_seeds=4
The report then says that it is not the paper's comparison. To keep an agent in a chart, add it to the list of agents
in urbe/paper/NAME/__init__.py.

launchers:
  local     processes of this machine, each with one thread
  ray       a Ray cluster (pip install "urbe[ray]"): the one at --address, or a new one on this machine

written into DIR:
  index.html       the front page of the report; open it in any browser
  NAME.html        a page for each chapter
  rows/            the numbers behind each chapter, as CSV and Parquet
  figures/         every drawing, as PNG, SVG and PDF
  claims.md        the paper's claims and their verdicts
  manifest.json    configuration, commits, versions, times
  status.json      progress of the run; urbe report DIR draws the finished cells

examples:
  urbe reproduce                                       everything, on all cores
  urbe reproduce --scale paper                         at the paper's scale
  urbe reproduce --scale paper --launcher ray --address head-node:6379
                                                       the same on a cluster
  urbe reproduce --list                                list the chapters
  urbe reproduce --only price_of_robustness            a report with one chapter
  urbe reproduce --only mars_rover --agents dqn-urbe,mine:best --seeds 5 --set variance.beta=1
                                                       your own agent beside one of the paper's
  urbe reproduce --only mine:CHAPTER                   a chapter of your own, in mine.py
  urbe reproduce --output /tmp/report --processes 1    elsewhere, one core
"""


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "reproduce",
        help="run the experiments and write the report",
        description="Runs the experiments and writes a report with figures, tables and verdicts.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    scales, launchers = ("quick", "medium", "paper"), ("local", "ray")
    parser.add_argument("--output", default="results", metavar="DIR", help="folder to write into (results)")
    parser.add_argument("--scale", choices=scales, default="quick", help="how much to compute (quick)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these, see --list; module:CHAPTER of your own")
    parser.add_argument(
        "--agents", metavar="A,B", help="only these agents of the chapter, or module:attribute of your own"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="number of seeds")
    parser.add_argument(
        "--set", nargs="+", action="extend", metavar="F=V", help="fields of the cells or of the settings of deep agents"
    )
    parser.add_argument("--list", action="store_true", help="print the chapters with their numbers of cells, and exit")
    parser.add_argument("--launcher", choices=launchers, default="local", help="where to run the cells (local)")
    parser.add_argument("--processes", type=int, metavar="N", help="number of cells to run at once (one per core)")
    parser.add_argument(
        "--address", metavar="HOST:PORT", help="address of a Ray cluster; auto finds the one on this machine"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the chapters; returns the exit code."""
    from urbe.paper import CHAPTERS, reproduce

    if options.list:
        width = max(len(chapter.name) for chapter in CHAPTERS)
        for chapter in CHAPTERS:
            print(f"{chapter.name:<{width}}  {len(chapter.cells[options.scale]):>5} cells  {chapter.title}")
            if options.only and chapter.name in options.only and chapter.agents:
                print(f"{'':<{width}}  agents: {', '.join(chapter.agents)}")
        return 0
    chapters = chosen_chapters(options.only)
    choice = _choice(options, len(chapters))
    launcher = _launcher(options)
    with progress("urbe reproduce", None, unit="cells") as show:
        page = reproduce(
            Path(options.output),
            lambda status: show_status(show, status),
            scale=options.scale,
            chapters=chapters,
            choice=choice,
            launcher=launcher,
        )
    say_where(page)
    return 0


def chosen_chapters(only: Sequence[str] | None) -> list[Chapter]:
    """Returns the chapters that `--only` names, or all; `module:CHAPTER` is one of the user.

    Raises:
      ValueError: a name is not the name of a chapter.
    """
    from urbe.paper import CHAPTERS
    from urbe.paper.chapter import Chapter
    from urbe.paper.choice import is_own, load_own

    named = [name for name in only or () if is_own(name)]
    if named:
        find_modules_here()
    own = {name: load_own(name, "chapter") for name in named}
    known = [chapter.name for chapter in CHAPTERS]
    wrong = [name for name in only or () if name not in known and not isinstance(own.get(name), Chapter)]
    if wrong:
        raise ValueError(
            f"--only {wrong[0]} is not a chapter, expected one of {', '.join(known)}; or module:CHAPTER of your own."
        )
    return [*(chapter for chapter in CHAPTERS if only is None or chapter.name in only), *own.values()]


def say_where(page: Path, parquet: bool = True) -> None:
    """Prints where the report is, and why rows are not written as Parquet if they cannot be."""
    if parquet and find_spec("pyarrow") is None:
        print('Rows are written as CSV only: Parquet needs pyarrow, pip install "urbe[logs]".')
    print(f"The report is {page.resolve()}")


def show_status(show: Show, status: dict[str, Any]) -> None:
    """Shows the status of a sweep: finished cells, running cells, and the remaining time."""
    ended = status["done"] + status["failed"]
    running = [cell["cell"] for cell in status["cells"]]
    more = f" and {len(running) - 2} more" if len(running) > 2 else ""
    idle = {"running": "running", "done": "drawing"}.get(status["state"], "")
    total = ended + status["waiting"] + status["running"]
    show(ended, ", ".join(running[:2]) + more if running else idle, total=total, left=status["left"] or None)


def _choice(options: argparse.Namespace, chapters: int) -> Selection:
    from urbe.paper.choice import Selection, is_own

    agents = tuple(name.strip() for name in (options.agents or "").split(",") if name.strip())
    choice = Selection(agents, options.seeds, tuple(options.set or ()))
    if choice.options and chapters != 1:
        raise ValueError(f"{choice.options} applies to one chapter. Name it with --only.")
    if any(map(is_own, agents)):
        find_modules_here()  # by workers, too
    return choice


def _launcher(options: argparse.Namespace) -> Launcher:
    from urbe.sweep.local import LocalProcesses
    from urbe.sweep.ray import Ray

    if options.launcher == "ray":
        return Ray(options.address, at_once=options.processes)
    if options.address is not None:
        raise ValueError(f"--address {options.address} names a Ray cluster. Add --launcher ray.")
    return LocalProcesses(options.processes)
