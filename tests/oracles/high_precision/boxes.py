"""Worst cases over boxes: each probability between two numbers, filled from below in the order of the values.

With tau the value at which the filling stops, tau + sum_j l_j (z_j - tau)_+ - sum_j u_j (tau - z_j)_+ bounds the value
from below.
"""

from oracles.high_precision.numbers import Answer, D, dot, precise, rescaled


def box(lower: list[D], upper: list[D], z: list[D]) -> Answer:
    """min q . z with lower <= q <= upper and sum q = 1."""
    with precise():
        q = list(lower)
        free = 1 - sum(q, D(0))
        tau = min(z)
        for j in sorted(range(len(z)), key=lambda j: z[j]):
            if free <= 0:
                break
            step = min(free, upper[j] - lower[j])
            q[j] += step
            free -= step
            tau = z[j] if step else tau
        dual = tau
        for a, b, value in zip(lower, upper, z, strict=True):
            dual += a * max(value - tau, D(0)) - b * max(tau - value, D(0))
        return Answer.around(dual, dot(q, z), q, z)


def around(p: list[D], radius: D) -> tuple[list[D], list[D]]:
    """The box |q - p| <= radius within [0, 1], p rescaled to sum to one."""
    p = rescaled(p)
    return [max(a - radius, D(0)) for a in p], [min(a + radius, D(1)) for a in p]
