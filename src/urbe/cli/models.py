"""Options of commands that read models."""

from __future__ import annotations

import argparse
from typing import Any


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds them."""
    parser.add_argument(
        "--labels", action="store_true", help="numbers in a CSV model are labels of states and actions, not 0-based ids"
    )
    parser.add_argument("--constants", metavar="N=3,...", help="what a program in the PRISM language leaves open")
    parser.add_argument("--reward", metavar="NAME", help="the rewards to use of a program or DRN file that has several")


def model_options(options: argparse.Namespace) -> dict[str, Any]:
    """As `urbe.read_mdp` takes them."""
    labels = True if options.labels else None
    return {"labels": labels, "constants": options.constants, "reward": options.reward}
