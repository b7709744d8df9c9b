"""Worst cases where moving mass costs: L1, weighted L1 and Wasserstein balls, as one fractional knapsack.

A unit of mass of successor j may stay, or go to i at the cost c_ji. Of the points (c_ji, z_i) only the lower convex
envelope is worth considering, and its segments are bought in the order of what they save per unit of cost until the
budget is spent. The last segment's slope lam bounds the value from below,

    max_lam  sum_j p_j min_i (z_i + lam c_ji) - lam radius.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from oracles.high_precision.numbers import Answer, D, dot, precise, tolerance


class Segment(NamedTuple):
    """A change of destination: mass p_j of a donor moves on from one receiver to the next of its envelope.

    Attributes:
      slope: what a unit of cost saves.
      cost: that of the whole mass.
      donor, source, target: positions in the row.
    """

    slope: D
    cost: D
    donor: int
    source: int
    target: int


def segments(p: list[D], z: list[D], cost, receivers: list[int]) -> list[Segment]:
    """All segments in the order in which they are bought."""
    found = []
    for j, mass in enumerate(p):
        if mass:
            envelope = _envelope(z, {i: cost(j, i) for i in {j, *receivers}}, j)
            for (source, a, x), (target, b, y) in pairwise(envelope):
                found.append(Segment((x - y) / (b - a), mass * (b - a), j, source, target))
    return sorted(found, key=lambda s: -s.slope)


def transport(p: list[D], z: list[D], radius: D, cost, receivers: list[int] | None = None) -> Answer:
    """min q . z over the distributions that p can be turned into at a cost of at most `radius`.

    Args:
      p: masses; their sum stays what it is.
      z: values of the receivers, p's own successors among them.
      radius: the budget.
      cost: `(j, i) -> D` of moving a unit from j to i; zero from j to itself.
      receivers: those that are worth considering besides the donor itself, by default all.
    """
    receivers = list(range(len(z))) if receivers is None else receivers
    with precise():
        left, price = radius, D(0)
        q = list(p)
        for j, mass in enumerate(p):  # moves that cost nothing
            free = [i for i in {j, *receivers} if not cost(j, i)]
            best = min(free, key=lambda i: z[i])
            if mass and z[best] < z[j]:
                q[j] -= mass
                q[best] += mass
        for segment in segments(p, z, cost, receivers):
            share = min(D(1), left / segment.cost)
            moved = share * p[segment.donor]
            q[segment.source] -= moved
            q[segment.target] += moved
            left -= share * segment.cost
            if share < 1:
                price = segment.slope
                break
        dual = sum(
            (mass * min(z[i] + price * cost(j, i) for i in {j, *receivers}) for j, mass in enumerate(p) if mass), D(0)
        )
        return Answer.around(dual - price * radius, dot(q, z), q, z)


def long_transport(p: list[D], z: list[D], radius: D, cost: np.ndarray) -> Answer:
    """As `transport`, of thousands of masses and values of ordinary size, where a list of all segments is too long.

    At a price, doubles leave few receivers for each donor, and decimals choose among them. Each price is the one at
    which the plans on both sides of the budget tie, until no other plan is better there.

    Args:
      p, z, radius: as for `transport`.
      cost: `(n, n)` doubles.
    """
    with precise():
        values = np.array([float(x) for x in z])

        def plan(price: D) -> tuple[D, D, list[int]]:
            level = values + float(price) * cost
            off = 2.0**-48 * (np.abs(values).max() + float(price) * cost)
            near = level - off <= (level + off).min(axis=1)[:, None]
            chosen = [
                min(np.flatnonzero(some).tolist(), key=lambda i: (z[i] + price * D(cost[j, i]), D(cost[j, i])))
                for j, some in enumerate(near)
            ]
            spent = sum((mass * D(cost[j, i]) for j, (mass, i) in enumerate(zip(p, chosen, strict=True))), D(0))
            return dot(p, [z[i] for i in chosen]), spent, chosen

        costly, cheap = plan(D(0)), (dot(p, z), D(0), list(range(len(p))))
        share, price = D(1), D(0)
        while costly[1] > radius:
            price = (cheap[0] - costly[0]) / (costly[1] - cheap[1])
            found = plan(price)
            if found[0] + price * found[1] >= cheap[0] + price * cheap[1] - tolerance() * abs(cheap[0]):
                share = (radius - cheap[1]) / (costly[1] - cheap[1])
                break
            costly, cheap = (found, cheap) if found[1] > radius else (costly, found)
        q = [D(0)] * len(z)
        for part, (_, _, chosen) in ((share, costly), (1 - share, cheap)):
            for mass, i in zip(p, chosen, strict=True):
                q[i] += part * mass
        value, spent, _ = plan(price)
        return Answer.around(value + price * (spent - radius), dot(q, z), q, z)


def on_a_line(p: list[D], q: list[D], place: np.ndarray) -> D:
    """The least cost of turning p into q where moving a unit costs the distance of its places."""
    order = np.argsort(place, kind="stable").tolist()
    total, above = D(0), D(0)
    for i, j in pairwise(order):
        above += p[i] - q[i]
        total += abs(above) * D(float(place[j] - place[i]))
    return total


def _envelope(z: list[D], cost: dict[int, D], origin: int) -> list[tuple[int, D, D]]:
    """`(receiver, cost, value)` of the lower convex envelope that starts at cost zero, while values fall."""
    order = sorted(cost, key=lambda i: (cost[i], z[i], i != origin))
    kept: list[tuple[int, D, D]] = []
    for i in order:
        point = (i, cost[i], z[i])
        if kept and (z[i] >= kept[-1][2] or cost[i] == kept[-1][1]):
            continue
        while len(kept) > 1 and _above(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def _above(a: tuple[int, D, D], b: tuple[int, D, D], c: tuple[int, D, D]) -> bool:
    """Whether b lies on or above the line from a to c."""
    return (a[2] - b[2]) * (c[1] - a[1]) <= (a[2] - c[2]) * (b[1] - a[1])


def cheapest(p: list[D], q: list[D], cost, spare: D) -> D:
    """The least cost of turning p into q but for a mass of `spare`: shortest augmenting paths, cheapest first."""
    n = len(p)
    supply, demand = list(p), list(q)
    flow: dict[tuple[int, int], D] = {}
    left, total = min(sum(p, D(0)), sum(q, D(0))) - spare, D(0)
    fuzz = max(cost(j, i) for j in range(n) for i in range(n)) * tolerance()  # below it, rounding would find cycles
    while left > 0:
        # labels of donors 0 .. n-1 and receivers n .. 2n-1
        label: list[D | None] = [D(0) if supply[j] > 0 else None for j in range(n)] + [None] * n
        came: dict[int, int] = {}
        for _ in range(2 * n):
            changed = False
            for j in range(n):
                for i in range(n):
                    if label[j] is not None:
                        step = label[j] + cost(j, i)
                        if label[n + i] is None or step < label[n + i] - fuzz:
                            label[n + i], came[n + i], changed = step, j, True
                    if label[n + i] is not None and flow.get((j, i), D(0)) > 0:
                        step = label[n + i] - cost(j, i)
                        if label[j] is None or step < label[j] - fuzz:
                            label[j], came[j], changed = step, n + i, True
            if not changed:
                break
        ends = [i for i in range(n) if demand[i] > 0 and label[n + i] is not None]
        if not ends:
            break
        end = min(ends, key=lambda i: label[n + i])
        path, at = [], n + end
        while at in came and len(path) <= 2 * n:
            path.append((came[at], at))
            at = came[at]
        amount = min([left, supply[at], demand[end], *(flow[b, a - n] for a, b in path if a >= n)])
        assert amount > 0, "the digits do not suffice for costs this far apart"
        for a, b in path:
            if a < n:
                flow[a, b - n] = flow.get((a, b - n), D(0)) + amount
            else:
                flow[b, a - n] -= amount
        supply[at] -= amount
        demand[end] -= amount
        left -= amount
        total += amount * label[n + end]
    return total
