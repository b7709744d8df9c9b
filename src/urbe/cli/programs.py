"""Options of commands that read programs in the PRISM language."""

from __future__ import annotations

import argparse
from typing import Any


def add_program_options(parser: argparse.ArgumentParser) -> None:
    """Adds them."""
    parser.add_argument(
        "--constants",
        metavar="N=3,...",
        help="values of the constants that a program in the PRISM language leaves undefined",
    )
    parser.add_argument("--reward", metavar="NAME", help="which rewards of such a program to use, if it has several")


def program_options(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the options as arguments of `urbe.read_mdp`."""
    return {"constants": options.constants, "reward": options.reward}
