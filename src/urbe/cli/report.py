"""`urbe report`: the page of a run of `urbe reproduce`, finished or not; nothing is run."""

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
The page is drawn from the cells that are finished, whatever code computed them. What is not there yet is said on it.

written into DIR, or into --to FOLDER:
  index.html                            the report, one page, to be opened in any browser; it needs no network
  rows/NAME.csv, .parquet               the numbers behind each chapter (Parquet with: pip install "urbe[logs]")
  figures/NAME-FIGURE.png, .svg, .pdf   each drawing, for papers
  claims.md                             the paper's claims and their verdicts, for a README
  manifest.json                         configuration, commits, versions, times

examples:
  urbe report                           the page of results/
  urbe report results --only seven_states
                                        one chapter
  urbe report results --to docs/results --formats svg parquet
                                        a light copy, to be kept
  urbe report results --watch           while urbe reproduce runs elsewhere: the page is written again and again as
                                        cells finish, until the run ends; reload it in the browser
"""


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "report",
        help="write the report of a run, also while it is under way",
        description="Writes the report of a run of urbe reproduce: a page, its figures and its rows. Runs nothing.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", nargs="?", default="results", metavar="DIR", help="of the run (results)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these chapters and no others")
    parser.add_argument("--to", metavar="FOLDER", help="where to write (DIR)")
    parser.add_argument(
        "--formats", nargs="+", metavar="F", help="of the files beside the page: png svg pdf csv parquet (all)"
    )
    parser.add_argument("--watch", action="store_true", help="follow a run that is under way")
    parser.add_argument("--every", type=float, default=10.0, metavar="S", help="seconds between two pages (10)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Writes the page; returns the exit code."""
    from urbe.paper.pages import FORMATS, write_report

    if not options.every > 0.0:
        raise ValueError(f"--every is {options.every:g}, expected a positive number of seconds.")
    chapters = chosen_chapters(options.only)
    formats = options.formats or FORMATS
    wrong = [name for name in formats if name not in FORMATS]
    if wrong:
        raise ValueError(f"--formats {wrong[0]} is no format, expected some of {', '.join(FORMATS)}.")
    output = Path(options.directory)
    if options.watch:
        if options.to or options.formats:
            raise ValueError("--watch goes without --to and --formats: first let the run end, then write the copy.")
        watch(output, chapters, options.every)
    page = write_report(output, chapters, Path(options.to or output), formats)
    say_where(page, parquet="parquet" in formats)
    return 0


def watch(output: Path, chapters: Sequence[Chapter], every: float) -> None:
    """Writes the page again and again until the run is done; a run that is not there, or stands still, is waited for.

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
                    raise RuntimeError(f"The run ended with {left} cells unfinished; {page} shows the others.")
            seen = seen or alive
            sleep(every)
