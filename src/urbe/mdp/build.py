"""Checked constructors of `MDP`, whose errors name the state, the action and the value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.mdp import intervals
from urbe.mdp.intervals import PairError
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows, index_type
from urbe.mdp.terminal import require_actions, stay_after_terminal, terminal_ids
from urbe.types import BoolArray, FloatArray, IntArray

BLOCK = 1 << 16
"""Transitions compared at a time, to limit the memory for differences."""

ROW_BYTES = 72.0
"""Bytes for each row while rows are checked: its position, pair, length, extreme rewards and sum."""


def from_dense(
    transition: ArrayLike,
    reward: ArrayLike,
    *,
    discount: float,
    terminal: ArrayLike = (),
    available: ArrayLike | None = None,
    initial: ArrayLike | None = None,
    keep_zeros: bool = False,
) -> MDP:
    """A model from a dense transition array.

    Args:
      transition: `(S, A, S)`, axes `[s, a, s_next]`; each row sums to one.
      reward: a number, `(S,)`, `(S, A)` or `(S, A, S)`.
      discount: in [0, 1].
      terminal: ids of states where the process ends; their transition rows are not read.
      available: `(S, A)` booleans, False where an action does not exist; its row is not read.
      initial: the first state, or `(S,)` its distribution.
      keep_zeros: keep successors of probability zero, so that `support="all"` knows their `(S, A, S)` rewards.

    >>> import numpy as np
    >>> from_dense(np.full((2, 1, 2), 0.5), [[1.0], [0.0]], discount=0.9).n_rows
    2
    """
    p = checks.float_array("transition", transition, all_finite=False)
    if p.ndim != 3 or p.shape[0] != p.shape[2] or 0 in p.shape:
        pymdp = p.ndim == 3 and p.shape[1] == p.shape[2] > 0
        hint = "; for pymdptoolbox arrays (A, S, S) use MDP.from_pymdptoolbox" if pymdp else ""
        hint = ", with at least one state and one action" if 0 in p.shape else hint
        raise ValueError(f"transition has shape {p.shape}, expected (states, actions, states){hint}.")
    n_states, n_actions, _ = p.shape
    exists = np.ones((n_states, n_actions), dtype=bool)
    if available is not None:
        exists = checks.mask("available", available, exists.shape).copy()
    ends = terminal_ids(terminal, n_states)
    exists[ends] = False
    require_actions(np.asarray(exists.any(axis=1)), ends)
    n_entries = p.size if keep_zeros else int(np.count_nonzero(p))
    full_rewards = np.ndim(reward) == 3
    blanked = 0 if exists.all() else 1 + full_rewards
    memory.require(
        {
            f"a model of {n_entries} successors": (20.0 if full_rewards else 12.0) * n_entries,
            f"work on a transition array of {p.size} numbers": (1.0 + 8.0 * blanked) * p.size,
        },
        "Give the transitions as a list, MDP.from_transitions, or use a smaller model"
        + (", or keep_zeros=False." if keep_zeros else "."),
    )
    p = _blank("transition", p, exists)
    checks.non_negative("transition", p)
    r = _dense_reward(reward, exists)

    chosen = np.flatnonzero(exists.ravel())
    listed = np.ones_like(p, dtype=bool) if keep_zeros else p > 0.0
    listed &= exists[..., None]
    length = listed.sum(axis=2).ravel()[chosen]
    successor = np.broadcast_to(np.arange(n_states, dtype=np.int32), listed.shape)[listed]
    entry_reward = r[listed] if r.ndim == 3 else None
    row_reward = np.broadcast_to(r, p.shape[:2]).ravel()[chosen] if r.ndim < 3 else None
    return from_rows(
        state=chosen // n_actions,
        action=chosen % n_actions,
        length=length,
        successor=successor,
        probability=p[listed],
        row_reward=row_reward,
        entry_reward=entry_reward,
        n_states=n_states,
        discount=discount,
        initial=initial,
        row_tolerance=checks.sum_tolerance(transition),
    )


def from_transitions(
    state: ArrayLike,
    action: ArrayLike,
    next_state: ArrayLike,
    probability: ArrayLike | None,
    reward: ArrayLike,
    *,
    discount: float,
    n_states: int | None = None,
    terminal: ArrayLike = (),
    initial: ArrayLike | None = None,
    row_tolerance: float | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> MDP:
    """A model from a list of transitions, in any order.

    Repeated `(state, action, next_state)`: probabilities add up, rewards average by probability; with intervals
    they are refused. Transitions of probability zero are kept.

    Args:
      state, action, next_state: `(N,)` 0-based ids.
      probability: `(N,)`, summing to one over each (state, action). With intervals it must lie within them, and
        may be None: then it is their centre, lower + (1 - sum lower) (upper - lower) / sum(upper - lower).
      reward: a number or `(N,)`.
      discount: in [0, 1].
      n_states: number of states; by default one more than the largest id seen.
      terminal: ids of states where the process ends. Only a self-loop of reward zero may leave them.
      initial: the first state, or `(S,)` its distribution.
      row_tolerance: how far from one a row may sum; within it the row is rescaled. None is 1e-9, or 2e-6 for float32.
      lower, upper: `(N,)` bounds on each probability, both or neither, with sum lower <= 1 <= sum upper over each
        (state, action); they become `MDP.bounds`.

    >>> from_transitions([0, 0], [0, 0], [0, 1], [0.5, 0.5], [1.0, 1.0], discount=0.9, terminal=[1])
    MDP(2 states (1 terminal), 1 rows, 2 entries, discount 0.9)
    """
    high = None if n_states is None else checks.whole_number("n_states", n_states, 1)
    s = checks.int_array("state", state, 0, high, "state")
    a = checks.int_array("action", action, 0, 2**31 - 1, "action")
    t = checks.int_array("next_state", next_state, 0, high, "state")
    r = checks.float_array("reward", reward)
    if r.ndim > 1:
        raise ValueError(f"reward has shape {r.shape}, expected a number or one for each transition.")
    columns = {"state": s, "action": a, "next_state": t} | ({} if r.ndim == 0 else {"reward": r})
    p, lo, hi = _probability_columns(probability, lower, upper, columns)
    size = high or int(max(s.max(), t.max())) + 1
    if size >= 2**31:
        raise ValueError(
            f"The largest state id is {size - 1}, expected below {2**31 - 1}: number the states 0, 1, 2, ..."
        )
    ends = terminal_ids(terminal, size)
    r = np.broadcast_to(r, s.shape)
    in_order, n_rows = _order(s, a, t)
    n_floats = 1 + sum(column is not None for column in (p, lo, hi))
    if n_rows is None:
        n_rows = min(len(s), size * (int(a.max()) + 1))
    memory.require(
        transition_bytes(len(s), n_rows, n_floats, copied=len(ends) > 0 or not in_order, in_order=in_order),
        "Use fewer transitions" + ("." if in_order else ", or sort them by state, action and next_state."),
    )
    stay = stay_after_terminal(s, t, p if hi is None else hi, r, ends, size)
    if stay is not None:
        s, a, t, p, r, lo, hi = _each((s, a, t, p, r, lo, hi), stay)
        in_order, _ = _order(s, a, t)
    if not in_order:
        s, a, t = (ids.astype(np.int32, copy=False) for ids in (s, a, t))
        order = np.lexsort((t, a, s))
        s, a, t = s[order], a[order], t[order]
        p, r, lo, hi = _each((p, r, lo, hi), order)
        del order
    if lo is not None and hi is not None:
        intervals.check_ends(s, a, t, lo, hi)
        intervals.check_no_repeats(s, a, t)
    elif p is not None:
        s, a, t, p, r = _merge_repeats(s, a, t, p, r)
    first = np.flatnonzero(np.concatenate(([True], (s[1:] != s[:-1]) | (a[1:] != a[:-1])))) if len(s) else s[:0]
    has_actions = np.zeros(size, dtype=bool)
    has_actions[s] = True
    require_actions(has_actions, ends)
    length = np.diff(np.append(first, len(s)))
    varies = len(s) > 0 and bool((np.maximum.reduceat(r, first) != np.minimum.reduceat(r, first)).any())
    return from_rows(
        state=s[first],
        action=a[first],
        length=length,
        successor=t,
        probability=p,
        row_reward=None if varies else np.ascontiguousarray(r[first]),
        entry_reward=np.ascontiguousarray(r) if varies else None,
        n_states=size,
        discount=discount,
        initial=initial,
        row_tolerance=checks.sum_tolerance(probability, lower, upper) if row_tolerance is None else row_tolerance,
        bounds=None if lo is None or hi is None else (lo, hi),
    )


def from_rows(
    *,
    state: IntArray,
    action: IntArray,
    length: IntArray,
    successor: IntArray,
    probability: FloatArray | None,
    row_reward: FloatArray | None,
    entry_reward: FloatArray | None,
    n_states: int,
    discount: float,
    initial: ArrayLike | None = None,
    row_tolerance: float = 1e-9,
    bounds: tuple[FloatArray, FloatArray] | None = None,
) -> MDP:
    """A model from rows already sorted by (state, action, successor); checks only that rows are distributions.

    Args:
      state, action, length: `(R,)` the pair of each row and its number of entries.
      successor, probability: `(E,)`; the probability may be None when there are bounds.
      row_reward: `(R,)`, or None when `entry_reward`, `(E,)`, is given.
      bounds: lower and upper probability, `(E,)` each, each entry already in order.
    """
    reward = row_reward if entry_reward is None else entry_reward
    if reward is None:
        raise ValueError("Either row_reward or entry_reward is needed.")
    entry_start = np.zeros(len(length) + 1, dtype=index_type(len(successor)))
    np.cumsum(length, out=entry_start[1:])
    row_start = np.zeros(n_states + 1, dtype=index_type(len(state)))
    np.cumsum(np.bincount(state, minlength=n_states), out=row_start[1:])
    first = None if initial is None else _first(initial, n_states)
    rows = Rows(
        n_states,
        entry_start,
        np.ascontiguousarray(successor, dtype=np.int32),
        np.zeros(len(successor)) if probability is None else np.ascontiguousarray(probability, dtype=np.float64),
        np.ascontiguousarray(reward, dtype=np.float64),
    )
    if bounds is not None and rows.n_rows:
        bounds = intervals.fit_rows(rows, state, action, *bounds, row_tolerance)
        if probability is None:
            rows = replace(rows, probability=intervals.centre(rows, *bounds))
        else:
            intervals.check_inside(rows, state, action, bounds, row_tolerance)
    rows = _distributions(rows, state, action, row_tolerance)
    action = np.ascontiguousarray(action, dtype=np.int32)
    return MDP(row_start, action, rows, checks.discount(discount), first, bounds)


def _distributions(rows: Rows, state: IntArray, action: IntArray, tolerance: float) -> Rows:
    """`rows` with each row rescaled to one, unless its sum differs from one only by rounding."""
    if rows.n_rows == 0:
        return rows
    if (rows.length == 0).any():
        at = int(np.argmax(rows.length == 0))
        raise PairError(
            state[at],
            action[at],
            f"state {state[at]}, action {action[at]} has no successors, expected probabilities that sum to 1. "
            "Mark actions that do not exist with available=, states where the process ends with terminal=.",
        )
    total = rows.row_sums(rows.probability)
    wrong = ~(np.abs(total - 1.0) <= tolerance)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise PairError(
            state[at],
            action[at],
            f"The probabilities of state {state[at]}, action {action[at]} sum to {total[at]:.12g}, expected 1. "
            f"{checks.some(int(wrong.sum()), rows.n_rows, 'row', 'rows')} not a distribution; "
            "to build them from counts, divide each row by its sum.",
        )
    off = np.abs(total - 1.0) > rows.length * 2.0**-52
    if not off.any():
        return rows
    scale = np.where(off, 1.0 / total, 1.0)
    memory.require({f"{rows.n_entries} rescaled probabilities": 8.0 * rows.n_entries}, "Use a smaller model.")
    probability: FloatArray = np.repeat(scale, rows.length)
    np.multiply(rows.probability, probability, out=probability)
    return Rows(rows.n_states, rows.entry_start, rows.successor, probability, rows.reward)


def _dense_reward(reward: ArrayLike, exists: BoolArray) -> FloatArray:
    r = checks.float_array("reward", reward, all_finite=False)
    n_states, n_actions = exists.shape
    full = (n_states, n_actions, n_states)
    if r.shape == ():
        checks.finite("reward", r)
        return r
    if r.shape == (n_states,):
        r = _blank("reward", r, np.asarray(exists.any(axis=1)))
        return np.broadcast_to(r[:, None], exists.shape)
    if r.shape in (exists.shape, full):
        return _blank("reward", r, exists)
    raise ValueError(
        f"reward has shape {r.shape}, expected a number, ({n_states},), ({n_states}, {n_actions}) or {full}."
    )


def _blank(name: str, array: FloatArray, exists: BoolArray) -> FloatArray:
    """`array` with zeros where the pair does not exist; checks that it is finite elsewhere."""
    if not exists.all():
        array = np.where(exists.reshape(exists.shape + (1,) * (array.ndim - exists.ndim)), array, 0.0)
    checks.finite(name, array)
    return array


def _probability_columns(
    probability: ArrayLike | None, lower: ArrayLike | None, upper: ArrayLike | None, others: dict[str, Any]
) -> tuple[FloatArray | None, FloatArray | None, FloatArray | None]:
    """The three columns of numbers in [0, 1], checked against the length of the others."""
    if (lower is None) != (upper is None):
        given, missing = ("lower", "upper") if upper is None else ("upper", "lower")
        raise ValueError(f"{given} is given without {missing}; intervals need both.")
    if probability is None and lower is None:
        raise ValueError("probability is None, expected numbers; only lower and upper together can replace it.")
    named = {"probability": probability, "lower": lower, "upper": upper}
    columns = {name: checks.float_array(name, x, ndim=1) for name, x in named.items() if x is not None}
    if not checks.same_length(others | columns):
        raise ValueError("There are no transitions; expected at least one.")
    if "probability" in columns:
        checks.non_negative("probability", columns["probability"])
    return columns.get("probability"), columns.get("lower"), columns.get("upper")


def _each(columns: tuple[Any, ...], index: IntArray | BoolArray) -> Iterator[Any]:
    return (None if column is None else column[index] for column in columns)


def transition_bytes(
    n_transitions: int, n_rows: int, n_floats: int, *, copied: bool, in_order: bool
) -> dict[str, float]:
    """The peak memory of `from_transitions`, by part.

    Args:
      n_transitions: N.
      n_rows: number of (state, action) pairs.
      n_floats: columns of rewards, probabilities and their bounds.
      copied: whether the columns are copied, to sort them or to leave some transitions out.
      in_order: whether they are already sorted.
    """
    ids = 12.0 if copied else 4.0  # three columns of int32, or only the successors
    columns = ids + (8.0 * n_floats if copied else 0.0)
    checks_of_rows = ROW_BYTES * n_rows
    order = 0.0 if in_order else 8.0 * n_transitions
    return {
        f"columns of {n_transitions} transitions": columns * n_transitions,
        f"{'checks' if order < checks_of_rows else 'sorting'} of {n_rows} rows": max(checks_of_rows, order),
    }


def _order(s: IntArray, a: IntArray, t: IntArray) -> tuple[bool, int | None]:
    """Whether transitions are sorted by (state, action, successor), and if so their number of rows."""
    n_rows = 1
    for first in range(0, len(s) - 1, BLOCK):
        ds, da, dt = (np.diff(x[first : first + BLOCK + 1].astype(np.int64)) for x in (s, a, t))
        if not ((ds > 0) | ((ds == 0) & ((da > 0) | ((da == 0) & (dt >= 0))))).all():
            return False, None
        n_rows += int(np.count_nonzero((ds != 0) | (da != 0)))
    return True, n_rows


def _merge_repeats(
    s: IntArray, a: IntArray, t: IntArray, p: FloatArray, r: FloatArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
    """Adds probabilities of repeated successors and averages their rewards by probability."""
    repeat = (s[1:] == s[:-1]) & (a[1:] == a[:-1]) & (t[1:] == t[:-1])
    if not repeat.any():
        return s, a, t, p, r
    n_kept = len(s) - int(np.count_nonzero(repeat))
    memory.require(
        {f"{len(s)} transitions, of which {len(s) - n_kept} repeat others": 24.0 * len(s) + 64.0 * n_kept},
        "Use fewer transitions, or add up the probabilities of repeated ones first.",
    )
    first = np.flatnonzero(np.concatenate(([True], ~repeat)))
    total = np.add.reduceat(p, first)
    weighted = np.add.reduceat(p * r, first)
    same = np.maximum.reduceat(r, first) == np.minimum.reduceat(r, first)
    count = np.diff(np.append(first, len(p)))
    plain = np.add.reduceat(r / np.repeat(count, count), first)
    mean = np.where(total > 0.0, weighted / np.where(total > 0.0, total, 1.0), plain)
    return s[first], a[first], t[first], total, np.where(same, r[first], mean)


def _first(initial: ArrayLike, n_states: int) -> FloatArray:
    """A distribution of the first state, all of it on one state if that is given."""
    if np.ndim(initial) == 0:
        state = checks.int_array("initial", np.atleast_1d(np.asarray(initial)), 0, n_states, "state")
        initial = np.zeros(n_states)
        initial[state] = 1.0
    return checks.distribution("initial", initial, n_states)
