"""Options of commands that read models."""

from __future__ import annotations

import argparse
from typing import Any


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument(
        "--labels", action="store_true", help="numbers in a CSV model are labels of states and actions, not 0-based ids"
    )
    parser.add_argument("--constants", metavar="N=3,...", help="values of the undefined constants of a PRISM program")
    parser.add_argument(
        "--reward",
        metavar="NAME",
        help="the reward structure or model to use, if a PRISM program or DRN file has several",
    )


def model_options(options: argparse.Namespace) -> dict[str, Any]:
    """Returns them as arguments of `urbe.read_mdp`."""
    labels = True if options.labels else None
    return {"labels": labels, "constants": options.constants, "reward": options.reward}
