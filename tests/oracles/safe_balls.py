"""Smallest safe L1 balls as the linear programs of their definition (HiGHS), with a point q for every z."""

import numpy as np
from scipy.optimize import linprog


def smallest_radius(cuts, hyperplane):
    """min psi over theta, q_1, .., q_n in the simplex with ||theta - q_i||_1 <= psi, in (theta, psi, q, |theta - q|).

    With `hyperplane`, q_i . z_i <= bound_i; otherwise q_i is the draw.
    """
    n, k = len(cuts), len(cuts[0].z)
    size = k + 1 + 2 * n * k
    q_at = [slice(k + 1 + i * k, k + 1 + (i + 1) * k) for i in range(n)]
    d_at = [slice(k + 1 + (n + i) * k, k + 1 + (n + i + 1) * k) for i in range(n)]
    less, less_than, equal, equal_to = [], [], [], []
    for i, cut in enumerate(cuts):
        for sign in (1.0, -1.0):
            block = np.zeros((k, size))
            block[:, :k], block[:, q_at[i]], block[:, d_at[i]] = sign * np.eye(k), -sign * np.eye(k), -np.eye(k)
            less.append(block)
            less_than.append(np.zeros(k))
        within = np.zeros((1, size))
        within[0, d_at[i]], within[0, k] = 1.0, -1.0
        less.append(within)
        less_than.append([0.0])
        if hyperplane:
            below = np.zeros((1, size))
            below[0, q_at[i]] = cut.z
            less.append(below)
            less_than.append([cut.bound])
        else:
            fixed = np.zeros((k, size))
            fixed[:, q_at[i]] = np.eye(k)
            equal.append(fixed)
            equal_to.append(cut.draw)
    for at in (slice(0, k), *q_at):
        total = np.zeros((1, size))
        total[0, at] = 1.0
        equal.append(total)
        equal_to.append([1.0])
    cost = np.zeros(size)
    cost[k] = 1.0
    answer = linprog(
        cost, np.vstack(less), np.concatenate(less_than), np.vstack(equal), np.concatenate(equal_to), method="highs"
    )
    assert answer.status == 0, answer.message
    return answer.fun


def distance_to_half_space(centre, z, bound):
    """min ||q - centre||_1 over q in the simplex with q . z <= bound, in (q, |q - centre|)."""
    k = len(z)
    eye = np.eye(k)
    less = np.block([[eye, -eye], [-eye, -eye], [np.asarray(z)[None], np.zeros((1, k))]])
    answer = linprog(
        np.repeat([0.0, 1.0], k), less, np.concatenate((centre, -centre, [bound])),
        np.repeat([1.0, 0.0], k)[None], [1.0], method="highs",
    )  # fmt: skip
    assert answer.status == 0, answer.message
    return answer.fun
