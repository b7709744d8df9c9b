"""Options of commands that read programs in the PRISM language."""

from __future__ import annotations

import argparse
from typing import Any


def add_program_options(parser: argparse.ArgumentParser) -> None:
    """Adds them."""
    parser.add_argument("--constants", metavar="N=3,...", help="what a program in the PRISM language leaves open")
    parser.add_argument("--reward", metavar="NAME", help="the rewards of such a program, where it has several")


def program_options(options: argparse.Namespace) -> dict[str, Any]:
    """As `urbe.read_mdp` takes them."""
    return {"constants": options.constants, "reward": options.reward}
