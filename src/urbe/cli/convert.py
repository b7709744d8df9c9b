"""`urbe convert`: convert a model from one file format to another."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from urbe.cli.models import add_model_options, read_model
from urbe.mdp.formats import write_mdp
from urbe.mdp.formats.errors import LabelsLost
from urbe.mdp.formats.mdp_files import FORMATS, labels_lost


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "convert",
        help="rewrite a model in another format",
        description="Reads a model, validates it, and writes it in another format. File names determine the formats.",
        epilog="examples:\n"
        "  urbe convert model.csv model.npz --discount 0.99\n"
        "  urbe convert table.parquet model.npz --discount 0.99 --columns state=from,action=do,next_state=to\n"
        "  urbe convert model.tra model.drn                        with model.lab, .srew and .trew beside it\n"
        "  urbe convert robot.prism robot.tra --constants N=10     a program in the PRISM language\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", help="the model to read: .csv, .parquet, .npz, .tra, .drn, .umb, .bmdp, .prism")
    parser.add_argument("target", help="the file to write: .csv, .parquet, .npz, .tra, .drn, .umb, .bmdp")
    parser.add_argument("--discount", type=float, metavar="G", help="stored in .npz; other formats cannot hold one")
    add_model_options(parser)
    parser.add_argument("--from", dest="source_format", choices=tuple(FORMATS), help="if the name does not show it")
    parser.add_argument("--to", dest="target_format", choices=tuple(FORMATS), help="if the name does not show it")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Converts; returns the exit code."""
    if options.discount is None and str(options.target).endswith(".npz") and not str(options.source).endswith(".npz"):
        raise ValueError("--discount is missing: .npz files store one and the source does not.")
    # formats without a discount accept any
    discount = options.discount if options.discount is not None or str(options.source).endswith(".npz") else 1.0
    mdp = read_model(options.source, options, discount, options.source_format)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelsLost)  # the last line says so
        write_mdp(mdp, options.target, format=options.target_format)
    print(f"{options.target}: {mdp}")
    if lost := labels_lost(mdp, options.target, options.target_format):
        print(lost)
    return 0
