"""Robust Bellman operators."""
