"""Contracts for extensions.

`check_ambiguity_set` tests everything that solvers and certificates require of a set; `check_agent` what runs and saved
files require of an agent; `check_simulator` what deep agents and environments require of a simulator; `check_nature`,
`check_variance`, `check_network` and `check_optimiser` what a learner requires of a part of a deep agent. They raise
AssertionError with the broken law, the model and the numbers, and return silently if all laws hold.
"""

from urbe.lazy import public_names

__getattr__, __dir__ = public_names(__name__)
