"""Judging what agents and planners achieved: estimates with intervals."""
