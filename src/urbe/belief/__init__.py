"""Beliefs over the members of a finite set, for worlds whose parameters jump among them.

The filter and all that follows from it are written once, for NumPy and for JAX arrays: tabular agents filter with the
same lines that compiled loops do.
"""

from urbe.lazy import public_names

__getattr__, __dir__ = public_names(__name__)
