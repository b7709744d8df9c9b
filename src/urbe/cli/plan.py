"""`urbe plan`: from a log of transitions to a policy with a guaranteed value."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from typing import Any

from urbe import memory
from urbe.cli import log_options
from urbe.cli.files import check_figure, check_folders, write_figure
from urbe.cli.lists import states_of
from urbe.cli.wording import in_options
from urbe.mdp.formats import read_mdp, write_policy
from urbe.mdp.transitions import Transitions
from urbe.planners import BCI, RSVF, HeldOut, HoeffdingSets, Percentile, PlanningMethod, SafePlan, VaRBellman
from urbe.planners import plan as plan_from
from urbe.posteriors import NormalGamma, Posterior
from urbe.posteriors.fit import RandomRewards

METHODS: dict[str, PlanningMethod] = {
    "percentile": Percentile(),
    "bci": BCI(),
    "rsvf": RSVF(),
    "var": VaRBellman(),
    "hoeffding": HoeffdingSets(),
}

HELP = (
    log_options.HELP
    + """
methods, from the highest guaranteed values to the lowest
  percentile the best quantile from the start, among many candidates        for one policy, from the start
  var        values at risk over posterior draws                            for one policy, least conservative
  rsvf       L1 balls fitted to the value functions that matter             for one policy, with a set to inspect
  bci        L1 balls that contain the true rows (credible regions)         for every policy: the set can be reused
  hoeffding  L1 balls from a concentration inequality                       without trusting a prior
If the prior is right, the policy is worth at least the guaranteed value with posterior probability --confidence, with
every method: the value is a quantile over fresh draws. The worst case over a method's set is lower, since all rows are
at their worst at once. With hoeffding, the worst case holds in a share --confidence of data sets for any true model.

Without --model, only successors in the log are possible (with --feasible all, every state is), and only state-action
pairs that were tried exist (with --untried, every pair does). Rewards count as known if every transition always paid
the same reward; otherwise their means are uncertain, too.

examples:
  urbe plan log.csv --discount 0.95
  urbe plan machines.csv --discount 0.95 --missing drop --start good --figure plan.png \\
       --columns state=condition,action=decision,reward=profit,episode=machine,time=date
  urbe plan log.csv --discount 0.95 --method var --confidence 0.9 --output policy.csv
  urbe plan log.csv --discount 0.95 --model model.csv --json
"""
)


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "plan",
        help="find a policy with a guaranteed value from a log of transitions",
        description="Fits a posterior to a log of transitions, finds the policy with the best guaranteed value, and "
        "compares it with the policy of the mean model, on models drawn from the posterior.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "log", help="a file of transitions: .csv, .tsv or .txt, also with .gz, or .parquet; - for standard input"
    )
    log_options.add_arguments(parser)
    parser.add_argument("--discount", type=float, metavar="G", help="in [0, 1]; needed unless --model stores one")
    group = parser.add_argument_group("prior knowledge")
    group.add_argument("--model", metavar="FILE", help="a model file with the right pairs, successors and rewards")
    group.add_argument(
        "--prior", type=float, default=1.0, metavar="X", help="Dirichlet concentration of each successor (1)"
    )
    group.add_argument(
        "--feasible", choices=("observed", "all"), default="observed",
        help="possible successors of a pair without --model: those in the log (default), or every state",
    )  # fmt: skip
    group.add_argument(
        "--untried", action="store_true", help="include pairs that were never tried; needs --feasible all"
    )
    group.add_argument("--terminal", metavar="STATE,...", help="terminal states")
    group.add_argument(
        "--rewards", choices=("auto", "known", "random"), default="auto",
        help="known: a transition always pays the same; random: the means are uncertain; auto: decided by the log",
    )  # fmt: skip
    group.add_argument(
        "--start", metavar="STATE",
        help="initial state; by default that of the model, or all non-terminal states with equal weight",
    )  # fmt: skip
    group = parser.add_argument_group("guarantee")
    group.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        metavar="C",
        help="probability of the guarantee, between 0 and 1 (0.95)",
    )
    group.add_argument("--method", choices=tuple(METHODS), default="bci", help="see below (bci)")
    group.add_argument("--draws", type=int, metavar="M", help="posterior draws to plan with (as many as needed)")
    group.add_argument(
        "--certify", type=int, metavar="N", help="fresh draws that the guarantee is computed from (at least 2000)"
    )
    group.add_argument(
        "--held-out", type=int, default=200, metavar="N", help="fresh draws to evaluate the policies on (200)"
    )
    group.add_argument("--seed", type=int, default=0, metavar="S", help="seed of all draws (0)")
    group.add_argument("--threads", type=int, default=1, metavar="N", help="threads for large models (1)")
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output",
        metavar="FILE",
        help="write the policy to a CSV: idstate,idaction,value (guaranteed)",
    )
    group.add_argument("--figure", metavar="FILE", help="draw the plan (.png, .svg, .pdf)")
    group.add_argument("--json", action="store_true", help="print everything as JSON instead of a table")
    group.add_argument("--quiet", action="store_true", help="no progress, no table; for use with --output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Plans and reports; returns the exit code."""
    check_figure(options.figure)
    check_folders(options.output)
    if options.discount is None and options.model is None:
        raise ValueError("--discount is missing: give a number in [0, 1], such as 0.95.")
    if options.untried and options.feasible != "all":
        raise ValueError("--untried needs --feasible all: the log does not say where untried pairs lead.")
    log = log_options.chosen_log(options)
    posterior, notes = _posterior(log, options)
    start = None if options.start is None else states_of(options.start, posterior.model.labels)[0]
    began = time.perf_counter()
    with memory.advising(_advice(options.method)):
        found = plan_from(
            posterior,
            confidence=options.confidence,
            method=METHODS[options.method],
            seed=options.seed,
            start=start,
            draws=options.draws,
            held_out=options.held_out,
            certify=options.certify,
            threads=options.threads,
            progress=not options.quiet,
        )
    seconds = time.perf_counter() - began
    if options.json:
        json.dump(as_json(found, seconds) | {"notes": [in_options(note) for note in notes]}, sys.stdout)
        print()
    elif not options.quiet:
        print("\n".join((*map(in_options, notes), f"{posterior}\n{found}\n{seconds:.2g} s.")))
    if options.output is not None:
        write_policy(options.output, found.policy, found.guaranteed, found.model.labels)
    if options.figure is not None:
        write_figure(options.figure, found.plot())
    return 0


def _posterior(log: Transitions, options: argparse.Namespace) -> tuple[Posterior, tuple[str, ...]]:
    """Returns the posterior after the log, and notes for the user."""
    known: dict[str, Any] = {"prior": options.prior, "discount": options.discount}
    if options.model is not None:
        known["model"] = read_mdp(options.model, discount=options.discount)
    else:
        known["feasible"] = options.feasible
        known["n_actions"] = int(log.action.max()) + 1 if options.untried else None
        if options.terminal is not None:
            known["terminal"] = states_of(options.terminal, log.labels)
    random = NormalGamma.around(log.reward)
    about = (
        f"Rewards are random: the mean of each pair is uncertain, with a prior around {random.mean:.4g} worth one "
        f"reward of standard deviation {math.sqrt(random.rate):.4g}."
    )
    if options.rewards == "random":
        return Posterior.fit(log, rewards=random, **known), (*log.notes, about)
    try:
        return Posterior.fit(log, **known), log.notes
    except RandomRewards:
        if options.rewards == "known":
            raise
        return Posterior.fit(log, rewards=random, **known), (*log.notes, about)


def _advice(method: str) -> str:
    """Says what to change if planning needs more memory than is available."""
    if method in ("percentile", "var", "rsvf"):
        return (
            "Use --method bci or --method hoeffding, which keep no draws; lower --confidence, which needs fewer draws; "
            "or give fewer --draws."
        )
    return "Use fewer --held-out draws, or a log with fewer states."


def as_json(found: SafePlan, seconds: float) -> dict[str, Any]:
    """Converts everything in a plan except the set to plain lists; statistics without draws are null."""
    return {
        "method": str(found.method),
        "confidence": found.confidence,
        "promise": found.promise,
        "seconds": seconds,
        "start": found.start_text,
        "states": found.model.labels.states,
        "actions": found.model.labels.actions,
        "policy": found.policy.tolist(),
        "guaranteed": found.guaranteed.tolist(),
        "guaranteed_at_start": found.guaranteed_at_start,
        "worst_case": found.worst_case.tolist(),
        "held_out": _held_out(found.held_out),
        "nominal_policy": found.nominal_policy.tolist(),
        "nominal_value": found.nominal_value.tolist(),
        "nominal_held_out": _held_out(found.nominal_held_out),
    }


def _held_out(fared: HeldOut) -> dict[str, Any]:
    numbers = {"mean": fared.mean, "below": fared.below} | {
        f"quantile_{share:g}": fared.percentile(share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)
    }
    return {"draws": len(fared.values)} | {name: None if math.isnan(x) else x for name, x in numbers.items()}
