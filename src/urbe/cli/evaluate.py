"""`urbe evaluate`: returns of trained agents under dynamics that differ from those of training."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from urbe.cli import worlds
from urbe.cli.figures import check_figure, write_figure
from urbe.mdp.formats import write_table
from urbe.mdp.formats.tables import format_of

HELP = """\
--over gives the dynamics to try; parameters that are not named are nominal. Give it once per parameter, several mean
every combination:
  half_length=0.1:5:11       eleven values from 0.1 to 5, both included
  half_length=0.5,1,2        these values
Without --over the nominal dynamics are tried.

Agents act greedily, and those with an uncertainty head also by its noise, as in training but without random actions;
the two are different policies and are reported separately. --greedy or --noisy plays one of them alone.

Episodes begin the same way for all parameters and all agents with the same --seed. The table has for each parameter
  mean, low, high    of the returns, and Student's interval for it
  worst, cvar        the lowest return, and the mean of the lowest tenth (--cvar)
  median, std, length, ended    and the share of episodes that ended before time ran out

An agent that was trained on a Gymnasium environment is tried on one, made with --over's parameters as arguments:
  --env urbe/CartPole-v0 --over half_length=0.5,1    is    gymnasium.make("urbe/CartPole-v0", half_length=0.5), ...

examples:
  urbe evaluate runs/urbe0 --over half_length=0.1:5:11
  urbe evaluate runs/urbe0 runs/robust0 runs/dqn0 --over half_length=0.1:5:11 --greedy --figure poles.png
  urbe evaluate runs/urbe0 --over half_length=0.5,1 masspole=0.1,0.5 --episodes 1000 --csv table.csv
  urbe evaluate runs/pole --env CartPole-v1
"""


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "evaluate",
        help="try trained agents on perturbed dynamics",
        description="Plays test episodes of trained agents under many parameters, and reports mean, interval, worst "
        "case and CVaR for each.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run_paths", nargs="+", metavar="RUN", help="folders of runs, or saved agents")
    parser.add_argument(
        "--over", nargs="+", default=[], action="extend", metavar="P=V", help="parameters to try; see below"
    )
    parser.add_argument("--episodes", type=int, default=200, metavar="E", help="for each parameter (200)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the episodes (0)")
    parser.add_argument("--env", metavar="ID", help="a Gymnasium environment instead of what it was trained on")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--greedy", action="store_const", dest="acting", const="greedy", help="act greedily alone")
    ways.add_argument("--noisy", action="store_const", dest="acting", const="noisy", help="act noisily alone")
    group = parser.add_argument_group("what is reported")
    group.add_argument("--confidence", type=float, default=0.95, metavar="C", help="of intervals (0.95)")
    group.add_argument("--cvar", type=float, default=0.1, metavar="S", help="share of the lowest returns (0.1)")
    group.add_argument("--csv", metavar="FILE", help="write the table (.csv or .parquet)")
    group.add_argument("--episodes-csv", metavar="FILE", help="write every episode (.csv or .parquet)")
    group.add_argument("--figure", metavar="FILE", help="draw means, intervals and worst cases (.png, .svg, .pdf)")
    group.add_argument("--quiet", action="store_true", help="no progress, no table; for use with --csv and --figure")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Evaluates and reports; returns the exit code."""
    grid = worlds.grid_of(options.over)
    if options.figure is not None:
        _can_be_drawn(options.figure, grid)
    for table in (options.csv, options.episodes_csv):
        if table is not None:
            format_of(table)
    worlds.set_up_jax()
    from urbe.deep.load import load
    from urbe.evaluation.robustness import evaluate

    agents = {path: load(path) for path in dict.fromkeys(map(os.path.normpath, options.run_paths))}
    for path, agent in agents.items():
        if agent.simulator is None and options.env is None:
            raise ValueError(
                f"{path} does not hold what its agent was trained on; give --env ID, a Gymnasium environment to try it "
                "on."
            )
    labels = _labels({path: agent.name for path, agent in agents.items()})
    found = {}
    for path, agent in agents.items():
        began = time.perf_counter()
        found[path] = evaluate(
            agent,
            grid,
            env=None if options.env is None else worlds.maker(options.env, "--env"),
            episodes=options.episodes,
            seed=options.seed,
            acting=options.acting,
            confidence=options.confidence,
            cvar=options.cvar,
            progress=not options.quiet and sys.stderr.isatty(),
        )
        if not options.quiet:
            print(f"{path}: {agent.name}, seed {agent.seed}, after {agent.step} steps. "
                  f"{time.perf_counter() - began:.2g} s.\n{found[path]}\n{_worst(found[path])}")  # fmt: skip
    for target, tables in (
        (options.csv, {path: each.table() for path, each in found.items()}),
        (options.episodes_csv, {path: each.episodes() for path, each in found.items()}),
    ):
        if target is not None:
            write_table(target, _together(tables, {path: agent.name for path, agent in agents.items()}))
    if options.figure is not None:
        _draw(options.figure, {labels[path]: each for path, each in found.items()})
    return 0


def _labels(names: dict[str, str]) -> dict[str, str]:
    """Agents' names where all differ, else the folders', else the paths.

    >>> _labels({"runs/a": "dqn", "runs/b": "dqn"})
    {'runs/a': 'a', 'runs/b': 'b'}
    """
    choices = (names, {path: Path(path).name for path in names})
    return next((each for each in choices if len(set(each.values())) == len(each)), {path: path for path in names})


def _worst(found: Any) -> str:
    """Where the mean is lowest."""
    if len(found.points) < 2:
        return ""
    rows = [found.worst(way) for way in found.played]
    where = "; ".join(
        f"{row['acting']}, {row['mean']:.4g} at {', '.join(f'{name} {row[name]:g}' for name in found.varied)}"
        for row in rows
    )
    return f"Lowest mean: {where}.\n"


def _together(tables: dict[str, Any], names: dict[str, str]) -> dict[str, np.ndarray]:
    """The tables of all runs, one below the other."""
    rows = {path: len(table["acting"]) for path, table in tables.items()}
    whole = {
        "run": np.concatenate([np.full(n, path) for path, n in rows.items()]),
        "agent": np.concatenate([np.full(n, names[path]) for path, n in rows.items()]),
    }
    first = next(iter(tables.values()))
    return whole | {name: np.concatenate([table[name] for table in tables.values()]) for name in first}


def _can_be_drawn(path: str, grid: Any) -> None:
    """Raises before anything is played for a figure that could not be drawn."""
    check_figure(path)
    lengths = [len(set(values)) for values in grid.values()] if isinstance(grid, dict) else []
    if len(lengths) != 1 or lengths[0] < 2:
        raise ValueError("--figure draws over one parameter, expected one --over with at least two values.")


def _draw(path: str, evaluations: dict[str, Any]) -> None:
    from urbe.report.robustness import draw_robustness

    write_figure(path, draw_robustness(evaluations))
