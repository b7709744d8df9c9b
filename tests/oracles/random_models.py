"""Random models with everything a file must carry, and a plain re-check of what a model promises."""

import dataclasses
import math

import numpy as np
from hypothesis import strategies as st

from urbe import MDP

numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.sampled_from([1e-300, -1e300, 0.1]))


@st.composite
def models(draw, intervals=None, goals=False):
    """A model with state-dependent actions, terminal states (reached or not), zero entries, and any kind of reward.

    With `goals`, the reward is 1 for entering a terminal state and 0 otherwise; `intervals` forces bounds or none.
    """
    n = draw(st.integers(1, 5))
    ends = draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    kind = "goal" if goals else draw(st.sampled_from(["state", "pair", "successor"]))
    lists = {name: [] for name in ("state", "action", "next_state", "probability", "reward", "lower", "upper")}
    for s in sorted(set(range(n)) - ends):
        of_state = draw(numbers)
        for a in sorted(draw(st.sets(st.integers(0, 9), min_size=1, max_size=3))):
            of_pair = draw(numbers)
            support = sorted(draw(st.sets(st.integers(0, n - 1), min_size=1)))
            counts = draw(st.lists(st.integers(0, 6), min_size=len(support), max_size=len(support)).filter(any))
            for t, count in zip(support, counts, strict=True):
                p = count / sum(counts)
                r = {"state": of_state, "pair": of_pair, "goal": float(t in ends)}.get(kind)
                row = (s, a, t, p, draw(numbers) if r is None else r, draw(st.floats(0, p)), draw(st.floats(p, 1)))
                for column, x in zip(lists.values(), row, strict=True):
                    column.append(x)
    lower, upper = lists.pop("lower"), lists.pop("upper")
    bounds = draw(st.booleans()) if intervals is None else intervals
    extra = {"lower": lower, "upper": upper} if bounds else {}
    mdp = MDP.from_transitions(
        *lists.values(), discount=draw(st.floats(0, 1)), n_states=n, terminal=sorted(ends), **extra
    )
    starts = draw(st.sets(st.integers(0, n - 1)))
    if not starts:
        return mdp
    initial = np.isin(np.arange(n), sorted(starts)) / len(starts)
    return dataclasses.replace(mdp, initial=initial)


def entries(mdp):
    """{(s, a, s'): (p, r, lower, upper)} of the entries; bounds are None when there are none."""
    out = {}
    for row in range(mdp.n_rows):
        for at in range(mdp.rows.entry_start[row], mdp.rows.entry_start[row + 1]):
            r = mdp.rows.reward[at if mdp.rows.rewards_successors else row]
            low, high = (None, None) if mdp.bounds is None else (float(bound[at]) for bound in mdp.bounds)
            key = (int(mdp.row_state[row]), int(mdp.action[row]), int(mdp.rows.successor[at]))
            out[key] = (float(mdp.rows.probability[at]), float(r), low, high)
    return out


def assert_valid(mdp):
    """What every reader promises, checked entry by entry."""
    rows = mdp.rows
    assert 0.0 <= mdp.discount <= 1.0
    assert mdp.row_start[0] == 0
    assert mdp.row_start[-1] == len(mdp.action) == len(rows.entry_start) - 1
    assert rows.entry_start[0] == 0
    assert rows.entry_start[-1] == len(rows.successor) == len(rows.probability)
    assert rows.n_states == mdp.n_states > 0
    assert len(rows.reward) in (len(mdp.action), len(rows.successor))
    assert all(math.isfinite(r) for r in rows.reward)
    assert (np.diff(mdp.row_start) >= 0).all()
    for s in np.flatnonzero(np.diff(mdp.row_start)):
        actions = mdp.action[mdp.row_start[s] : mdp.row_start[s + 1]].tolist()
        assert actions == sorted(set(actions))
        assert all(a >= 0 for a in actions)
    for row in range(mdp.n_rows):
        span = slice(rows.entry_start[row], rows.entry_start[row + 1])
        successors, p = rows.successor[span].tolist(), rows.probability[span]
        assert successors
        assert successors == sorted(set(successors))
        assert 0 <= successors[0] <= successors[-1] < mdp.n_states
        assert (p >= 0).all()
        assert abs(math.fsum(p) - 1.0) <= 2e-9
        if mdp.bounds is not None:
            low, high = (bound[span] for bound in mdp.bounds)
            assert (low >= 0).all()
            assert (low <= high).all()
            assert (high <= 1).all()
            assert math.fsum(low) <= 1 + 2e-9
            assert math.fsum(high) >= 1 - 2e-9
            assert (low - 2e-5 <= p).all()  # rows of text are rescaled within 1e-5
            assert (p <= high + 2e-5).all()
    if mdp.initial is not None:
        assert mdp.initial.shape == (mdp.n_states,)
        assert (mdp.initial >= 0).all()
        assert abs(math.fsum(mdp.initial) - 1.0) <= 2e-9
