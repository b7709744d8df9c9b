"""Options that several commands share: programs in the PRISM language, logs and figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from urbe import extras
from urbe.atomic import replace_files
from urbe.mdp.formats import read_log
from urbe.mdp.labels import Labels
from urbe.mdp.transitions import Transitions

SUFFIXES = (".png", ".svg", ".pdf")
"""Of figures."""

LOG_HELP = """\
a log has a header and a line for each transition; states and actions are 0-based ids or labels:
  state,action,reward,next_state           condition;decision;profit;machine;date
  0,1,0.0,1                                good;run;8.4;M01;2026-01-01
  1,1,1.0,1                                worn;repair;-4.0;M01;2026-01-02
For the log on the right: --columns state=condition,action=decision,reward=profit,episode=machine,time=date. Without
next_state, the next state is the state in the following row of the same episode, in the order of step or time. Fields
may be separated by commas, semicolons, tabs or |.
"""


def add_program_options(parser: argparse.ArgumentParser) -> None:
    """Adds those of a program in the PRISM language."""
    parser.add_argument("--constants", metavar="N=3,...", help="what a program in the PRISM language leaves open")
    parser.add_argument("--reward", metavar="NAME", help="the rewards of such a program, where it has several")


def program_options(options: argparse.Namespace) -> dict[str, Any]:
    """As `urbe.read_mdp` takes them."""
    return {"constants": options.constants, "reward": options.reward}


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Adds those of a log: names of columns, missing values, labels."""
    group = parser.add_argument_group("how to read the log")
    group.add_argument(
        "--columns", type=_pairs, metavar="WHAT=NAME,...",
        help="names of the columns of state, action, reward, next_state, terminated, episode, step and time, if they "
        "differ",
    )  # fmt: skip
    group.add_argument(
        "--missing", choices=("refuse", "drop"), default="refuse",
        help="rows with missing values: stop at the first (default), or drop and count them",
    )  # fmt: skip
    group.add_argument(
        "--labels", action="store_true", help="numbers in the log are labels of states and actions, not 0-based ids"
    )


def chosen_log(options: argparse.Namespace) -> Transitions:
    """The log that the options describe."""
    return read_log(
        options.log, names=options.columns, missing=options.missing, labels=True if options.labels else None
    )


def states_of(text: str, labels: Labels) -> list[Any]:
    """Reads a list of states, `a,b`: labels of the log, or ids."""
    words = [word.strip() for word in text.split(",")]
    if labels.states is None:
        return [int(word) if word.isdecimal() else word for word in words]
    called = {str(label): label for label in labels.states}
    return [called.get(word, word) for word in words]


def check_figure(path: str | None) -> None:
    """Raises, before anything is computed, if a figure cannot be written: wrong suffix, or matplotlib is missing."""
    if path is None:
        return
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"--figure {path} ends in {Path(path).suffix!r}, expected one of {', '.join(SUFFIXES)}.")
    extras.need("Figures", "matplotlib")


def write_figure(path: str, figure: Any) -> None:
    """Writes a figure atomically."""
    from urbe.report.export import figure_writer

    replace_files({path: figure_writer(figure, Path(path).suffix.lower()[1:])})


def _pairs(text: str) -> dict[str, str]:
    found = {}
    for part in text.split(","):
        name, equals, own = part.partition("=")
        if not equals or not own.strip():
            raise argparse.ArgumentTypeError(f"found {part!r}, expected WHAT=NAME such as state=condition")
        found[name.strip()] = own.strip()
    return found
