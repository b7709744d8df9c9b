"""`urbe plan`: a log of transitions in, a policy with a guaranteed value out."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from typing import Any

from urbe import memory
from urbe.cli import log_options
from urbe.cli.figures import check_figure, write_figure
from urbe.cli.wording import in_options
from urbe.mdp.formats import read_mdp, write_policy
from urbe.mdp.transitions import Transitions
from urbe.planners import BCI, RSVF, HeldOut, HoeffdingSets, Percentile, PlanningMethod, SafePlan, VaRBellman
from urbe.planners import plan as plan_from
from urbe.posteriors import NormalGamma, Posterior
from urbe.posteriors.fit import RandomRewards
from urbe.progress import gap_progress

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
  var        values at risk over posterior draws                            for one policy, and the least wary
  rsvf       L1 balls fitted to the value functions that matter             for one policy, as a set to look at
  bci        L1 balls that hold the true rows (credible regions)            for every policy: the set may be reused
  hoeffding  L1 balls from a concentration inequality                       without trusting a prior
With every method the policy is worth the guaranteed value with posterior probability --confidence or more, if the prior
is right: the value is a quantile over fresh draws. The worst case over a method's set is lower, as it holds row by row;
for hoeffding it does so in a share --confidence of data sets, whatever the truth.

Without --model, only successors seen in the log count as possible (--feasible all: every state), and only pairs of
state and action that were tried (--untried: every pair). Rewards are taken as known where a transition always paid the
same, otherwise their means are uncertain, too.

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
        "reports how it fares on models drawn from the posterior, beside the policy of the mean model.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("log", help="a file of transitions: .csv or .parquet")
    log_options.add_arguments(parser)
    parser.add_argument("--discount", type=float, metavar="G", help="in [0, 1]; needed unless --model stores one")
    group = parser.add_argument_group("what is known beforehand")
    group.add_argument("--model", metavar="FILE", help="a model file whose pairs, successors and rewards are right")
    group.add_argument("--prior", type=float, default=1.0, metavar="X", help="concentration of each successor (1)")
    group.add_argument(
        "--feasible", choices=("observed", "all"), default="observed",
        help="without --model, successors of a pair: those in the log (default), or every state",
    )  # fmt: skip
    group.add_argument("--untried", action="store_true", help="pairs never tried exist, too; needs --feasible all")
    group.add_argument("--terminal", metavar="STATE,...", help="states where the process ends")
    group.add_argument(
        "--rewards", choices=("auto", "known", "random"), default="auto",
        help="known: a transition always pays the same; random: their means are uncertain; auto: as the log has it",
    )  # fmt: skip
    group.add_argument(
        "--start", metavar="STATE",
        help="the first state; by default the model's, or all that are not terminal, with equal weight",
    )  # fmt: skip
    group = parser.add_argument_group("what is guaranteed, and how")
    group.add_argument("--confidence", type=float, default=0.95, metavar="C", help="between 0 and 1 (0.95)")
    group.add_argument("--method", choices=tuple(METHODS), default="bci", help="see below (bci)")
    group.add_argument("--draws", type=int, metavar="M", help="posterior draws to plan with (as many as needed)")
    group.add_argument("--certify", type=int, metavar="N", help="fresh draws behind the guarantee (2000 or more)")
    group.add_argument("--held-out", type=int, default=200, metavar="N", help="fresh draws to judge it by (200)")
    group.add_argument("--seed", type=int, default=0, metavar="S", help="of all draws (0)")
    group.add_argument("--threads", type=int, default=1, metavar="N", help="threads for large models (1)")
    group = parser.add_argument_group("what to write")
    group.add_argument(
        "--output",
        metavar="FILE",
        help="write the policy to a CSV: idstate,idaction,value (the guaranteed one)",
    )
    group.add_argument("--figure", metavar="FILE", help="draw the plan (.png, .svg, .pdf)")
    group.add_argument("--json", action="store_true", help="print everything as JSON instead of a table")
    group.add_argument("--quiet", action="store_true", help="no progress, no table; for use with --output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Plans and reports; returns the exit code."""
    check_figure(options.figure)
    if options.discount is None and options.model is None:
        raise ValueError("--discount is missing: give a number in [0, 1], such as 0.95.")
    if options.untried and options.feasible != "all":
        raise ValueError("--untried needs --feasible all: nothing says where pairs lead that were never tried.")
    log = log_options.chosen_log(options)
    posterior, notes = _posterior(log, options)
    start = None if options.start is None else log_options.states_of(options.start, posterior.model.labels)[0]
    began = time.perf_counter()
    with (
        memory.advising(_advice(options.method)),
        gap_progress(show=not options.quiet and not options.json, tolerance=1e-6) as progress,
    ):
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
            progress=progress,
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
    """What is known after the log, and what to say about it."""
    known: dict[str, Any] = {"prior": options.prior, "discount": options.discount}
    if options.model is not None:
        known["model"] = read_mdp(options.model, discount=options.discount)
    else:
        known["feasible"] = options.feasible
        known["n_actions"] = int(log.action.max()) + 1 if options.untried else None
        if options.terminal is not None:
            known["terminal"] = log_options.states_of(options.terminal, log.labels)
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
    """What to change when planning needs more memory than there is."""
    if method in ("percentile", "var", "rsvf"):
        return (
            "Use --method bci or --method hoeffding, which keep no draws; a lower --confidence, which needs fewer "
            "draws; or fewer --draws."
        )
    return "Use fewer --held-out draws, or a log with fewer states."


def as_json(found: SafePlan, seconds: float) -> dict[str, Any]:
    """Everything of a plan but the set, as plain lists; figures of no draws are null."""
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
