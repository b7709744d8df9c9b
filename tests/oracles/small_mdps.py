"""Models small enough for exact arithmetic, with what breaks solvers: ties, terminal states, signs, scales."""

import numpy as np
from hypothesis import strategies as st

from oracles import exact
from urbe import MDP, Exact, L1Ball
from urbe.ambiguity.contamination import Contamination
from urbe.ambiguity.interval import Interval, LInfBall
from urbe.ambiguity.optimistic import Optimistic

DISCOUNTS = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
SCALES = (1.0, 1e8, 1e-8)


@st.composite
def small_mdps(draw, discounts=DISCOUNTS, largest=4, ends=None, scales=SCALES):
    """A model of up to `largest` states and 3 actions; with `ends`, every row ends with probability 1/8 or more."""
    n = draw(st.integers(2 if ends else 1, largest))
    terminal = sorted(draw(st.sets(st.integers(0, n - 1), min_size=1 if ends else 0, max_size=n - 1)))
    n_actions = draw(st.integers(1, 3))
    counts = st.lists(st.sampled_from([0, 0, 1, 2, 5]), min_size=n, max_size=n).filter(any)
    transition = np.array([[draw(counts) for _ in range(n_actions)] for _ in range(n)], dtype=float)
    if ends:
        transition[:, :, terminal[0]] += transition.sum(axis=-1) / 4 + 1
    transition /= transition.sum(axis=-1, keepdims=True)
    shape = (n, n_actions, n) if draw(st.booleans()) else (n, n_actions)
    values = st.one_of(st.integers(-3, 3).map(float), st.floats(-5, 5, allow_subnormal=False))
    reward = np.array(draw(st.lists(values, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))).reshape(shape)
    if n_actions > 1 and draw(st.booleans()):  # two actions that all but tie
        transition[:, 1], reward[:, 1] = transition[:, 0], reward[:, 0] + draw(st.sampled_from([0.0, 1e-12, -1e-12]))
    reward *= draw(st.sampled_from(scales))
    return MDP.from_dense(transition, reward, discount=draw(st.sampled_from(discounts)), terminal=terminal)


def pairs_of_sets(mdp):
    """(a set of the library, the same in exact arithmetic, whether every state may receive mass)."""
    sets = [
        (Exact(), exact.nominal(), False),
        (L1Ball(0.0), exact.l1(0.0), False),
        (L1Ball(0.3), exact.l1(0.3), False),
        (L1Ball(2.0), exact.l1(2.0), False),
        (Contamination(0.1), exact.contamination(0.1), False),
        (LInfBall(0.2), exact.linf(0.2), False),
        (Interval(0.0, 1.0), exact.interval(0.0, 1.0), False),
        (Optimistic(L1Ball(0.3)), exact.optimistic(exact.l1(0.3)), False),
    ]
    if not mdp.rows.rewards_successors:
        sets += [
            (L1Ball(0.3, support="all"), exact.l1(0.3), True),
            (Contamination(0.1, support="all"), exact.contamination(0.1), True),
        ]
    return sets


@st.composite
def problems(draw, **options):
    """(model, set of the library, the same in exact arithmetic)."""
    mdp = draw(small_mdps(**options))
    chosen, answer, everywhere = draw(st.sampled_from(pairs_of_sets(mdp)))
    return mdp, chosen, exact.ExactModel(mdp, answer, everywhere=everywhere)
