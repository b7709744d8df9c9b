"""Sets made of other sets, in high precision: mixtures of common factors, nested sets, labels.

Each takes the oracles of its parts, and answers like them:

    factors    min over each factor's set, mixed by the coefficients
    nested     sum_i (lambda_i - lambda_{i-1}) min over U_i
    labels     the least of the options under a label, each at the values of the label it leads to

Whether a mixture is in its set is asked in the directions of single successors, from both sides: a kernel that is
outside in one of them is outside, and that is all the oracle says.
"""

from itertools import pairwise
from typing import Any

import numpy as np

import urbe
from oracles.high_precision import sets as plain
from oracles.high_precision.moments import moments
from oracles.high_precision.numbers import Answer, D, precise, rescaled
from oracles.high_precision.sets import Oracle, Row, in_directions
from urbe.ambiguity.coupled.labels import LabelledSet


def oracle_of(mdp: Any, set_: Any) -> Oracle:
    """The oracle of any set that is not s-rectangular, made of other sets or not."""
    made = {urbe.FactorSet: factors, urbe.NestedSets: nested, LabelledSet: labels, urbe.MomentSet: moments}
    maker = made.get(type(set_), plain.oracle_of)
    with precise():
        return maker(mdp, set_)


def factor_model(given: Any) -> urbe.MDP:
    """Factors `(r, S)` as the actions of state 0, the other states being terminal."""
    n_factors, n_states = np.shape(given)
    transition = np.zeros((n_states, n_factors, n_states))
    transition[0] = given
    return urbe.MDP.from_dense(transition, np.zeros((n_states, n_factors)), discount=1.0, terminal=range(1, n_states))


def factors(mdp: Any, set_: Any) -> Oracle:
    """`FactorSet`, its coefficients and factors dense; they stand for distributions, and are divided by their sums."""
    inner = plain.oracle_of(factor_model(set_.factors), set_.set)
    mixing = [rescaled([D(float(x)) for x in line]) for line in np.asarray(set_.coefficients, dtype=float)]
    listed = [s for s in range(mdp.n_states) if any(s in row.states for row in inner.rows)]
    centre = [row._replace(p=rescaled(row.p)) for row in inner.rows]
    rows = []
    for k, u in enumerate(mixing):
        p = [sum((share * _of(row, s) for share, row in zip(u, centre, strict=True)), D(0)) for s in listed]
        rows.append(Row(listed, p, [D(float(mdp.rows.row_reward[k]))] * len(listed)))
    known: dict[tuple[D, ...], list[Answer]] = {}

    def least(k: int, z: list[D]) -> Answer:
        key = tuple(z)
        if key not in known:
            known[key] = [_whole(_on(inner, i, listed, z)) for i in range(len(inner.rows))]
        return _sum(mixing[k], known[key])

    return Oracle(rows, least, in_directions(rows, least), [D(0)] * len(rows))


def nested(mdp: Any, set_: Any) -> Oracle:
    """`NestedSets`."""
    parts = [plain.oracle_of(mdp, each) for each in set_.sets]
    levels = [D(0), *(D(float(x)) for x in np.asarray(set_.confidence, dtype=float))]
    shares = [after - before for before, after in pairwise(levels)]
    rows = [_joined([part.rows[k] for part in parts]) for k in range(mdp.n_rows)]

    def least(k: int, z: list[D]) -> Answer:
        answers = [_on(part, k, rows[k].states, z) for part, share in zip(parts, shares, strict=True) if share]
        return _sum([share for share in shares if share], answers)

    return Oracle(rows, least, in_directions(rows, least), [D(0)] * len(rows))


def labels(mdp: Any, set_: Any) -> Oracle:  # noqa: ARG001  the set carries the model without labels
    """`LabelledSet`: row k of label i is row k of the model without labels, at states of the labels that follow."""
    base, n = set_.base, set_.base.n_states
    own = [[plain.oracle_of(base, each) for each in sets] for sets in set_.options]
    rows, options = [], []
    for i, following in enumerate(set_.next_labels):
        for k in range(base.n_rows):
            here = [(oracle, k, int(to[k]) * n, oracle.rows[k]) for oracle, to in zip(own[i], following, strict=True)]
            shifted = [Row([s + shift for s in row.states], row.p, row.reward) for _, _, shift, row in here]
            rows.append(_joined(shifted))
            options.append([(oracle, at, row.states) for (oracle, at, _, _), row in zip(here, shifted, strict=True)])

    def least(k: int, z: list[D]) -> Answer:
        value = dict(zip(rows[k].states, z, strict=True))
        answers = []
        for oracle, at, states in options[k]:
            found = oracle.answer(at, [value[s] for s in states])
            answers.append(found._replace(q=_spread(states, found.q, rows[k].states)))
        best = min(answers, key=lambda answer: answer.high)
        return best._replace(low=min(answer.low for answer in answers))

    def distance(k: int, q: list[D]) -> D:
        """To the nearest option: the mass on states of other labels, or the distance in the option's own set."""
        found = dict(zip(rows[k].states, q, strict=True))
        apart = []
        for oracle, at, states in options[k]:
            stray = sum((abs(x) for s, x in found.items() if s not in states), D(0))
            inside = oracle.excess(at, [found[s] for s in states]) / (1 + oracle.radius[at])
            apart.append(max(stray, inside))
        return min(apart)

    return Oracle(rows, least, distance, [D(0)] * len(rows))


def _of(row: Row, state: int) -> D:
    return row.p[row.states.index(state)] if state in row.states else D(0)


def _joined(rows: list[Row]) -> Row:
    """The receivers of several rows, with the first row's probabilities."""
    states = sorted({s for row in rows for s in row.states})
    reward = {s: r for row in rows for s, r in zip(row.states, row.reward, strict=True)}
    return Row(states, [_of(rows[0], s) for s in states], [reward[s] for s in states])


def _spread(states: list[int], q: list[D], onto: list[int]) -> list[D]:
    known = dict(zip(states, q, strict=True))
    return [known.get(s, D(0)) for s in onto]


def _on(oracle: Oracle, k: int, states: list[int], z: list[D]) -> Answer:
    """The answer to row k, on more states than the row's own."""
    own, value = oracle.rows[k].states, dict(zip(states, z, strict=True))
    found = oracle.answer(k, [value[s] for s in own])
    return found._replace(q=_spread(own, found.q, states))


def _whole(answer: Answer) -> Answer:
    mass = sum(answer.q, D(0))
    return Answer(answer.low / mass, answer.high / mass, [x / mass for x in answer.q])


def _sum(shares: list[D], answers: list[Answer]) -> Answer:
    pairs = [(share, answer) for share, answer in zip(shares, answers, strict=True) if share]
    q = [D(0)] * len(answers[0].q)
    for share, answer in pairs:
        q = [total + share * x if x else total for total, x in zip(q, answer.q, strict=True)]
    return Answer(
        sum((share * answer.low for share, answer in pairs), D(0)),
        sum((share * answer.high for share, answer in pairs), D(0)),
        q,
    )
