"""Evaluate agents and planners: returns under perturbed dynamics, adaptation, and regret."""
