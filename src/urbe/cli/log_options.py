"""Options for reading a log: column names, missing values, labels, lists of states."""

from __future__ import annotations

import argparse

from urbe.cli.lists import items
from urbe.mdp.formats import read_log
from urbe.mdp.formats.pipes import STANDARD_INPUT
from urbe.mdp.transitions import Transitions

HELP = """\
a log has a header and a line for each transition; states and actions are 0-based ids or labels:
  state,action,reward,next_state           condition;decision;profit;machine;date
  0,1,0.0,1                                good;run;8.4;M01;2026-01-01
  1,1,1.0,1                                worn;repair;-4.0;M01;2026-01-02
For the log on the right: --columns state=condition,action=decision,reward=profit,episode=machine,time=date. Without
next_state, the next state is the state in the following row of the same episode, in the order of step or time. A column
of costs, where lower is better, is named with cost=NAME. Fields may be separated by commas, semicolons, tabs or |.
Put names with commas in double quotes: --columns 'state=condition,"cost=cost, in euros"'.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    group = parser.add_argument_group("how to read the log")
    group.add_argument(
        "--columns", type=pairs, metavar="WHAT=NAME,...",
        help="names of the columns of state, action, reward (or cost), next_state, terminated, episode, step and time, "
        "if they differ",
    )  # fmt: skip
    group.add_argument(
        "--missing", choices=("refuse", "drop"), default="refuse",
        help="rows with missing values: stop at the first (default), or drop and count them",
    )  # fmt: skip
    group.add_argument(
        "--missing-values", type=items, default=(), metavar="X,...",
        help="other entries that mean a missing value, as in --missing-values=-999,?",
    )  # fmt: skip
    group.add_argument(
        "--labels", action="store_true", help="numbers in the log are labels of states and actions, not 0-based ids"
    )


def chosen_log(options: argparse.Namespace) -> Transitions:
    """Reads the log that the options describe."""
    return read_log(
        STANDARD_INPUT if options.log == "-" else options.log,
        names=options.columns,
        missing=options.missing,
        missing_values=options.missing_values,
        labels=True if options.labels else None,
    )


def pairs(text: str) -> dict[str, str]:
    """Reads `what=name,...`."""
    found = {}
    for part in items(text):
        name, equals, own = part.partition("=")
        if not equals or not own.strip():
            raise argparse.ArgumentTypeError(f"found {part!r}, expected WHAT=NAME such as state=condition")
        found[name.strip()] = own.strip()
    return found
