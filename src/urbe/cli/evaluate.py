"""`urbe evaluate`: evaluate trained agents under dynamics that differ from those of training."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from urbe.cli import worlds
from urbe.cli.files import check_figure, check_table, write_figure
from urbe.cli.run_groups import SavedRun, grouped, load_runs
from urbe.tables import write_table

HELP = """\
--over gives the dynamics to test; parameters that are not named are nominal. Give it once per parameter; several
parameters mean every combination:
  half_length=0.1:5:11       eleven values from 0.1 to 5, both included
  half_length=0.5,1,2        these values
Without --over, the nominal dynamics are tested.

Agents act greedily, and those with an uncertainty head also noisily: with its noise as in training, but without random
actions. These are different policies and are reported separately. --greedy or --noisy plays only one of them.

Episodes begin the same way for all parameters and all agents with the same --seed. The table lists for each parameter
  mean, low, high    the mean return, and Student's interval for it
  worst, cvar        the lowest return, and the mean of the lowest tenth (--cvar)
  median, std, length, ended    and the share of episodes that ended before time ran out

Runs that differ only in their seed count as one agent: table and figure show the mean and Student's interval over
seeds; --each also prints the table of every run.

An agent trained on a Gymnasium environment is tested on one with the same id, or on that of --env. Parameters of --over
are set on it where urbe knows how (see urbe train --help), else they are arguments of gymnasium.make:
  --env urbe/CartPole-v0 --over half_length=0.5,1    is    gymnasium.make("urbe/CartPole-v0", half_length=0.5), ...

To include a policy of your own (any object with predict(observation)), give module:policy.

examples:
  urbe evaluate runs/urbe0 --over half_length=0.1:5:11
  urbe evaluate runs/urbe0 runs/robust0 runs/dqn0 --over half_length=0.1:5:11 --greedy --figure poles.png
  urbe evaluate runs/urbe0 --over half_length=0.5,1 masspole=0.1,0.5 --episodes 1000 --csv table.csv
  urbe evaluate runs/urbe0 runs/urbe1 runs/urbe2 runs/dqn0 runs/dqn1 runs/dqn2 --over half_length=0.1:5:11 --greedy \
    --figure seeds.png
  urbe evaluate runs/pole --env CartPole-v1
  urbe evaluate runs/urbe0 mine:policy --over half_length=0.5,1 --greedy
"""


SAME = 1e-3
"""Means over parameters whose relative difference is smaller are reported as equal."""


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "evaluate",
        help="test trained agents under perturbed dynamics",
        description="Plays test episodes of trained agents under many parameters, and reports mean, interval, worst "
        "case and CVaR for each.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_played(parser)
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--greedy", action="store_const", dest="acting", const="greedy", help="only act greedily")
    ways.add_argument("--noisy", action="store_const", dest="acting", const="noisy", help="only act noisily")
    group = parser.add_argument_group("report")
    group.add_argument(
        "--confidence", type=float, default=0.95, metavar="C", help="confidence level of the intervals (0.95)"
    )
    group.add_argument(
        "--cvar", type=float, default=0.1, metavar="S", help="share of the lowest returns for CVaR (0.1)"
    )
    group.add_argument("--each", action="store_true", help="also print the table of each run of a group")
    group.add_argument("--csv", metavar="FILE", help="write the table (.csv or .parquet)")
    group.add_argument("--episodes-csv", metavar="FILE", help="write every episode (.csv or .parquet)")
    group.add_argument("--figure", metavar="FILE", help="draw means, intervals and worst cases (.png, .svg, .pdf)")
    group.add_argument("--quiet", action="store_true", help="no progress, no table; for use with --csv and --figure")
    parser.set_defaults(run=run)


def add_played(parser: argparse.ArgumentParser) -> None:
    """Adds the options that choose agents, parameters and episodes."""
    parser.add_argument(
        "run_paths", nargs="+", metavar="RUN", help="folders of runs, saved agents, or module:policy of your own"
    )
    parser.add_argument(
        "--over", nargs="+", default=[], action="extend", metavar="P=V", help="parameters to test; see below"
    )
    parser.add_argument("--episodes", type=int, default=200, metavar="E", help="episodes for each parameter (200)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episodes (0)")
    parser.add_argument("--env", metavar="ID", help="a Gymnasium environment instead of the one of training")
    parser.add_argument(
        "--import", dest="modules", nargs="+", default=[], action="extend", metavar="M",
        help="modules of your own that define parts of an agent (--set variance=M:Class)",
    )  # fmt: skip
    parser.add_argument("--adapter", metavar="M:CLASS", help="sets the parameters of a Gymnasium environment")


def run(options: argparse.Namespace) -> int:
    """Evaluates and reports; returns the exit code."""
    grid = worlds.grid_of(options.over)
    if options.figure is not None:
        _can_be_drawn(options.figure, grid)
    check_table("--csv", options.csv)
    check_table("--episodes-csv", options.episodes_csv)
    worlds.set_up_jax()
    worlds.import_modules(options.modules)
    runs = load_runs(options.run_paths, options.env, options.adapter)
    mates = grouped(runs)
    alone = {members[0].path for members in mates.values() if len(members) == 1}
    found = {run.path: play(run, grid, options, table=options.each or run.path in alone) for run in runs}
    groups = {name: seeds(members, found) for name, members in mates.items()}
    if not options.quiet:
        for name, group in groups.items():
            if len(group.seeds) > 1:
                print(f"{name}\n{group}\n")
    names = {run.path: run.name for run in runs}
    for target, tables in (
        (options.csv, {path: each.table() for path, each in found.items()}),
        (options.episodes_csv, {path: each.episodes() for path, each in found.items()}),
    ):
        if target is not None:
            write_table(target, _together(tables, names))
    if options.figure is not None:
        _draw(options.figure, groups)
    return 0


def play(run: SavedRun, grid: Any, options: argparse.Namespace, *, table: bool) -> Any:
    """Evaluates one run, and prints its description and, if requested, its table."""
    from urbe.evaluation.robustness import evaluate

    began = time.perf_counter()
    found = evaluate(
        run.policy,
        grid,
        env=run.env,
        episodes=options.episodes,
        seed=options.seed,
        acting=options.acting,
        confidence=options.confidence,
        cvar=options.cvar,
        progress=not options.quiet and sys.stderr.isatty(),
    )
    if not options.quiet:
        what = "a policy" if run.seed is None else f"{run.name}, seed {run.seed}, after {run.policy.step} steps"
        print(f"{run.path}: {what}. {time.perf_counter() - began:.2g} s.")
        if table:
            print(f"{found}\n{_worst(found)}")
    return found


def seeds(runs: Sequence[SavedRun], found: Mapping[str, Any]) -> Any:
    """Collects the evaluations of the runs of one group."""
    from urbe.evaluation.seeds import SeedEvaluation

    return SeedEvaluation(tuple(found[run.path] for run in runs), tuple(run.seed or 0 for run in runs))


def _worst(found: Any) -> str:
    """Describes where the mean is lowest."""
    if len(found.points) < 2:
        return ""
    rows = [found.worst(way) for way in found.played]
    where = "; ".join(
        f"{row['acting']}, {row['mean']:.4g} at {', '.join(f'{name} {row[name]:g}' for name in found.varied)}"
        for row in rows
    )
    return f"Lowest mean: {where}.\n{_flat(found)}"


def _flat(found: Any) -> str:
    """Explains what equal means under all parameters may imply; empty if they differ."""
    means = {way: episodes.returns.mean(axis=1) for way, episodes in found.played.items()}
    same = [way for way, mean in means.items() if np.ptp(mean) <= SAME * np.abs(mean).max()]
    if not same:
        return ""
    mean = f"{means[same[0]][0]:.4g}"
    return (
        f"Acting {' and '.join(same)}, the mean is {mean} under all parameters. The policy may ignore its\n"
        "observations: either it has learned nothing yet, or it avoids all risk. Train longer, or compare it with\n"
        "a policy of your own: urbe compare RUN module:policy.\n"
    )


def _together(tables: dict[str, Any], names: dict[str, str]) -> dict[str, np.ndarray]:
    """Stacks the tables of all runs."""
    rows = {path: len(table["acting"]) for path, table in tables.items()}
    whole = {
        "run": np.concatenate([np.full(n, path) for path, n in rows.items()]),
        "agent": np.concatenate([np.full(n, names[path]) for path, n in rows.items()]),
    }
    first = next(iter(tables.values()))
    return whole | {name: np.concatenate([table[name] for table in tables.values()]) for name in first}


def _can_be_drawn(path: str, grid: Any) -> None:
    """Raises if the figure cannot be drawn, before any episode is played."""
    check_figure(path)
    lengths = [len(set(values)) for values in grid.values()] if isinstance(grid, dict) else []
    if len(lengths) != 1 or lengths[0] < 2:
        raise ValueError("--figure draws over one parameter, expected one --over with at least two values.")


def _draw(path: str, groups: dict[str, Any]) -> None:
    """Draws means over seeds if some agent has several, else each run with its worst episodes."""
    if all(len(group.seeds) == 1 for group in groups.values()):
        from urbe.report.robustness import draw_robustness

        write_figure(path, draw_robustness({name: group.evaluations[0] for name, group in groups.items()}))
    else:
        from urbe.report.comparison import draw_seeds

        write_figure(path, draw_seeds(groups))
