"""Distributions of kernels with known moments, in high precision.

A ball holds every smaller one, so that a worst distribution has the least mass allowed in each: mu_i is the increment
of the confidences. With the departures u_ij - w_ij of y_i from mu_i p,

    maximise   sum_ij (w_ij - u_ij) z_j   over   u, w >= 0
      w_ij <= mu_i p_j,     sum_j u_ij = sum_j w_ij <= radius_i mu_i / 2
      sum_i u_ij + w_ij <= deviation,     |sum_i u_ij - w_ij| <= mean_error

is what nature gains over the model's row. The simplex method starts at u = w = 0, and its prices prove its answer.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from oracles.high_precision.numbers import Answer, D, dot, precise, rescaled
from oracles.high_precision.sets import Oracle, in_directions, rows_of

NOISE = D("1e-45")
"""Smaller gains and pivots are rounding."""


def moments(mdp: Any, set_: Any) -> Oracle:
    """`MomentSet`."""
    rows = [row._replace(p=rescaled(row.p)) for row in rows_of(mdp)]
    limits = [
        [min(D(float(x)), D(1)) for x in np.broadcast_to(value, mdp.n_rows)]
        for value in (set_.mean_error, set_.deviation)
    ]
    levels = [D(0), *(D(float(x)) for x in np.ravel(set_.confidence)), D(1)]
    mu = [after - before for before, after in pairwise(levels)]
    radius = [*(D(float(x)) for x in np.ravel(set_.radius)), D(2)]

    def least(k: int, z: list[D]) -> Answer:
        with precise():
            return _least(rows[k].p, z, mu, radius, limits[0][k], limits[1][k])

    return Oracle(rows, least, in_directions(rows, least), [D(0)] * len(rows))


def _least(p: list[D], z: list[D], mu: list[D], radius: list[D], mean_error: D, deviation: D) -> Answer:
    low, high, k = min(z), max(z), len(p)
    unit = high - low
    if not unit:
        return Answer(low, low, p)
    y = [(x - low) / unit for x in z]
    shells = [(m, r) for m, r in zip(mu, radius, strict=True) if m]
    n = 2 * k * len(shells)
    at = lambda i, j, side: 2 * (i * k + j) + side  # noqa: E731
    gain = [D(0)] * n
    lines: list[tuple[dict[int, D], D]] = []
    for i, (m, r) in enumerate(shells):
        for j in range(k):
            gain[at(i, j, 0)], gain[at(i, j, 1)] = -y[j], y[j]
            lines.append(({at(i, j, 1): D(1)}, m * p[j]))
        balance = {at(i, j, side): D(1 - 2 * side) for j in range(k) for side in (0, 1)}
        lines += [(balance, D(0)), ({x: -c for x, c in balance.items()}, D(0))]
        lines.append(({at(i, j, 1): D(1) for j in range(k)}, m * r / 2))
    for j in range(k):
        both = {at(i, j, side): D(1 - 2 * side) for i in range(len(shells)) for side in (0, 1)}
        lines.append(({x: D(1) for x in both}, deviation))
        lines += [(both, mean_error), ({x: -c for x, c in both.items()}, mean_error)]
    x, prices = _simplex(gain, lines)
    most = sum((price * limit for price, (_, limit) in zip(prices, lines, strict=True)), D(0))
    left = list(gain)
    for price, (line, _) in zip(prices, lines, strict=True):
        for column, c in line.items():
            left[column] -= price * c
    most += sum((max(c, D(0)) for c in left), D(0))  # no variable exceeds one
    q = [p[j] + sum((x[at(i, j, 0)] - x[at(i, j, 1)] for i in range(len(shells))), D(0)) for j in range(k)]
    mean = dot(p, y)
    return Answer(low + unit * (mean - most - NOISE), low + unit * (dot(q, y) + NOISE), q)


def _simplex(gain: list[D], lines: list[tuple[dict[int, D], D]]) -> tuple[list[D], list[D]]:
    """max gain . x with every line's sum at most its limit, x >= 0; the limits are not negative. Bland's rule."""
    n, m = len(gain), len(lines)
    table = []
    for i, (line, limit) in enumerate(lines):
        row = [D(0)] * (n + m + 1)
        for column, c in line.items():
            row[column] = c
        row[n + i], row[-1] = D(1), limit
        table.append(row)
    top, basis = [*gain, *[D(0)] * (m + 1)], list(range(n, n + m))
    while True:
        enter = next((j for j in range(n + m) if top[j] > NOISE), None)
        if enter is None:
            break
        ratios = [(row[-1] / row[enter], basis[i], i) for i, row in enumerate(table) if row[enter] > NOISE]
        leave = min(ratios)[2]
        head = table[leave][enter]
        table[leave] = pivot = [x / head if x else x for x in table[leave]]
        for row in (*table, top):
            if row is not pivot and row[enter]:
                factor = row[enter]
                row[:] = [a - factor * b if b else a for a, b in zip(row, pivot, strict=True)]
        basis[leave] = enter
    x = [D(0)] * (n + m)
    for i, column in enumerate(basis):
        x[column] = max(table[i][-1], D(0))
    return x[:n], [max(-top[n + i], D(0)) for i in range(m)]
