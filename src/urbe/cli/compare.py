"""`urbe compare`: compare agents over perturbed dynamics, with intervals over training seeds."""

from __future__ import annotations

import argparse
from typing import Any

from urbe.cli import worlds
from urbe.cli.evaluate import add_played, play, seeds
from urbe.cli.files import check_figure, check_table, write_figure
from urbe.cli.run_groups import grouped, load_runs
from urbe.tables import write_table

HELP = """\
Every RUN is evaluated as by urbe evaluate, greedily unless --noisy is given. Runs that differ only in their seed count
as one agent.
For each agent, over all seeds and all parameters of --over:
  iqm          mean of the middle half of the returns, robust to single failed runs
  mean         mean return
  worst case   return under the worst parameters, mean over seeds
  cvar         mean return under the worst quarter of the parameters (--share), mean over seeds
each with an interval over seeds (--confidence). If agents share at least two seeds, differences of worst
cases are tested seed by seed, with p-values adjusted for their number (Holm). With one seed there are no intervals.

The figure shows returns over the parameter, if one varies; performance profiles (the share of returns above each
threshold, with a band that holds for the whole curve); and the four numbers with their intervals.

To include a policy of your own (any object with predict(observation)), give module:policy.

examples:
  urbe compare runs/urbe0 runs/urbe1 runs/urbe2 runs/dqn0 runs/dqn1 runs/dqn2 --over half_length=0.1:5:11
  urbe compare runs/* --over half_length=0.1:5:11 --episodes 1000 --csv compared.csv --figure compared.png
  urbe compare runs/heat* mine:policy --over outside=-5:15:5 --share 0.2
"""


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "compare",
        help="compare agents over seeds",
        description="Evaluates trained agents over perturbed dynamics and compares them: interquartile mean, mean, "
        "worst case and CVaR with intervals over seeds, and performance profiles.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_played(parser)
    parser.add_argument(
        "--noisy",
        action="store_const",
        dest="acting",
        const="noisy",
        default="greedy",
        help="act noisily, not greedily",
    )
    group = parser.add_argument_group("report")
    group.add_argument(
        "--confidence", type=float, default=0.95, metavar="C", help="confidence level of the intervals (0.95)"
    )
    group.add_argument(
        "--share", type=float, default=0.25, metavar="S", help="share of the worst parameters for CVaR (0.25)"
    )
    group.add_argument("--csv", metavar="FILE", help="write the numbers (.csv or .parquet)")
    group.add_argument("--figure", metavar="FILE", help="draw returns, profiles and numbers (.png, .svg, .pdf)")
    group.add_argument("--quiet", action="store_true", help="no progress, no table; for use with --csv and --figure")
    parser.set_defaults(run=run, cvar=0.1)


def run(options: argparse.Namespace) -> int:
    """Evaluates, compares and reports; returns the exit code."""
    grid = worlds.grid_of(options.over)
    check_figure(options.figure)
    check_table("--csv", options.csv)
    worlds.set_up_jax()
    from urbe.evaluation.compare import compare

    worlds.import_modules(options.modules)
    runs = load_runs(options.run_paths, options.env, options.adapter)
    found = {each.path: play(each, grid, options, table=False) for each in runs}
    compared = compare(
        {name: seeds(members, found) for name, members in grouped(runs).items()},
        acting=options.acting,
        share=options.share,
        confidence=options.confidence,
        seed=options.seed,
    )
    if not options.quiet:
        print(f"\n{compared}")
    if options.csv is not None:
        write_table(options.csv, compared.table())
    if options.figure is not None:
        write_figure(options.figure, compared.plot())
    return 0
