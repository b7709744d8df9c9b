"""How far a row must move to reach a level: the inverse of its worst case, one class per distance.

For a row p with values y >= 0 and a distance d, r(c) = min {d(q, p) : q . y <= c} is convex and falls to zero at the
mean p . y. A curve answers

    at_level(c)   for 0 <= c <= mean
    at_slope(s)   where the curve has slope -s, s > 0

with a `Point`, whose line r - slope (c' - c) bounds the curve from below everywhere and whose q lies on it.
"""

from itertools import pairwise
from typing import NamedTuple

from oracles.high_precision import boxes
from oracles.high_precision.numbers import D, dot, exp, ln, root, tolerance


class Point(NamedTuple):
    """A point of a curve: level c, distance r, slope -dr/dc >= 0 and the distribution that attains them.

    `bend` is dr / dlog(slope), where the curve is smooth.
    """

    c: D
    r: D
    slope: D
    q: list[D]
    bend: D = D(0)


class Kl:
    """q ~ p exp(-beta y): r = -beta c - log sum p exp(-beta y), slope beta."""

    def __init__(self, p: list[D], y: list[D]) -> None:
        self.p, self.y = p, y
        self.mean = dot(p, y)
        lowest = sum((a for a, b in zip(p, y, strict=True) if not b), D(0))
        self.floor = [a / lowest if not b else D(0) for a, b in zip(p, y, strict=True)]
        self.reach = -ln(lowest)

    def at_slope(self, beta: D) -> Point:
        """See the module."""
        powers = {b: exp(-beta * b) for b in set(self.y)}
        w = [a * powers[b] for a, b in zip(self.p, self.y, strict=True)]
        mass = sum(w, D(0))
        q = [x / mass for x in w]
        c = dot(q, self.y)
        variance = dot(q, [(b - c) ** 2 for b in self.y])
        return Point(c, -beta * c - ln(mass), beta, q, beta * beta * variance)

    def at_level(self, c: D) -> Point:
        """See the module."""

        def above(log_beta: D) -> tuple[D, D]:
            point = self.at_slope(exp(log_beta))
            return c - point.c, point.bend / point.slope

        low, high = -ln(max(self.y)), -ln(max(self.y)) + 1
        while above(low)[0] > 0:
            low -= 2 * (high - low)
        while above(high)[0] < 0:
            high += 2 * (high - low)
        below, _ = root(above, low, high)
        point = self.at_slope(exp(below))
        # on the line through the point, which lies above c by rounding only
        return Point(c, point.r + point.slope * (point.c - c), point.slope, point.q)


class L2:
    """q = max(p - x y + theta, 0), the projection of p - x y: slope x / r."""

    def __init__(self, p: list[D], y: list[D]) -> None:
        self.p, self.y = p, y
        self.mean = dot(p, y)
        ground = sum(1 for b in y if not b)
        rest = sum((a for a, b in zip(p, y, strict=True) if b), D(0)) / ground
        self.floor = [a + rest if not b else D(0) for a, b in zip(p, y, strict=True)]
        self.reach = self._distance(self.floor)

    def at_slope(self, slope: D) -> Point:
        """See the module: x / r grows with x, from the inverse of the norm at rest."""

        def above(log_x: D) -> tuple[D, D]:
            x = exp(log_x)
            _, w, rest = self._projection(x)
            # x / r with r^2 = x^2 w + rest
            return -ln(w + rest / (x * x)) / 2 - ln(slope), rest / (x * x * w + rest)

        # below the smallest x nothing has been clipped, and x / r does not depend on it
        low = ln(tolerance())
        if above(low)[0] >= 0:
            return Point(self.mean, D(0), slope, self.p)
        high = low + 1
        while above(high)[0] < 0:
            high += 2 * (high - low)
            if high > 500:
                return Point(D(0), self.reach, slope, self.floor)
        x = exp(root(above, low, high)[0])
        q, w, rest = self._projection(x)
        r = (x * x * w + rest).sqrt()
        return Point(dot(q, self.y), r, slope, q, r * x * x * w / rest if rest else D(0))

    def at_level(self, c: D) -> Point:
        """See the module."""

        def above(log_x: D) -> tuple[D, D]:
            x = exp(log_x)
            q, w, _ = self._projection(x)
            return c - dot(q, self.y), x * w

        low = ln(tolerance()) * 2
        high = low + 1
        while above(high)[0] < 0:
            high += 2 * (high - low)
        below, _ = root(above, low, high)
        x = exp(below)
        q, w, rest = self._projection(x)
        r, level = (x * x * w + rest).sqrt(), dot(q, self.y)
        slope = x / r
        return Point(c, r + slope * (level - c), slope, q)

    def _distance(self, q: list[D]) -> D:
        return sum(((a - b) ** 2 for a, b in zip(q, self.p, strict=True)), D(0)).sqrt()

    def _projection(self, x: D) -> tuple[list[D], D, D]:
        """The projection, w = sum (y - mean)^2 over its support, and rest: its distance is sqrt(x^2 w + rest)."""
        points = sorted((a - x * b for a, b in zip(self.p, self.y, strict=True)), reverse=True)
        total, theta = D(0), D(0)
        for k, point in enumerate(points, 1):
            total += point
            if point + (1 - total) / k <= 0:
                break
            theta = (1 - total) / k
        q = [max(a - x * b + theta, D(0)) for a, b in zip(self.p, self.y, strict=True)]
        active = [b for a, b in zip(q, self.y, strict=True) if a > 0]
        mean = sum(active, D(0)) / len(active)
        cut = [b for a, b in zip(q, self.p, strict=True) if a <= 0]
        rest = sum((b * b for b in cut), D(0)) + sum(cut, D(0)) ** 2 / len(active)
        return q, sum(((b - mean) ** 2 for b in active), D(0)), rest


class Pieces:
    """A curve of straight pieces, from its corners `(r, c, q)` by increasing r."""

    corners: list[tuple[D, D, list[D]]]
    mean: D
    reach: D
    floor: list[D]

    def _keep(self, corners: list[tuple[D, D, list[D]]]) -> None:
        self.corners = corners
        self.mean = corners[0][1]
        self.reach, _, self.floor = corners[-1]

    def at_slope(self, slope: D) -> Point:
        """See the module: the corner at which r + slope c is least."""
        r, c, q = min(self.corners, key=lambda corner: corner[0] + slope * corner[1])
        return Point(c, r, slope, q)

    def at_level(self, c: D) -> Point:
        """See the module."""
        for (r, high, q), (s, low, x) in pairwise(self.corners):
            if low <= c:
                share = (high - c) / (high - low)
                mixed = [a + share * (b - a) for a, b in zip(q, x, strict=True)]
                return Point(c, r + share * (s - r), (s - r) / (high - low), mixed)
        raise AssertionError("no level is below the lowest corner")


class L1(Pieces):
    """Mass goes from the highest successors to the lowest one, at a cost of two."""

    def __init__(self, p: list[D], y: list[D]) -> None:
        ground = min(range(len(y)), key=lambda j: y[j])
        q, r = list(p), D(0)
        corners = [(r, dot(q, y), list(q))]
        for j in sorted(range(len(y)), key=lambda j: -y[j]):
            if y[j] and p[j]:
                q[ground] += q[j]
                r += 2 * q[j]
                q[j] = D(0)
                corners.append((r, dot(q, y), list(q)))
        self._keep(corners)


class LInf(Pieces):
    """Boxes around p: corners are where tangents meet on the curve itself."""

    def __init__(self, p: list[D], y: list[D]) -> None:
        self.p, self.y = p, y
        reach = max(max(a for a, b in zip(p, y, strict=True) if b), self._filling())
        first, last = self._tangent(D(0)), self._tangent(reach)
        corners = [(D(0), *first[:2])]
        self._between(D(0), first, reach, last, corners)
        corners.append((reach, *last[:2]))
        self._keep([corners[0], *(b for a, b in pairwise(corners) if b[1] < a[1])])

    def _filling(self) -> D:
        """The radius at which the lowest successors hold all mass."""
        ground = sorted(a for a, b in zip(self.p, self.y, strict=True) if not b)
        return (1 - sum(ground, D(0))) / len(ground)

    def _tangent(self, r: D) -> tuple[D, list[D], D]:
        """Value, distribution and slope in r; a subgradient of the dual at its best tau."""
        lower, upper = boxes.around(self.p, r)
        answer = boxes.box(lower, upper, self.y)
        tau = max((b for a, b, least in zip(answer.q, self.y, lower, strict=True) if a > least), default=min(self.y))
        slope = D(0)
        for a, b in zip(self.p, self.y, strict=True):
            if b > tau and a > r:
                slope -= b - tau
            if b < tau and a + r < 1:
                slope -= tau - b
        return dot(answer.q, self.y), answer.q, slope

    def _between(self, r: D, left: tuple, s: D, right: tuple, corners: list) -> None:
        if len(corners) > 200 or left[2] >= right[2]:
            return
        meet = (right[0] - left[0] + left[2] * r - right[2] * s) / (left[2] - right[2])
        if not r < meet < s:
            return
        middle = self._tangent(meet)
        line = left[0] + left[2] * (meet - r)
        if middle[0] - line <= max(self.y) * tolerance() / 1000:
            corners.append((meet, *middle[:2]))
            return
        self._between(r, left, meet, middle, corners)
        corners.append((meet, *middle[:2]))
        self._between(meet, middle, s, right, corners)
