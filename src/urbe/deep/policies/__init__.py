"""Policies of trained agents: of values, with a memory, and those that keep on learning."""
