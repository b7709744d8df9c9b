"""Parse the command line, run one command, and turn the result into an exit code."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from urbe.cli import compare, convert, evaluate, plan, report, reproduce, solve, train
from urbe.cli.wording import in_options

OK, NOT_SOLVED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
NO_READER = 1  # as rich exits, which prints tables and bars

DESCRIPTION = """\
Robust Markov decision processes: policies whose worst-case value is certified.

A finite MDP (states, actions, transition probabilities, rewards) estimated from data is never quite right. urbe finds
the policy with the best value against every model near yours, bounds on that value that include rounding error, and
the model that nature would choose against it.
"""

EPILOG = """\
start here:
  urbe solve model.csv --discount 0.99                              solve the nominal model
  urbe solve model.csv --discount 0.99 --set l1 --radius 0.5        each row may be off by 0.5 in the L1 norm
  urbe solve model.csv --discount 0.99 --set l1 --radius 0:1:11     the price of robustness, by radius
  urbe plan log.csv --discount 0.95                                 from a log of transitions to a safe policy
  urbe convert model.csv model.npz --discount 0.99                  the same model, faster to read
  urbe train cartpole --agent dqn-urbe --seed 0 --out runs/x        train a deep robust agent, resumable
  urbe evaluate runs/x --over half_length=0.1:5:11                  test it under other dynamics
  urbe compare runs/a0 runs/a1 runs/b0 runs/b1 --over half_length=0.1:5:11    agents side by side, over seeds
  urbe report results --watch                                       a report on experiments that are running
  urbe solve --help                                                 all sets, formats and options

a model in CSV has a header and 0-based ids:
  idstatefrom,idaction,idstateto,probability,reward
  0,0,0,0.9,0.0
  0,0,1,0.1,1.0

exit codes: 0 done, 1 tolerance not reached, cells or training failed, 2 bad input or usage, 130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # labels may have letters that a terminal lacks
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()  # here, not at exit, so that a missing reader is noticed here
    except BrokenPipeError:  # as in `urbe solve model.csv | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_READER


def _run(arguments: Sequence[str] | None) -> int:
    options = build_parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, KeyError, OSError, MemoryError, ModuleNotFoundError) as error:
        if isinstance(error, BrokenPipeError):
            sys.stdout.flush()  # raises it again if it is of the output
        print(f"urbe: {in_options(_sentence(error))}", file=sys.stderr)
        return BAD_INPUT
    except RuntimeError as error:  # NotConverged, CellsFailed, and planners whose rounds run out
        print(f"urbe: {in_options(str(error))}", file=sys.stderr)
        return NOT_SOLVED
    except KeyboardInterrupt:
        print("urbe: interrupted. No file is left half-written.", file=sys.stderr)
        return INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    """Builds the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="urbe", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"urbe {version('urbe')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (solve, plan, convert, train, evaluate, compare, reproduce, report):
        command.add_parser(commands)
    return parser


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
