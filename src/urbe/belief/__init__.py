"""Beliefs over the members of a finite set, for environments whose parameters jump among them.

The filter and everything based on it are written once, for NumPy and for JAX arrays: tabular agents and compiled loops
share the same code.
"""

from urbe.lazy import public_names

__getattr__, __dir__ = public_names(__name__)
