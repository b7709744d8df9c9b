"""Ambiguity sets by name: the only place where strings become sets."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from urbe.ambiguity import (
    AmbiguitySet,
    Chi2Ball,
    Contamination,
    Interval,
    KLBall,
    L1Ball,
    L2Ball,
    LikelihoodRegion,
    LInfBall,
    Optimistic,
    SRectangular,
)
from urbe.mdp.formats import read_budget
from urbe.mdp.model import MDP

BALLS: dict[str, Callable[..., Any]] = {
    "l1": L1Ball,
    "l2": L2Ball,
    "linf": LInfBall,
    "kl": KLBall,
    "likelihood": LikelihoodRegion,
    "chi2": Chi2Ball,
    "contamination": Contamination,
}
S_RECTANGULAR = ("l1", "l2", "linf", "kl")

HELP = """\
sets (--set NAME --radius X), nature may replace each row p of the model by any q with
  l1             sum |q - p| <= X                  up to 2
  l2             sqrt(sum (q - p)^2) <= X
  linf           max |q - p| <= X
  kl             sum q log(q / p) <= X
  likelihood     sum p log(p / q) <= X             reverse KL; X = chi2 quantile / (2 n) for n samples
  chi2           sum (q - p)^2 / p <= X
  contamination  (1 - X) p + X (anything)          up to 1
  interval       the bounds of the file itself     PRISM [lo,hi], CSV columns lower,upper; no radius
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that choose the uncertainty set."""
    group = parser.add_argument_group("uncertainty set")
    group.add_argument("--set", choices=(*BALLS, "interval"), help="kind of set; without it, solve the nominal model")
    group.add_argument(
        "--radius", type=_radii, metavar="X",
        help="size of the set, for every state and action; LOW:HIGH:COUNT or X,Y,... compares several sizes",
    )  # fmt: skip
    group.add_argument(
        "--budget",
        metavar="FILE",
        help="a CSV idstate,idaction,budget with a radius for each pair, instead of --radius",
    )
    group.add_argument(
        "--support", choices=("nominal", "all"), default="nominal",
        help="states that may receive probability: the row's successors (default), or every state",
    )  # fmt: skip
    group.add_argument(
        "--rectangular", choices=("sa", "s"), default="sa",
        help="sa: nature chooses a row for each state-action pair (default); s: it has one budget per state, for all "
        f"actions ({', '.join(S_RECTANGULAR)}; policies may be randomised)",
    )  # fmt: skip
    group.add_argument("--optimistic", action="store_true", help="nature chooses the best model instead of the worst")


def _radii(text: str) -> float | tuple[float, ...]:
    """Reads a number, `low:high:count`, or numbers separated by commas."""
    try:
        if ":" in text:
            low, high, count = text.split(":")
            if int(count) < 2 or not float(low) < float(high):
                raise ValueError
            return tuple(np.linspace(float(low), float(high), int(count)).round(12).tolist())
        numbers = tuple(float(part) for part in text.split(","))
        return numbers[0] if len(numbers) == 1 else numbers
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"found {text!r}, expected a number, LOW:HIGH:COUNT such as 0:1:11, or numbers separated by commas"
        ) from None


def family(options: argparse.Namespace) -> Callable[[float], AmbiguitySet]:
    """Returns a function from a radius to its set, for a comparison of several radii."""
    if options.set not in BALLS:
        raise ValueError(f"--radius with several values needs --set, one of {', '.join(BALLS)}.")
    for name, given in (("--budget", options.budget is not None), ("--rectangular s", options.rectangular == "s"),
                        ("--optimistic", options.optimistic)):  # fmt: skip
        if given:
            raise ValueError(f"--radius with several values cannot be combined with {name}; give one radius.")
    ball = BALLS[options.set]

    def make(radius: float) -> AmbiguitySet:
        made: AmbiguitySet = ball(radius, support=options.support)
        return made

    make.__name__ = ball.__name__
    return make


def chosen_set(options: argparse.Namespace, mdp: MDP) -> AmbiguitySet | None:
    """Returns the set that the options describe, or None for the nominal model."""
    if options.set is None:
        for name in ("radius", "budget"):
            if getattr(options, name) is not None:
                raise ValueError(f"--{name} gives the size of a set, but --set is missing. Add --set l1, for example.")
        if options.rectangular == "s" or options.optimistic:
            raise ValueError("--rectangular and --optimistic need a set. Add --set l1 --radius 0.5, for example.")
        return None
    nature = _described(options, mdp)
    if options.rectangular == "s":
        if options.set not in S_RECTANGULAR:
            raise ValueError(f"--rectangular s supports {', '.join(S_RECTANGULAR)}, not {options.set}.")
        if options.optimistic:
            raise ValueError("--optimistic cannot be combined with --rectangular s; use --rectangular sa.")
        nature = SRectangular(nature)
    return Optimistic(nature) if options.optimistic else nature


def _described(options: argparse.Namespace, mdp: MDP) -> Any:
    if options.set == "interval":
        if options.radius is not None or options.budget is not None:
            raise ValueError("--set interval takes its bounds from the file. For a ball with a radius use --set linf.")
        if mdp.bounds is None:
            raise ValueError(
                f"{options.model} has no intervals, expected bounds of every probability for --set interval. For a "
                "ball with a radius use --set linf."
            )
        return Interval()
    if (options.radius is None) == (options.budget is None):
        raise ValueError(f"--set {options.set} needs either --radius X or --budget FILE.")
    radius = options.radius if options.budget is None else read_budget(options.budget, mdp)
    return BALLS[options.set](radius, support=options.support)
