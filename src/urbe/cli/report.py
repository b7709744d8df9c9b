"""`urbe report`: write the report of a run of `urbe reproduce`, finished or not, without running anything."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

from urbe.cli.reproduce import chosen_chapters, say_where, show_status
from urbe.progress import progress

if TYPE_CHECKING:
    from urbe.paper.chapter import Chapter

HELP = """\
The report is drawn from the finished cells, whatever version of the code computed them, and lists missing ones. If DIR
has a report but no cells, like a copy made with --to, the report is drawn again from its rows.

written into DIR, or into --to FOLDER:
  index.html                            the front page; open it in any browser, without a network
  NAME.html                             a page for each chapter
  rows/NAME.csv, .parquet               the numbers behind each chapter (Parquet with: pip install "urbe[logs]")
  figures/NAME-FIGURE.png, .svg, .pdf   each drawing, for papers
  claims.md                             the paper's claims and their verdicts, for a README
  manifest.json                         configuration, commits, versions, times

examples:
  urbe report                           the report of results/
  urbe report results --only seven_states
                                        one chapter
  urbe report results --to docs/results --formats svg parquet
                                        a light copy to keep
  urbe report results --watch           while urbe reproduce runs elsewhere: rewrite the report as cells finish, until
                                        the run ends; reload it in the browser
"""


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "report",
        help="write the report of a run, finished or not",
        description="Writes the report of a run of urbe reproduce: pages, figures and rows. Runs nothing.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", nargs="?", default="results", metavar="DIR", help="folder of the run (results)")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="only these chapters; module:CHAPTER for one of your own"
    )
    parser.add_argument("--to", metavar="FOLDER", help="folder to write into (DIR)")
    parser.add_argument(
        "--formats", nargs="+", metavar="F", help="formats of the files beside the pages: png svg pdf csv parquet (all)"
    )
    parser.add_argument("--watch", action="store_true", help="follow a run that is in progress")
    parser.add_argument("--every", type=float, default=10.0, metavar="S", help="seconds between two reports (10)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Writes the report; returns the exit code."""
    from urbe.paper.pages import FORMATS, write_report

    if not options.every > 0.0:
        raise ValueError(f"--every is {options.every:g}, expected a positive number of seconds.")
    chapters = chosen_chapters(options.only)
    formats = options.formats or FORMATS
    wrong = [name for name in formats if name not in FORMATS]
    if wrong:
        raise ValueError(f"--formats {wrong[0]} is not a format, expected some of {', '.join(FORMATS)}.")
    output = Path(options.directory)
    if options.watch:
        if options.to or options.formats:
            raise ValueError("--watch cannot be combined with --to or --formats. Let the run end, then write the copy.")
        watch(output, chapters, options.every)
    page = write_report(output, chapters, Path(options.to or output), formats)
    say_where(page, parquet="parquet" in formats)
    return 0


def watch(output: Path, chapters: Sequence[Chapter], every: float) -> None:
    """Rewrites the report until the run is done; waits for a run that has not begun or has stopped.

    Raises:
      RuntimeError: the run ended before all cells were finished.
    """
    from urbe.paper.pages import write_report
    from urbe.sweep.status import is_alive, read_status

    with progress("urbe report", None, unit="cells") as show:
        seen, status = False, None
        while status is None or status["state"] != "done":
            status = read_status(output)
            alive = is_alive(status)
            if status is not None:
                write_report(output, chapters, formats=())
                show_status(show, status)
                if seen and not alive and status["state"] != "done":
                    left = sum(status[kind] for kind in ("waiting", "running", "failed"))
                    page = output / "index.html"
                    raise RuntimeError(f"The run ended with {left} cells unfinished. {page} shows the others.")
            seen = seen or alive
            sleep(every)
