"""Options of commands that read models."""

from __future__ import annotations

import argparse

from urbe import checks
from urbe.cli.lists import states_of
from urbe.cli.log_options import pairs
from urbe.mdp.formats import read_mdp
from urbe.mdp.model import MDP

COSTS = "Rewards are minus the costs in the file, so values are minus costs."


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument(
        "--costs", action="store_true",
        help="the rewards in the file are costs: minimise them; values are then minus costs",
    )  # fmt: skip
    parser.add_argument(
        "--terminal", metavar="STATE,...",
        help="states where the process ends, or names of sets of states in the file, such as goal",
    )  # fmt: skip
    parser.add_argument(
        "--labels",
        action="store_true",
        help="numbers in a CSV or Parquet model are labels of states and actions, not 0-based ids",
    )
    parser.add_argument(
        "--columns", type=pairs, metavar="WHAT=NAME,...",
        help="names of the columns of state, action, next_state, probability, reward (or cost), lower and upper in a "
        "CSV or Parquet model, if they differ",
    )  # fmt: skip
    parser.add_argument("--constants", metavar="N=3,...", help="values of the undefined constants of a PRISM program")
    parser.add_argument(
        "--reward",
        metavar="NAME",
        help="the reward structure or model to use, if a PRISM program or DRN file has several",
    )


def read_model(path: str, options: argparse.Namespace, discount: float | None, format: str | None) -> MDP:
    """Reads the model that the options describe."""
    mdp = read_mdp(
        path,
        discount=discount,
        format=format,
        labels=True if options.labels else None,
        names=options.columns,
        constants=options.constants,
        reward=options.reward,
        costs=options.costs,
    )
    if options.terminal is None:
        return mdp
    try:
        return mdp.with_terminal(states_of(options.terminal, mdp.labels))
    except ValueError as error:
        sets = checks.listing(sorted(mdp.propositions), 10) or "none"
        raise ValueError(f"{error} The file has these sets of states: {sets}.") from None
