"""Robust Markov decision processes with certified bounds.

>>> import urbe
>>> mdp = urbe.library.riverswim(6, discount=0.95)
>>> solution = urbe.solve(mdp, urbe.L1Ball(0.1))
>>> bool(solution.lower[0] <= solution.value[0] <= solution.upper[0])
True
"""

from urbe.lazy import public_names

__getattr__, __dir__ = public_names(__name__)
