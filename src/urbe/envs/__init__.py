"""Environments a tabular agent can be run on."""
