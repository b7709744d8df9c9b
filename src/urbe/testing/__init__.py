"""Contracts that extensions can be held to.

`check_ambiguity_set` asks of a set all that solvers and certificates rely on, `check_agent` of an agent all that runs
and saved files do, `check_simulator` of a simulator all that deep agents and environments do, `check_nature`,
`check_variance`, `check_network` and `check_optimiser` of a part of a deep agent all that its learner does. They raise
AssertionError with the law that is broken, the model and the numbers; they say nothing when all laws hold.
"""

from urbe.lazy import public_names

__getattr__, __dir__ = public_names(__name__)
