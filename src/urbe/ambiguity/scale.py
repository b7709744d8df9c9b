"""Values of ordinary size for the kernels: a power of two out of them, and back in afterwards.

Multiplying by a power of two is exact, so that a sweep over values near 1e300 or 1e-300 costs no accuracy, and kernels
need not guard their squares and quotients against overflow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from urbe.types import FloatArray

Adversary = TypeVar("Adversary", bound=Any)

LEAST, MOST = 1e-30, 1e30
"""Values up to these sizes are left as they are."""


def exponent(*values: FloatArray | None) -> int:
    """k such that the largest |value| times 2^-k is near one; 0 where it is of ordinary size, or nothing is given."""
    given = [x for x in values if x is not None and x.size]
    largest = max((max(float(x.max()), -float(x.min())) for x in given), default=0.0)
    return 0 if largest == 0.0 or LEAST <= largest <= MOST else int(np.frexp(largest)[1])


def rescaled(nature: Adversary, k: int) -> Adversary:
    """The same nature for discounted state values times 2^k, with the rewards of successors alone; same memory."""
    rows, entry_reward = nature.rows, nature.rows.entry_reward
    reward = np.zeros(rows.n_rows) if entry_reward is None else np.ldexp(entry_reward, k)
    return replace(nature, rows=replace(rows, reward=reward), discount=1.0)
