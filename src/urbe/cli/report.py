"""`urbe report`: the page of a run of `urbe reproduce`, finished or not; nothing is run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

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
  urbe report results --watch           while urbe reproduce runs elsewhere: the page is written anew as cells finish,
                                        and reads itself again in the browser; ends with the run, or with Ctrl-C
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
    from urbe.paper import CHAPTERS
    from urbe.paper.pages import FORMATS

    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            'Drawing needs matplotlib, which is not installed; install it with: pip install "urbe[plots]"'
        )
    if not options.every > 0.0:
        raise ValueError(f"--every is {options.every:g}, expected a positive number of seconds.")
    known = {chapter.name: chapter for chapter in CHAPTERS}
    unknown = [name for name in options.only or () if name not in known]
    if unknown:
        raise ValueError(f"--only {unknown[0]} is no chapter, expected one of {', '.join(known)}.")
    chapters = [chapter for chapter in CHAPTERS if options.only is None or chapter.name in options.only]
    formats = options.formats or FORMATS
    wrong = [name for name in formats if name not in FORMATS]
    if wrong:
        raise ValueError(f"--formats {wrong[0]} is no format, expected some of {', '.join(FORMATS)}.")
    output = Path(options.directory)
    if not options.watch:
        return write(output, chapters, Path(options.to or output), formats)
    if options.to or options.formats:
        raise ValueError("--watch goes without --to and --formats: first let the run end, then write the copy.")
    return watch(output, chapters, options.every)


def write(output: Path, chapters: Sequence[Chapter], to: Path, formats: Sequence[str]) -> int:
    """Writes the page and its files, and says where."""
    from urbe.paper.pages import write_report
    from urbe.paper.row_files import NO_PARQUET, parquet_is_there

    page = write_report(output, chapters, to, formats)
    if "parquet" in formats and not parquet_is_there():
        print(NO_PARQUET)
    print(f"The report is {page.resolve()}")
    return 0


def watch(output: Path, chapters: Sequence[Chapter], every: float) -> int:
    """Writes the page again and again, and shows the run on the terminal, until it is done or has failed.

    A run that is not there, or stands still, is waited for.

    Raises:
      RuntimeError: the run ended before all cells were finished.
    """
    from urbe.cli.watching import Screen
    from urbe.paper.pages import FORMATS, Memory, write_page
    from urbe.paper.run_state import is_alive
    from urbe.sweep.finished import PLAN
    from urbe.sweep.status import read_status

    memory, seen_alive, next_page = Memory(), False, 0.0
    page, counts = output / "index.html", (0, -1)
    with Screen(page) as screen:
        while counts[0] != counts[1]:
            status = read_status(output)
            alive = is_alive(status)
            ended = seen_alive and not alive
            if (output / PLAN).exists() and (ended or monotonic() >= next_page):
                _, *found = write_page(output, chapters, memory=memory, refresh=0 if ended else max(1, round(every)))
                counts = found[0], found[1]
                next_page = monotonic() + every
            screen.show(status, alive, counts)
            if ended and counts[0] != counts[1]:
                break
            seen_alive = seen_alive or alive
            sleep(min(1.0, every))
    if counts[0] != counts[1]:
        raise RuntimeError(f"The run ended with {counts[1] - counts[0]} cells unfinished; {page} shows what there is.")
    return write(output, chapters, output, FORMATS)
