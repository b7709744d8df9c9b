"""Models and sets on which floating-point code goes wrong, drawn from one seed.

`model(rng)` draws probabilities from 5e-324 to one, rewards from 1e-300 to 1e290 with ties, near-ties and signed zeros,
terminal states, single successors and discounts from 0 to 1; `FAMILIES[name](rng, mdp)` draws a set for it, with radii
from zero over 5e-324 to beyond the largest that matters.
"""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

import urbe
from urbe import MDP

TINY = 5e-324
DISCOUNTS = (0.0, 0.5, 0.9, 0.9, 0.999, 1.0 - 1e-9, 1.0)
RADII = (0.0, TINY, 1e-300, 1e-100, 1e-16, 1e-8, 1e-3, 0.1, 0.3, 1.0)


def weights(rng: Generator, n: int) -> np.ndarray:
    """`(n,)` probabilities, not always summing to one in the last place."""
    if n == 1:
        return np.ones(1)
    kind = rng.integers(9)
    if kind == 0:
        w = rng.dirichlet(np.ones(n))
    elif kind == 1:
        w = 10.0 ** rng.uniform(-320.0, 0.0, n)
    elif kind == 2:
        w = np.where(rng.random(n) < 0.5, TINY, rng.random(n))
    elif kind == 3:
        w = rng.uniform(0.01, 0.9) ** np.arange(n) * rng.uniform(0.5, 1.0)
    elif kind == 4:
        w = np.full(n, 1.0 / n)
    elif kind == 5:
        w = np.full(n, float(rng.choice([1e-300, 1e-175, 1e-16, 1e-17, 1e-8, 2.0**-53])))
        w[rng.integers(n)] = 1.0
    elif kind == 6:
        w = rng.integers(1, 4, n).astype(float)
    elif kind == 7:
        w = rng.dirichlet(np.full(n, 0.05)) + TINY
    else:
        w = np.exp(-0.5 * rng.uniform(0.0, 38.0, n) ** 2)
    w[np.argmax(w)] = max(w.max(), 1e-3)
    w = np.maximum(w, TINY)
    return rng.permutation(w / w.sum())


def numbers(rng: Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Rewards: ordinary, tied, nearly tied, of one sign, of mixed magnitudes, zeros of both signs."""
    kind = rng.integers(8)
    if kind == 0:
        x = rng.normal(size=shape)
    elif kind == 1:
        x = rng.integers(-2, 3, shape).astype(float)
    elif kind == 2:
        x = 1.0 + rng.integers(-4, 5, shape) * 2.0**-52
    elif kind == 3:
        x = -rng.random(shape)
    elif kind == 4:
        x = rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-12.0, 0.0, shape)
    elif kind == 5:
        x = rng.choice([0.0, -0.0, 1.0], shape)
    elif kind == 6:
        x = 1e6 + rng.normal(size=shape)
    else:
        x = np.full(shape, float(rng.choice([0.0, -0.0, 1.0, -3.7])))
    return x


def scale(rng: Generator) -> float:
    """Mostly one; now and then so large or small that products over- or underflow."""
    return float(rng.choice([1.0, 1.0, 1.0, 1.0, 1e-8, 1e8, 1e-150, 1e-300, 1e150, 1e290]))


def model(rng: Generator, *, discount: float | None = None, max_states: int = 6) -> MDP:
    """A small model. With discount 1 every step leads to a later state, so that all policies and kernels end."""
    gamma = float(rng.choice(DISCOUNTS)) if discount is None else discount
    n_states, n_actions = int(rng.integers(1, max_states + 1)), int(rng.integers(1, 4))
    ends = gamma == 1.0
    if ends:
        n_states = max(n_states, 2)
    transition = np.zeros((n_states, n_actions, n_states))
    terminal = [n_states - 1] if ends or (n_states > 1 and rng.random() < 0.3) else []
    for s in range(n_states):
        for a in range(n_actions):
            first = s + 1 if ends and s < n_states - 1 else 0
            room = n_states - first
            n = int(rng.integers(1, room + 1))
            to = first + rng.choice(room, n, replace=False)
            transition[s, a, to] = weights(rng, n)
    by_successor = rng.random() < 0.3
    shape = (n_states, n_actions, n_states) if by_successor else (n_states, n_actions)
    reward = numbers(rng, shape) * scale(rng)
    if gamma > 0.9999:
        reward = np.clip(reward, -1e290, 1e290)
    return MDP.from_dense(transition, reward, discount=gamma, terminal=terminal)


def long_row(rng: Generator, kind: str) -> MDP:
    """One row over many states, whose value is the state's number; all other states end at once.

    Args:
      rng: for the values of states.
      kind: "poisson20", "poisson1000", "geometric" or "binomial": unclipped tails.
    """
    from scipy import stats

    law, n = {
        "poisson20": (stats.poisson(20), 250),
        "poisson1000": (stats.poisson(1000), 3000),
        "geometric": (stats.geom(0.5), 1060),
        "binomial": (stats.binom(400, 0.1), 401),
    }[kind]
    p = law.pmf(np.arange(n))
    keep = np.flatnonzero(p > 0.0)
    to = keep + 1
    goes = len(keep)
    # state 0 chooses nothing; the states after it pay their value once and end
    values = rng.permutation(np.arange(float(n))) if rng.random() < 0.5 else np.arange(float(n))
    state = np.concatenate([np.zeros(goes, dtype=int), to])
    successor = np.concatenate([to, np.full(goes, n + 1)])
    probability = np.concatenate([p[keep], np.ones(goes)])
    reward = np.concatenate([np.zeros(goes), values[keep]])
    ends = sorted(set(range(1, n + 2)) - set(to.tolist()))
    return MDP.from_transitions(
        state, np.zeros_like(state), successor, probability, reward, discount=0.9, n_states=n + 2, terminal=ends
    )


def _pick(rng: Generator, mdp: MDP, special: Callable[[np.ndarray], np.ndarray], largest: float) -> np.ndarray:
    """`(R,)` radii: one for all rows or one each; ordinary, or at and around a number that matters in that row."""
    rows = mdp.rows
    each = rng.choice(RADII, mdp.n_rows)
    if rng.random() < 0.5:
        each[:] = each[0]
    if rng.random() < 0.35:
        for k in range(mdp.n_rows):
            p = rows.probability[rows.entry_start[k] : rows.entry_start[k + 1]]
            with np.errstate(all="ignore"):
                here = rng.choice(special(p[p > 0.0]))
            each[k] = here * (1.0 + rng.integers(-2, 3) * 2.0**-52)
    return np.clip(np.nan_to_num(each, nan=1.0, posinf=1e300), 0.0, largest)


def _support(rng: Generator, mdp: MDP, chance: float = 0.4) -> str:
    free = mdp.discount < 1.0 and not mdp.rows.rewards_successors
    return "all" if free and rng.random() < chance else "nominal"


def _prefix(p: np.ndarray) -> np.ndarray:
    return np.cumsum(np.sort(p))


def _kl(rng: Generator, mdp: MDP) -> urbe.KLBall:
    special = lambda p: np.append(-np.log(np.append(p, _prefix(p))), [3.0, 40.0, 800.0, 1e6])  # noqa: E731
    return urbe.KLBall(_pick(rng, mdp, special, np.inf))


def _likelihood(rng: Generator, mdp: MDP) -> urbe.LikelihoodRegion:
    special = lambda p: np.append(-np.log(p), [3.0, 40.0, 800.0, 1e6, *p])  # noqa: E731
    return urbe.LikelihoodRegion(_pick(rng, mdp, special, np.inf), _support(rng, mdp))


def _chi2(rng: Generator, mdp: MDP) -> urbe.Chi2Ball:
    special = lambda p: np.append(1.0 / np.append(p, _prefix(p)) - 1.0, [3.0, 1e8, 1e300, *p])  # noqa: E731
    return urbe.Chi2Ball(_pick(rng, mdp, special, np.inf))


def _l2(rng: Generator, mdp: MDP) -> urbe.L2Ball:
    special = lambda p: np.append(np.append(p, 1.0 - p) * np.sqrt(2.0), [np.sqrt(2.0), 1.5, *p])  # noqa: E731
    return urbe.L2Ball(_pick(rng, mdp, special, np.inf), _support(rng, mdp))


def _l1(rng: Generator, mdp: MDP) -> urbe.L1Ball:
    special = lambda p: np.append(2.0 * np.append(_prefix(p), p), 2.0)  # noqa: E731
    return urbe.L1Ball(_pick(rng, mdp, special, 2.0), _support(rng, mdp))


def _weighted_l1(rng: Generator, mdp: MDP) -> urbe.WeightedL1Ball:
    special = lambda p: np.append(2.0 * np.append(_prefix(p), p), [2.0, 1e3, 1e300])  # noqa: E731
    support = _support(rng, mdp)
    size = mdp.n_states if support == "all" or rng.random() < 0.5 else mdp.rows.n_entries
    kind = rng.integers(4)
    if kind == 0:
        w = rng.uniform(0.5, 2.0, size)
    elif kind == 1:
        w = 10.0 ** rng.uniform(-74.0, 74.0, size) * float(rng.choice([1e-200, 1.0, 1e200]))
    elif kind == 2:
        w = rng.choice([1.0, 2.0], size)
    else:
        w = 10.0 ** rng.uniform(-3.0, 3.0, size)
    return urbe.WeightedL1Ball(_pick(rng, mdp, special, np.inf), w, support)


def _linf(rng: Generator, mdp: MDP) -> urbe.LInfBall:
    special = lambda p: np.append(np.append(p, 1.0 - p), 1.0)  # noqa: E731
    return urbe.LInfBall(_pick(rng, mdp, special, 1.0), _support(rng, mdp))


def _interval(rng: Generator, mdp: MDP) -> urbe.Interval:
    p = mdp.rows.probability
    width = rng.choice([0.0, 1e-300, 1e-16, 1e-8, 0.1, 1.0], len(p))
    lower = np.clip(p - width * rng.random(len(p)), 0.0, 1.0)
    upper = np.clip(p + width * rng.random(len(p)), 0.0, 1.0)
    # room for rows that sum to one up to rounding only
    upper = np.clip(upper * (1.0 + 2.0**-48), 0.0, 1.0)
    lower = np.where(mdp.rows.length[mdp.rows.entry_row] == 1, lower, lower * (1.0 - 2.0**-48))
    upper = np.where(mdp.rows.length[mdp.rows.entry_row] == 1, 1.0, upper)
    if mdp.rows.rewards_successors or mdp.discount == 1.0 or rng.random() < 0.5:
        return urbe.Interval(lower, upper)
    dense = np.zeros((2, mdp.n_states, mdp.n_actions, mdp.n_states))
    at = (mdp.row_state[mdp.rows.entry_row], mdp.action[mdp.rows.entry_row], mdp.rows.successor)
    dense[0][at], dense[1][at] = lower, upper
    extra = (rng.random(dense[1].shape) < 0.2) * rng.choice([TINY, 0.1, 1.0], dense[1].shape)
    return urbe.Interval(dense[0], np.maximum(dense[1], extra))


def _contamination(rng: Generator, mdp: MDP) -> urbe.Contamination:
    return urbe.Contamination(_pick(rng, mdp, lambda p: np.append(p, [1.0, 0.5]), 1.0), _support(rng, mdp))


def _wasserstein(rng: Generator, mdp: MDP) -> urbe.WassersteinBall:
    n = mdp.n_states
    kind = rng.integers(5)
    if kind == 0:
        metric = np.abs(np.subtract.outer(np.arange(float(n)), np.arange(float(n))))
    elif kind == 1:
        metric = rng.random((n, n))
    elif kind == 2:
        metric = 10.0 ** rng.uniform(-3.0, 3.0, (n, n)) * float(rng.choice([1e-100, 1.0, 1e100]))
    elif kind == 3:
        metric = rng.choice([0.0, 1.0], (n, n))
    else:
        metric = np.full((n, n), float(rng.choice([1e-300, 1.0, 1e290])))
    metric = np.triu(metric, 1)
    metric = metric + metric.T
    unit = float(metric.max(initial=0.0)) or 1.0
    special = lambda p: np.append(p, [1.0, 2.0]) * unit  # noqa: E731
    radius = _pick(rng, mdp, special, 1e300)
    if rng.random() < 0.5:
        radius = np.minimum(radius, 1e300 / unit) * unit
    return urbe.WassersteinBall(radius, metric, _support(rng, mdp))


def _members(rng: Generator, mdp: MDP) -> np.ndarray:
    """`(K, S, A, S)` scenarios on the model's own successors, or on any where no end is needed."""
    count = int(rng.integers(1, 6))
    out = np.zeros((count, mdp.n_states, mdp.n_actions, mdp.n_states))
    for k in range(mdp.n_rows):
        first, last = mdp.rows.entry_start[k : k + 2]
        own = mdp.rows.successor[first:last]
        at = (int(mdp.row_state[k]), int(mdp.action[k]))
        for member in range(count):
            if member == 0 and rng.random() < 0.5:
                out[member, *at, own] = mdp.rows.probability[first:last]
            elif mdp.discount < 1.0 and rng.random() < 0.3:
                out[member, *at] = weights(rng, mdp.n_states)
            else:
                out[member, *at, own] = weights(rng, len(own))
    return out


def _weights_of(rng: Generator, count: int) -> np.ndarray | None:
    if rng.random() < 0.5:
        return None
    return weights(rng, count)


def _scenarios(rng: Generator, mdp: MDP) -> urbe.Scenarios:
    return urbe.Scenarios(_members(rng, mdp))


def _levels(rng: Generator, mdp: MDP, count: int) -> np.ndarray:
    return rng.choice([0.0, TINY, 1e-16, 0.1, 0.5, 1.0, float(rng.random()), 1.0 / count], mdp.n_rows)


def _value_at_risk(rng: Generator, mdp: MDP) -> urbe.ValueAtRisk:
    members = _members(rng, mdp)
    # sums of weights are compared with levels up to 1e-12, so tiny weights decide nothing
    given = None if rng.random() < 0.5 else rng.integers(1, 9, len(members)) / 8.0
    given = None if given is None else given / given.sum()
    return urbe.ValueAtRisk(members, _levels(rng, mdp, len(members)), given)


def _conditional(rng: Generator, mdp: MDP) -> urbe.ConditionalValueAtRisk:
    members = _members(rng, mdp)
    return urbe.ConditionalValueAtRisk(members, _levels(rng, mdp, len(members)), _weights_of(rng, len(members)))


def _shared(ball: type, largest: float) -> Callable[[Generator, MDP], urbe.SRectangular]:
    """A budget for each state: ordinary, or what all its actions together can spend."""

    def draw(rng: Generator, mdp: MDP) -> urbe.SRectangular:
        budget = rng.choice([*RADII, 2.0, 3.0, 40.0, 1e6], mdp.n_states)
        if rng.random() < 0.5:
            budget[:] = budget[0]
        if rng.random() < 0.3:
            p = mdp.rows.probability
            p = p[p > 0.0]
            special = np.concatenate([p, 2.0 * p, -np.log(p), [largest]])
            budget = rng.choice(special, mdp.n_states) * (1.0 + rng.integers(-2, 3) * 2.0**-52)
        support = "nominal" if ball is urbe.KLBall else _support(rng, mdp)
        return urbe.SRectangular(ball(np.clip(budget, 0.0, None), support))

    return draw


FAMILIES: dict[str, Callable[[Generator, MDP], object]] = {
    "exact": lambda rng, mdp: None,  # noqa: ARG005
    "l1": _l1,
    "weighted_l1": _weighted_l1,
    "l2": _l2,
    "linf": _linf,
    "interval": _interval,
    "kl": _kl,
    "likelihood": _likelihood,
    "chi2": _chi2,
    "wasserstein": _wasserstein,
    "contamination": _contamination,
    "scenarios": _scenarios,
    "value_at_risk": _value_at_risk,
    "conditional_value_at_risk": _conditional,
    "s_l1": _shared(urbe.L1Ball, 2.0),
    "s_l2": _shared(urbe.L2Ball, 2.0**0.5),
    "s_linf": _shared(urbe.LInfBall, 1.0),
    "s_kl": _shared(urbe.KLBall, 800.0),
}

NEEDS_ROW_REWARDS = {"scenarios", "value_at_risk", "conditional_value_at_risk"}
"""Families whose sets lead to successors for which a model with rewards of successors has none."""
