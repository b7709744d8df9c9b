"""Rows that break kernels: ties, zeros, single successors, negative values, radii at both ends."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def rows(draw, largest=7):
    """p, z: counts over their sum (zeros and equal entries are common) and values on a coarse or a fine grid."""
    n = draw(st.integers(1, largest))
    counts = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n).filter(any))
    coarse = st.integers(-3, 3).map(float)
    fine = st.floats(-100, 100, allow_subnormal=False)
    z = draw(st.lists(draw(st.sampled_from([coarse, fine])), min_size=n, max_size=n))
    p = np.array(counts, dtype=float)
    return p / p.sum(), np.array(z)


def radii(largest):
    """Zero, tiny, ordinary and maximal radii."""
    return st.one_of(
        st.sampled_from([0.0, 1e-12, 1e-6, 0.5 * largest, largest]), st.floats(0, largest, allow_subnormal=False)
    )
