"""The command line, `urbe COMMAND`, with one module per command."""

from urbe.cli.main import main as main
