"""Array aliases shared by every package; docstrings state the shapes."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]

Buffer = FloatArray | None
"""An array for a result; None allocates one."""

Support = Literal["nominal", "all"]
"""Successors that may receive probability: those with positive nominal probability, or every state."""
