"""Test extensions against the contracts that the library relies on.

`check_ambiguity_set` tests what solvers and certificates require of a set, `check_agent` what runs and saved files
require of an agent, and `check_simulator` what deep agents and environments require of a simulator. `check_nature`,
`check_variance`, `check_network`, `check_optimiser`, `check_belief_nature` and `check_belief_rule` test what the
learners require of a part of a deep agent. All raise AssertionError with the broken law, the model and the numbers, and
return nothing if all laws hold.
"""

from urbe.lazy import public_names

__getattr__, __dir__ = public_names(__name__)
