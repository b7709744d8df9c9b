"""Judging what agents and planners achieve: returns over perturbed dynamics, and regret."""
