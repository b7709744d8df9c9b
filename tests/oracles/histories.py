"""Policy-conditioned problems by enumeration of all histories: no belief, no softening, no multiplier search.

A history is (s_0, a_0, s_1, .., s_t). A deterministic policy gives an action to each history that its own actions can
lead to; dynamics give a distribution to each history and action, whoever took it.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog


class Case(NamedTuple):
    """A small problem with dense arrays; nature may use every successor."""

    reward: np.ndarray  # (S, A, S)
    phi: np.ndarray  # (S, A, S, d)
    reference: np.ndarray  # (S, A)
    start: int
    horizon: int


def own_histories(case):
    """Histories that end in a state, as tuples, by step, for every policy; a policy assigns actions to some of them."""
    n, k, _ = case.reward.shape
    layers = [[(case.start,)]]
    for _ in range(case.horizon - 1):
        layers.append([(*h, a, s) for h in layers[-1] for a in range(k) for s in range(n)])
    return layers


def policies(case):
    """All deterministic policies, as dictionaries of the histories that they can reach."""
    n, k, _ = case.reward.shape

    def extend(step, histories):
        for actions in product(range(k), repeat=len(histories)):
            now = dict(zip(histories, actions, strict=True))
            if step + 1 == case.horizon:
                yield now
                continue
            following = [(*h, a, s) for h, a in now.items() for s in range(n)]
            for later in extend(step + 1, following):
                yield now | later

    yield from extend(0, [(case.start,)])


def inner_value(case, omega, policy):
    """min over dynamics of E_policy[return] + E_reference[omega . phi], one history after another."""
    bonus = case.phi @ omega

    def after(h, mine, theirs):
        s = h[-1]
        if (len(h) - 1) // 2 == case.horizon:
            return 0.0
        total = 0.0
        for a in range(case.reward.shape[1]):
            x = mine * (policy.get(h) == a)
            y = theirs * case.reference[s, a]
            if x + y > 0.0:
                total += min(
                    x * case.reward[s, a, to] + y * bonus[s, a, to] + after((*h, a, to), x, y)
                    for to in range(case.reward.shape[2])
                )
        return total

    return after((case.start,), 1.0, 1.0)


def constrained_value(case, moments, policy, slack=0.0):
    """min over dynamics that satisfy the constraints of E_policy[return], as a linear program in realisation weights.

    Variables are the products of nature's probabilities along each history. None where no dynamics satisfy them.
    """
    n, k, _ = case.reward.shape
    index, parents = {(case.start,): 0}, []
    layer = [(case.start,)]
    objective, features = [0.0], [np.zeros(case.phi.shape[-1])]
    mine, theirs = {(case.start,): 1.0}, {(case.start,): 1.0}
    for _ in range(case.horizon):
        following = []
        for h in layer:
            for a in range(k):
                children = []
                for s in range(n):
                    g = (*h, a, s)
                    index[g] = len(index)
                    children.append(index[g])
                    mine[g] = mine[h] * (policy.get(h) == a)
                    theirs[g] = theirs[h] * case.reference[h[-1], a]
                    objective.append(mine[g] * case.reward[h[-1], a, s])
                    features.append(theirs[g] * case.phi[h[-1], a, s])
                    following.append(g)
                parents.append((index[h], children))
        layer = following
    equal = np.zeros((len(parents) + 1, len(index)))
    equal[0, 0] = 1.0
    for i, (parent, children) in enumerate(parents, 1):
        equal[i, parent], equal[i, children] = -1.0, 1.0
    right = np.zeros(len(equal))
    right[0] = 1.0
    phi = np.array(features).T
    found = linprog(
        objective,
        A_ub=np.concatenate([phi, -phi]),
        b_ub=np.concatenate([moments + slack, slack - moments]),
        A_eq=equal,
        b_eq=right,
        bounds=(0.0, 1.0),
        method="highs",
    )
    return found.fun if found.status == 0 else None
