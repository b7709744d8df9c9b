"""The distance that a row must move to reach a level: the inverse of its worst case, one class per distance.

For a row p with values y >= 0 and a distance d, r(c) = min {d(q, p) : q . y <= c} is convex and falls to zero at the
mean p . y. A curve answers

    at_level(c)   for 0 <= c <= mean
    at_slope(s)   where the curve has slope -s, s > 0

with a `Point`, whose line r - slope (c' - c) bounds the curve from below everywhere and whose q lies on it. The slopes
of straight pieces, at which `at_slope` jumps, are its `jumps`.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from oracles.high_precision import boxes
from oracles.high_precision.numbers import D, dot, exp, few_digits, ln, root, tolerance


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

    jumps: tuple[D, ...] = ()

    def __init__(self, p: list[D], y: list[D]) -> None:
        self.p, self.y = p, y
        self.last: D | None = None  # the slope at the last level, where the search for the next one starts
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

        def above(beta: D) -> tuple[D, D]:
            point = self.at_slope(beta)
            # the logarithm of a level is close to linear in beta, and its slope is variance / level
            return ln(c / point.c), point.bend / (beta * beta * point.c)

        below, _ = root(above, *self._around(above), self.last)
        self.last = below
        point = self.at_slope(below)
        # on the line through the point, which lies above c by rounding only
        return Point(c, point.r + point.slope * (point.c - c), point.slope, point.q)

    def _around(self, above) -> tuple[D, D]:
        """Slopes on both sides of the root; `last` is forgotten where it is none of its neighbours."""
        with few_digits():
            if self.last is not None and above(self.last / 2)[0] < 0 < above(self.last * 2)[0]:
                return self.last / 2, self.last * 2
            self.last, high = None, 1 / max(self.y)
            while above(high)[0] < 0:
                high *= 16
            return (high / 16 if above(high / 16)[0] < 0 else tolerance() ** 4 * high), high


class Stretch(NamedTuple):
    """Part of the path of `L2`: between x = `first` and `last` the same entries have mass.

    There q_j = p_j + cut / n - x (y_j - center), and r^2 = x^2 w + rest.
    """

    first: D
    last: D | None  # None: without end
    active: frozenset[int]
    cut: D  # the mass that the other entries had
    center: D  # the mean of y
    w: D  # sum (y - center)^2
    rest: D  # cut^2 / n + sum of the others' p^2


class L2:
    """q = max(p - x y + theta, 0), the projection of p - x y: slope x / r.

    As x grows entries lose their mass one after the other and never regain it, so that the path has at most n stretches
    with closed forms.
    """

    def __init__(self, p: list[D], y: list[D]) -> None:
        self.p, self.y = p, y
        self.mean = dot(p, y)
        ground = sum(1 for b in y if not b)
        rest = sum((a for a, b in zip(p, y, strict=True) if b), D(0)) / ground
        self.floor = [a + rest if not b else D(0) for a, b in zip(p, y, strict=True)]
        self.reach = sum(((a - b) ** 2 for a, b in zip(self.floor, p, strict=True)), D(0)).sqrt()
        self.path = list(self._stretches())
        # while no mass is lost the curve is straight
        self.jumps = tuple(1 / x.w.sqrt() for x in self.path if x.last and x.w and not x.rest)

    def at_slope(self, slope: D) -> Point:
        """See the module: x / r grows with x, from the inverse of the norm at rest."""
        for stretch in self.path:
            if stretch.last is None:
                return Point(D(0), self.reach, slope, self.floor)
            square = stretch.w + (stretch.rest / stretch.last**2 if stretch.last else D(0))
            if stretch.last and slope * slope * square <= 1:
                break
        if not stretch.rest:
            return Point(self.mean, D(0), slope, self.p)
        x = slope * (stretch.rest / (1 - slope * slope * stretch.w)).sqrt()
        x = min(max(x, stretch.first), stretch.last)  # but for rounding it is there
        q, r = self._point(stretch, x)
        return Point(dot(q, self.y), r, slope, q, r * x * x * stretch.w / stretch.rest)

    def at_level(self, c: D) -> Point:
        """See the module: on a stretch, q . y is linear in x."""
        for stretch in self.path:
            start = self._point(stretch, stretch.first)[0]
            x = stretch.first + (dot(start, self.y) - c) / stretch.w if stretch.w else stretch.first
            if stretch.last is None or x <= stretch.last:
                break
        q, r = self._point(stretch, x)
        if not r:
            return Point(c, D(0), 1 / self.path[0].w.sqrt(), q)
        # on the line through the point, which lies off the level by rounding only
        slope = x / r
        return Point(c, r + slope * (dot(q, self.y) - c), slope, q)

    def _point(self, stretch: Stretch, x: D) -> tuple[list[D], D]:
        share = stretch.cut / len(stretch.active)
        q = [
            max(a + share - x * (b - stretch.center), D(0)) if j in stretch.active else D(0)
            for j, (a, b) in enumerate(zip(self.p, self.y, strict=True))
        ]
        return q, (x * x * stretch.w + stretch.rest).sqrt()

    def _stretches(self) -> Iterator[Stretch]:
        active, cut, squares, x = frozenset(range(len(self.p))), D(0), D(0), D(0)
        while True:
            n = len(active)
            center = sum((self.y[j] for j in active), D(0)) / n
            w = sum(((self.y[j] - center) ** 2 for j in active), D(0))
            rest = squares + cut * cut / n
            above = [j for j in active if self.y[j] > center and self.y[j] > 0]
            ends = {j: (self.p[j] + cut / n) / (self.y[j] - center) for j in above}
            if not ends:
                yield Stretch(x, None, active, cut, center, w, rest)
                return
            gone = min(ends, key=lambda j: (ends[j], -self.y[j]))
            last = max(ends[gone], x)
            yield Stretch(x, last, active, cut, center, w, rest)
            active, cut, squares, x = active - {gone}, cut + self.p[gone], squares + self.p[gone] ** 2, last


class Pieces:
    """A curve of straight pieces, from its corners `(r, c, q)` by increasing r."""

    corners: list[tuple[D, D, list[D]]]
    mean: D
    reach: D
    floor: list[D]
    jumps: tuple[D, ...]

    def _keep(self, corners: list[tuple[D, D, list[D]]]) -> None:
        self.corners = corners
        self.mean = corners[0][1]
        self.reach, _, self.floor = corners[-1]
        self.jumps = tuple((s - r) / (c - d) for (r, c, _), (s, d, _) in pairwise(corners) if s > r and c > d)

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
