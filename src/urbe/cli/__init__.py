"""The command line: `urbe solve | convert | reproduce`."""

from urbe.cli.main import main as main
