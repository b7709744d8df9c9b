"""Agents that learn while they act: a belief about the model, and a plan made from it."""
