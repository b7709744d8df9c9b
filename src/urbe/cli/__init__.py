"""The command line, `urbe COMMAND`: a module for each command."""

from urbe.cli.main import main as main
