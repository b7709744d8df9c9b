"""The library's sets in high precision: which states a row may reach, its worst case, and the distance of a kernel.

    oracle = oracle_of(mdp, set_)          the same description the library takes
    oracle.rows[k].states                  receivers of row k, with their nominal probabilities p
    oracle.answer(k, z)                    min q . z over the set, enclosed; z has one value for each receiver
    oracle.excess(k, q)                    by how much a distribution on the receivers is outside the set

Rows do not sum to one exactly in floating point. Divergence balls, L2 and L-infinity balls, scenarios and weights of
scenarios are centred at the row divided by its sum; where mass is moved (L1, weighted L1, Wasserstein, contamination,
and the model itself) the sum of the row stays what it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import urbe
from oracles.high_precision import boxes, divergences, scenarios
from oracles.high_precision.numbers import Answer, D, dot, ln, precise, rescaled
from oracles.high_precision.transport import cheapest, long_transport, on_a_line, transport
from urbe.ambiguity.exact import Exact

LONG = 200
"""States from which on Wasserstein balls are solved by other means."""

DIRECTIONS = 8
"""Largest number of successors of a mixture whose probabilities are compared with what the set allows."""

ROUNDED = D("1e-10")
"""Mass that rounding may leave on the wrong successor, where single entries may count without limit."""


class Row(NamedTuple):
    """Where a row may lead.

    Attributes:
      states: the receivers.
      p: their nominal probabilities, zero where only nature leads.
      reward: of each receiver; all equal where the model rewards the pair.
    """

    states: list[int]
    p: list[D]
    reward: list[D]


@dataclass
class Oracle:
    """A set on the rows of a model; `sign` is -1 where nature helps."""

    rows: list[Row]
    least: Callable[[int, list[D]], Answer]
    distance: Callable[[int, list[D]], D]
    radius: list[D]
    sign: int = 1

    def answer(self, k: int, z: list[D]) -> Answer:
        """The least value of row k, or the largest where nature helps; `q` attains one of the two bounds."""
        if self.sign > 0:
            return self.least(k, z)
        low, high, q = self.least(k, [-x for x in z])
        return Answer(-high, -low, q)

    def excess(self, k: int, q: list[D]) -> D:
        """How far q is outside the set of row k, in the set's own distance; negative inside."""
        with precise():
            simplex = max(abs(sum(q, D(0)) - 1), -min(q))
            return max(self.distance(k, q) - self.radius[k], simplex - D("1e-12"))


def oracle_of(mdp: Any, set_: Any) -> Oracle:
    """The oracle of an (s, a)-rectangular set, or of the model itself for None."""
    if isinstance(set_, urbe.Optimistic):
        inner = oracle_of(mdp, set_.set)
        inner.sign = -inner.sign
        return inner
    with precise():
        return _MAKERS[type(set_)](mdp, set_)


def rows_of(mdp: Any, support: str = "nominal") -> list[Row]:
    """The rows of a model with the receivers that `support` allows."""
    rows, found = mdp.rows, []
    for k in range(rows.n_rows):
        at = range(int(rows.entry_start[k]), int(rows.entry_start[k + 1]))
        p = {int(rows.successor[e]): D(float(rows.probability[e])) for e in at}
        if rows.rewards_successors:
            reward = {int(rows.successor[e]): D(float(rows.reward[e])) for e in at}
        else:
            reward = dict.fromkeys(range(mdp.n_states), D(float(rows.reward[k])))
        if support == "all":
            states = sorted(p) if rows.rewards_successors else list(range(mdp.n_states))
        else:
            states = [s for s in sorted(p) if p[s] > 0]
        found.append(Row(states, [p.get(s, D(0)) for s in states], [reward[s] for s in states]))
    return found


def in_directions(rows: list[Row], least: Callable[[int, list[D]], Answer]) -> Callable[[int, list[D]], D]:
    """By how much a row is beyond the least or largest probability of a single successor in the set."""

    def distance(k: int, q: list[D]) -> D:
        far = D(0)
        for at in range(0, len(q), -(-len(q) // DIRECTIONS)):
            p = rows[k].p[at]
            side = D(1) if q[at] < p else D(-1)
            z = [side * (j == at) for j in range(len(q))]
            far = max(far, least(k, z).low - dot(q, z))
        return far

    return distance


def _per_row(mdp: Any, value: Any) -> list[D]:
    return [D(float(x)) for x in mdp.per_row("radius", value)]


def _exact(mdp: Any, set_: Any) -> Oracle:  # noqa: ARG001
    rows = rows_of(mdp)

    def least(k: int, z: list[D]) -> Answer:
        value = dot(rows[k].p, z)
        return Answer.around(value, value, rows[k].p, z)

    return Oracle(rows, least, lambda k, q: _l1(q, rows[k].p), [D(0)] * len(rows))


def _l1(q: list[D], p: list[D]) -> D:
    return sum((abs(a - b) for a, b in zip(q, p, strict=True)), D(0))


def _l1_ball(mdp: Any, set_: Any) -> Oracle:
    rows, radius = rows_of(mdp, set_.support), _per_row(mdp, set_.radius)

    def least(k: int, z: list[D]) -> Answer:
        lowest = min(range(len(z)), key=lambda i: z[i])  # at equal costs no other receiver is better
        return transport(rows[k].p, z, radius[k], lambda j, i: D(2) * (j != i), [lowest])

    return Oracle(rows, least, lambda k, q: _l1(q, rows[k].p), radius)


def _weighted_l1(mdp: Any, set_: Any) -> Oracle:
    rows, radius = rows_of(mdp, set_.support), _per_row(mdp, set_.radius)
    given = np.asarray(set_.weights, dtype=float)

    def weight(k: int, at: int) -> D:
        if given.ndim == 0:
            return D(float(given))
        if given.shape == (mdp.n_states,):
            return D(float(given[rows[k].states[at]]))
        first, last = mdp.rows.entry_start[k : k + 2]
        entry = first + np.searchsorted(mdp.rows.successor[first:last], rows[k].states[at])
        return D(float(given[entry]))

    weights = [[weight(k, at) for at in range(len(row.states))] for k, row in enumerate(rows)]

    def least(k: int, z: list[D]) -> Answer:
        w = weights[k]
        return transport(rows[k].p, z, radius[k], lambda j, i: w[j] + w[i] if j != i else D(0))

    def distance(k: int, q: list[D]) -> D:
        """The excess in units of the largest weight, after the dearest changes are undone as far as rounding."""
        spent, left = D(0), ROUNDED
        for w, apart in sorted(
            ((w, abs(a - b)) for w, a, b in zip(weights[k], q, rows[k].p, strict=True)), reverse=True
        ):
            undone = min(left, apart)
            left -= undone
            spent += w * (apart - undone)
        return radius[k] + (spent - radius[k]) / max(weights[k])

    return Oracle(rows, least, distance, radius)


def _wasserstein(mdp: Any, set_: Any) -> Oracle:
    rows, radius = rows_of(mdp, set_.support), _per_row(mdp, set_.radius)
    given = np.asarray(set_.metric, dtype=float)
    if mdp.n_states > LONG:
        return _long_wasserstein(rows, radius, given)
    metric = [[D(float(x)) for x in line] for line in given]

    def least(k: int, z: list[D]) -> Answer:
        states = rows[k].states
        return transport(rows[k].p, z, radius[k], lambda j, i: metric[states[j]][states[i]])

    largest = max([D(0), *(x for line in metric for x in line)]) or D(1)

    def distance(k: int, q: list[D]) -> D:
        """The excess in units of the largest distance: how far rounding takes q depends on the metric alone."""
        states = rows[k].states
        cost = cheapest(rows[k].p, q, lambda j, i: metric[states[j]][states[i]], ROUNDED)
        return radius[k] + (cost - radius[k]) / largest

    return Oracle(rows, least, distance, radius)


def _long_wasserstein(rows: list[Row], radius: list[D], metric: np.ndarray) -> Oracle:
    """Rows of thousands of states on a line."""
    assert (metric == np.abs(metric[0][:, None] - metric[0])).all(), "distances are those of places on a line"

    def least(k: int, z: list[D]) -> Answer:
        states = rows[k].states
        return long_transport(rows[k].p, z, radius[k], metric[np.ix_(states, states)])

    def distance(k: int, q: list[D]) -> D:
        cost = on_a_line(rows[k].p, q, metric[0][rows[k].states])
        return radius[k] + (cost - radius[k]) / D(float(metric.max()))

    return Oracle(rows, least, distance, radius)


def _contamination(mdp: Any, set_: Any) -> Oracle:
    rows = rows_of(mdp, set_.support)
    fraction = _per_row(mdp, set_.fraction)

    def least(k: int, z: list[D]) -> Answer:
        with precise():
            low = min(range(len(z)), key=lambda j: z[j])
            q = [(1 - fraction[k]) * a for a in rows[k].p]
            q[low] += fraction[k]
            return Answer.around(dot(q, z), dot(q, z), q, z)

    def distance(k: int, q: list[D]) -> D:
        """The mass that is missing from (1 - R) p."""
        kept = 1 - fraction[k]
        return fraction[k] + sum((max(kept * b - a, D(0)) for a, b in zip(q, rows[k].p, strict=True)), D(0))

    return Oracle(rows, least, distance, fraction)


def _linf(mdp: Any, set_: Any) -> Oracle:
    rows, radius = rows_of(mdp, set_.support), _per_row(mdp, set_.radius)
    limits = [boxes.around(row.p, r) for row, r in zip(rows, radius, strict=True)]

    def distance(k: int, q: list[D]) -> D:
        return max(abs(a - b) for a, b in zip(q, rows[k].p, strict=True))

    return Oracle(rows, lambda k, z: boxes.box(*limits[k], z), distance, radius)


def _interval(mdp: Any, set_: Any) -> Oracle:
    """`lower` and `upper` as numbers, per entry or dense."""
    given = [np.asarray(x, dtype=float) for x in (set_.lower, set_.upper)]
    rows, limits = [], []
    for k, row in enumerate(rows_of(mdp, "listed")):
        s, a = int(mdp.row_state[k]), int(mdp.action[k])
        first, last = (int(x) for x in mdp.rows.entry_start[k : k + 2])
        listed = mdp.rows.successor[first:last].tolist()
        states = sorted(set(listed) | set(np.flatnonzero(given[1][s, a] > 0).tolist() if given[1].ndim == 3 else []))
        bounds: list[list[D]] = []
        for bound in given:
            if bound.ndim == 3:
                bounds.append([D(float(bound[s, a, t])) for t in states])
            elif bound.ndim == 1:
                bounds.append([D(float(bound[first + listed.index(t)])) if t in listed else D(0) for t in states])
            else:
                bounds.append([D(float(bound)) if t in listed else D(0) for t in states])
        limits.append(bounds)
        known = dict(zip(row.states, row.p, strict=True))
        rewards = mdp.rows.reward[first:last] if mdp.rows.rewards_successors else None
        reward = [D(float(mdp.rows.reward[k] if rewards is None else rewards[listed.index(t)])) for t in states]
        rows.append(Row(states, [known.get(t, D(0)) for t in states], reward))

    def distance(k: int, q: list[D]) -> D:
        low, high = limits[k]
        return max(max(a - x, x - b) for x, a, b in zip(q, low, high, strict=True))

    return Oracle(rows, lambda k, z: boxes.box(*limits[k], z), distance, [D(0)] * len(rows))


def _divergence(function: Callable[..., Answer], distance: Callable[[D, D], D]) -> Callable[[Any, Any], Oracle]:
    """A ball on the nominal support: `distance(q_j, p_j)` is what an entry adds."""

    def make(mdp: Any, set_: Any) -> Oracle:
        rows, radius = rows_of(mdp), _per_row(mdp, set_.radius)
        centre = [rescaled(row.p) for row in rows]

        def far(k: int, q: list[D]) -> D:
            return sum((distance(a, b) for a, b in zip(q, centre[k], strict=True)), D(0))

        return Oracle(rows, lambda k, z: function(rows[k].p, z, radius[k]), far, radius)

    return make


def _likelihood(mdp: Any, set_: Any) -> Oracle:
    rows, radius = rows_of(mdp, set_.support), _per_row(mdp, set_.radius)

    def least(k: int, z: list[D]) -> Answer:
        inside = [j for j, a in enumerate(rows[k].p) if a]
        outside = [j for j, a in enumerate(rows[k].p) if not a]
        receiver = min(outside, key=lambda j: z[j]) if outside else None
        found = divergences.likelihood(
            [rows[k].p[j] for j in inside],
            [z[j] for j in inside],
            radius[k],
            None if receiver is None else z[receiver],
        )
        q = [D(0)] * len(z)
        for j, a in zip(inside, found.q, strict=False):
            q[j] = a
        if receiver is not None:
            q[receiver] = found.q[-1]
        return found._replace(q=q)

    def distance(k: int, q: list[D]) -> D:
        centre = rescaled(rows[k].p)
        return sum((b * (ln(b) - ln(a)) for a, b in zip(q, centre, strict=True) if b), D(0))

    return Oracle(rows, least, distance, radius)


def _l2(mdp: Any, set_: Any) -> Oracle:
    rows, radius = rows_of(mdp, set_.support), _per_row(mdp, set_.radius)

    def distance(k: int, q: list[D]) -> D:
        return sum(((a - b) ** 2 for a, b in zip(q, rescaled(rows[k].p), strict=True)), D(0)).sqrt()

    return Oracle(rows, lambda k, z: divergences.l2(rows[k].p, z, radius[k]), distance, radius)


def _scenarios(mdp: Any, set_: Any) -> Oracle:
    """Scenarios given as `(K, S, A, S)`."""
    kernels = np.asarray(set_.kernels, dtype=float)
    if mdp.rows.rewards_successors:
        raise NotImplementedError("scenarios with rewards of successors")
    rows, members = [], []
    for k, row in enumerate(rows_of(mdp, "all")):
        here = kernels[:, int(mdp.row_state[k]), int(mdp.action[k])]
        states = np.flatnonzero(here.any(axis=0)).tolist()
        known = dict(zip(row.states, row.p, strict=True))
        rows.append(Row(states, [known.get(s, D(0)) for s in states], [row.reward[0]] * len(states)))
        members.append([[D(float(x)) for x in line[states]] for line in here])
    count = len(kernels)
    given = getattr(set_, "weights", None)
    weights = [D(1) / count] * count if given is None else [D(float(x)) for x in given]
    level = _per_row(mdp, getattr(set_, "level", 0.0))

    def least(k: int, z: list[D]) -> Answer:
        if isinstance(set_, urbe.ValueAtRisk):
            return scenarios.quantile(members[k], z, weights, level[k])
        if isinstance(set_, urbe.ConditionalValueAtRisk):
            return scenarios.tail_mean(members[k], z, weights, level[k])
        return scenarios.worst(members[k], z)

    def distance(k: int, q: list[D]) -> D:
        if isinstance(set_, urbe.ConditionalValueAtRisk):
            return scenarios.outside_mixtures(members[k], q, weights, level[k])
        return min(_l1(q, rescaled(p)) for p in members[k])

    return Oracle(rows, least, distance, [D(0)] * len(rows))


def _norm_ball(mdp: Any, set_: Any) -> Oracle:
    """`TwiceRegularised` per pair with the mass kept: p - radius d, d the unit deviation along z - c (see kappa)."""
    rows, radius = rows_of(mdp), [D(float(x)) for x in mdp.per_row("transition", set_.transition)]
    lost = [D(float(x)) for x in mdp.per_row("reward", set_.reward)]
    rows = [row._replace(reward=[r - less for r in row.reward]) for row, less in zip(rows, lost, strict=True)]

    def least(k: int, z: list[D]) -> Answer:
        with precise():
            q = [a - radius[k] * x for a, x in zip(rows[k].p, _steepest(z, set_.norm), strict=True)]
            return Answer.around(dot(q, z), dot(q, z), q, z)

    def distance(k: int, q: list[D]) -> D:
        apart = [abs(a - b) for a, b in zip(q, rows[k].p, strict=True)]
        if set_.norm == 2:
            return sum((x * x for x in apart), D(0)).sqrt()
        return sum(apart, D(0)) if set_.norm == 1 else max(apart)

    return Oracle(rows, least, distance, radius)


def _steepest(z: list[D], norm: float) -> list[D]:
    """x with sum 0 and ||x|| = 1 for which x . z is largest; zero where z is constant."""
    n, order = len(z), sorted(range(len(z)), key=lambda j: z[j])
    x = [D(0)] * n
    if z[order[0]] == z[order[-1]]:
        return x
    if norm == 1:
        x[order[-1]], x[order[0]] = D("0.5"), D("-0.5")
    elif norm == 2:
        centred = [a - sum(z, D(0)) / n for a in z]
        length = sum((a * a for a in centred), D(0)).sqrt()
        x = [a / length for a in centred]
    else:
        for place, j in enumerate(order):
            x[j] = D(0) if 2 * place + 1 == n else D(1 if 2 * place + 1 > n else -1)
    return x


_MAKERS: dict[Any, Callable[[Any, Any], Oracle]] = {
    type(None): _exact,
    Exact: _exact,
    urbe.L1Ball: _l1_ball,
    urbe.WeightedL1Ball: _weighted_l1,
    urbe.L2Ball: _l2,
    urbe.LInfBall: _linf,
    urbe.Interval: _interval,
    urbe.KLBall: _divergence(divergences.kl, lambda q, p: q * (ln(q) - ln(p)) if q else D(0)),
    urbe.LikelihoodRegion: _likelihood,
    urbe.Chi2Ball: _divergence(divergences.chi2, lambda q, p: (q - p) ** 2 / p),
    urbe.WassersteinBall: _wasserstein,
    urbe.Contamination: _contamination,
    urbe.Scenarios: _scenarios,
    urbe.ValueAtRisk: _scenarios,
    urbe.ConditionalValueAtRisk: _scenarios,
    urbe.TwiceRegularised: _norm_ball,
}
