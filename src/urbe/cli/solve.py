"""`urbe solve`: find the best policy of a model in a file, with certified bounds."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from urbe.cli import sets
from urbe.cli.files import check_figure, check_folders, check_table, write_figure
from urbe.cli.models import COSTS, add_model_options, read_model
from urbe.mdp.formats import read_policy, write_policy
from urbe.mdp.formats.mdp_files import FORMATS
from urbe.mdp.model import MDP
from urbe.progress import of_gap, stages
from urbe.solvers import (
    BackwardInduction,
    ModifiedPolicyIteration,
    NotConverged,
    PartialPolicyIteration,
    Solution,
    ValueIteration,
    evaluate_policy,
)
from urbe.solvers import solve as solve_model
from urbe.solvers.sensitivity import sensitivity

METHODS = {"ppi": PartialPolicyIteration, "mpi": ModifiedPolicyIteration, "vi": ValueIteration}
SHOWN_STATES = 20

EXAMPLES = """
examples:
  urbe solve model.csv --discount 0.99 --set l1 --radius 0.5 --output policy.csv
  urbe solve model.csv --discount 0.99 --set kl --radius 0.1 --rectangular s
  urbe solve table.csv --discount 0.99 --columns state=from,action=do,next_state=to,probability=p,reward=gain
  urbe solve model.tra --discount 0.95 --set interval --json
  urbe solve model.drn --discount 1 --costs --terminal goal --set kl --radius 0.1     expected cost to a goal, at most
  urbe solve model.npz --horizon 50 --set chi2 --radius 0.2
  urbe solve model.csv --discount 0.99 --set l1 --radius 0:1:11 --figure price.png
  urbe solve model.csv --horizon 20 --discount 1 --set l1 --radius 0:1:11              the same over a finite horizon
  urbe solve model.csv --discount 0.99 --set l1 --radius 0.5 --policy mine.csv         the worst case of your policy
"""


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "solve",
        help="find the policy with the best worst-case value",
        description="Finds the policy with the best worst-case value over an uncertainty set, with certified bounds.",
        epilog=sets.HELP + EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "model",
        help="a model file: .csv (craam), .parquet, .npz, .tra (PRISM explicit), .drn (Storm), .umb, .bmdp, or a "
        "program in the PRISM language: .prism, .nm, .pm",
    )
    parser.add_argument(
        "--discount", type=float, metavar="G", help="in [0, 1]; needed unless the file stores one (.npz)"
    )
    add_model_options(parser)
    parser.add_argument("--format", choices=tuple(FORMATS), help="format of the file, if its name does not show it")
    sets.add_arguments(parser)
    group = parser.add_argument_group("how to solve")
    group.add_argument(
        "--tolerance", type=float, default=1e-6, metavar="T", help="gap between the bounds at which to stop (1e-6)"
    )
    group.add_argument(
        "--method", choices=tuple(METHODS), default="ppi",
        help="partial policy iteration (default), modified policy iteration, value iteration",
    )  # fmt: skip
    group.add_argument(
        "--horizon", type=int, metavar="H", help="solve a finite horizon of H decisions, by backward induction"
    )
    group.add_argument(
        "--policy", metavar="FILE",
        help="evaluate this policy instead of looking for the best: columns state, action, and probability or step if "
        "needed (.csv or .parquet), as --output and --csv write them",
    )  # fmt: skip
    group.add_argument("--threads", type=int, default=1, metavar="N", help="threads for large models (1)")
    group = parser.add_argument_group("output")
    group.add_argument("--output", metavar="FILE", help="write the policy to a CSV: idstate,idaction,value")
    group.add_argument("--csv", metavar="FILE", help="write the table of values (.csv or .parquet)")
    group.add_argument("--figure", metavar="FILE", help="draw values and policy (.png, .svg, .pdf)")
    group.add_argument("--json", action="store_true", help="print everything as JSON instead of a table")
    group.add_argument("--quiet", action="store_true", help="no progress, no table; for use with --output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Solves and reports; returns the exit code."""
    if options.horizon is not None and options.output is not None:
        raise ValueError(
            "--output stores one action per state, but with --horizon actions depend on the step. Use --json."
        )
    several = isinstance(options.radius, tuple)
    check_figure(options.figure)
    check_table("--csv", options.csv)
    check_folders(options.output)
    mdp = read_model(options.model, options, options.discount, options.format)
    if options.costs and not (options.json or options.quiet):
        print(COSTS)
    if several:
        return _compare(mdp, options)
    nature = sets.chosen_set(options, mdp)
    policy = None if options.policy is None else _given_policy(mdp, options)
    method = (
        METHODS[options.method](tolerance=options.tolerance)
        if options.horizon is None
        else BackwardInduction(options.horizon)
    )
    began = time.perf_counter()
    with stages("urbe solve", shown=not options.quiet) as report:
        progress = of_gap(report, options.tolerance)
        try:
            if policy is None:
                solution = solve_model(mdp, nature, method, threads=options.threads, progress=progress)
            else:
                solution = evaluate_policy(mdp, policy, nature, method, threads=options.threads)
        except NotConverged as error:
            solution = error.solution
    seconds = time.perf_counter() - began
    if options.json:
        json.dump(as_json(solution, seconds), sys.stdout)
        print()
    elif not options.quiet:
        _print_table(mdp, solution, seconds)
    if not solution.converged:
        print(f"urbe: {solution.status}", file=sys.stderr)
        return 1
    if options.csv is not None:
        solution.write(options.csv)
    if options.output is not None:
        write_policy(options.output, solution.policy, solution.value, mdp.labels)
    if options.figure is not None:
        write_figure(options.figure, solution.plot())
    return 0


def _given_policy(mdp: MDP, options: argparse.Namespace) -> Any:
    """Reads the policy to evaluate."""
    policy = read_policy(options.policy, mdp)
    if isinstance(policy, list) and options.horizon != len(policy):
        raise ValueError(f"--policy has a policy for each of {len(policy)} steps, expected --horizon {len(policy)}.")
    return policy


def _compare(mdp: MDP, options: argparse.Namespace) -> int:
    """Compares several radii."""
    for name in ("policy", "output"):
        if getattr(options, name) is not None:
            raise ValueError(f"--radius with several values cannot be combined with --{name}; give one radius.")
    found = sensitivity(
        mdp,
        sets.family(options),
        options.radius,
        horizon=options.horizon,
        threads=options.threads,
        progress=not options.quiet,
    )
    if options.json:
        columns = {name: column.tolist() for name, column in found.table().items()}
        policies = {"actions": found.actions.tolist(), "nominal_actions": found.nominal_actions.tolist()}
        named = {"states": mdp.labels.states, "action_names": mdp.labels.actions}
        json.dump({"set": found.set_name, "gap": found.gap} | named | columns | policies, sys.stdout)
        print()
    elif not options.quiet:
        print(f"{mdp}\n{found}")
    if options.csv is not None:
        found.write(options.csv)
    if options.figure is not None:
        write_figure(options.figure, found.plot())
    return 0


def as_json(solution: Solution, seconds: float) -> dict[str, Any]:
    """Converts everything in a solution except the kernel to plain lists; missing values are null."""
    return {
        "status": solution.status,
        "converged": solution.converged,
        "gap": solution.gap,
        "steps": solution.steps,
        "seconds": seconds,
        "policy": solution.policy.tolist(),
        "value": solution.value.tolist(),
        "lower": solution.lower.tolist(),
        "upper": solution.upper.tolist(),
        "q": np.where(np.isfinite(solution.q), solution.q, None).tolist(),  # type: ignore[call-overload]
    }


def _print_table(mdp: MDP, solution: Solution, seconds: float) -> None:
    console = Console()
    console.print(f"{mdp}", highlight=False)
    value, lower, upper = (np.atleast_2d(x)[0] for x in (solution.value, solution.lower, solution.upper))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("state", "action", "value", "at least", "at most"):
        table.add_column(name, justify="right")
    for s in range(min(mdp.n_states, SHOWN_STATES)):
        table.add_row(
            escape(mdp.labels.state(s)),
            escape(solution.action_text(s)),
            *(f"{x[s]:.8g}" for x in (value, lower, upper)),
        )
    console.print(table)
    if mdp.n_states > SHOWN_STATES:
        console.print(f"... and {mdp.n_states - SHOWN_STATES} more states; --output writes them all.", highlight=False)
    start = solution.value_at_start()
    if start is not None:
        console.print(f"Value at the start: {start:.8g}", highlight=False)
    effort = f"{solution.steps} steps, {seconds:.2g} s."
    console.print(f"{solution.status} {effort}", highlight=False, soft_wrap=True)
