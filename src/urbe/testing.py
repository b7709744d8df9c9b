"""Contracts that extensions can be held to.

`check_ambiguity_set` asks of a set all that solvers and certificates rely on. It raises AssertionError with the law
that is broken, the model, the row and the numbers; it says nothing when all laws hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NoReturn, cast

import numpy as np

from urbe.ambiguity.base import AmbiguitySet, Nature, WorstCase
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray
from urbe.workers import Workers

DIFFERENCE_STEP = 1e-6
DIFFERENCE_TOLERANCE = 1e-4
"""Relative to max |z|: a difference quotient of step 1e-6 carries 1e-10 of rounding and some curvature."""


def check_ambiguity_set(
    ambiguity_set: AmbiguitySet | Callable[[MDP], AmbiguitySet],
    mdp: MDP | None = None,
    *,
    oracle: Callable[[FloatArray, FloatArray], float] | None = None,
    seed: int = 0,
    convex: bool = True,
    tight: bool = True,
    center_moves: bool = True,
    optimistic: bool = False,
    tolerance: float = 1e-9,
    oracle_tolerance: float = 1e-6,
) -> None:
    """Holds a set to the contract of `urbe.ambiguity.base`, on one model or on several small ones.

    Args:
      ambiguity_set: the set, or a function from a model to the set where it needs the model's shape.
      mdp: the model to check on; by default those of `small_models`: ties, single successors, one state, terminal
        states, negative rewards, rewards r(s, a, s').
      oracle: `(p, z) -> float`, the value of one row by other means. p and z are `(S,)`, over all states; p is zero
        where the model has no transition.
      seed: of the values the laws are tried at.
      convex: whether Q is a minimum over a set of kernels, hence concave in v, and `excess` tells all others.
      tight: whether `dual_bound` attains the value.
      center_moves: whether to compare the sensitivity with difference quotients of the set bound to nearby models.
      optimistic: for sets whose nature maximises: `dual_bound` is an upper bound, and Q convex in v.
      tolerance: of all comparisons, as a multiple of 1 + max |z|.
      oracle_tolerance: the same for the oracle; linear programs are good to about 1e-6.

    Raises:
      AssertionError: with the law that is broken and where.

    >>> from urbe.ambiguity.exact import Exact
    >>> check_ambiguity_set(Exact(), oracle=lambda p, z: p @ z)
    """
    rng = np.random.default_rng(seed)
    models = small_models(seed) if mdp is None else {"the given model": mdp}
    compared, differed = False, False
    for name, model in models.items():
        a_set = ambiguity_set(model) if callable(ambiguity_set) else ambiguity_set
        case = _Case(name, model, a_set, a_set.bind(model), tolerance, -1.0 if optimistic else 1.0)
        _check_form(case)
        points = _points(model, rng)
        for v in points:
            _check_inputs_untouched(case, v)
            _check_monotone(case, v, rng)
            _check_shift(case, v)
            worst = _check_worst_case(case, v)
            _check_dual(case, v, tight)
            _check_take(case, v, rng)
            _check_threads(case, v)
            if convex:
                _check_excess_sees_outside(case, v)
            if oracle is not None:
                _check_oracle(case, v, oracle, oracle_tolerance)
            if center_moves and (model.rows.length > 1).any():
                compared = True
                differed = _check_sensitivity(case, v, worst, rng) or differed
        _check_memory(case, points)
        if convex:
            _check_concave(case, points)
    if compared and not differed:
        raise AssertionError(
            "sensitivity: every row has a kink at every value tried, so nothing was compared. Try another seed, "
            "or center_moves=False for sets that are nowhere smooth."
        )


def small_models(seed: int = 0) -> dict[str, MDP]:
    """Models on which sets go wrong, by name; probabilities are at least 0.02 where they are not zero."""
    rng = np.random.default_rng(seed)

    def random_rows(n_states: int, n_actions: int, zeros: float) -> FloatArray:
        raw = rng.uniform(0.1, 1.0, size=(n_states, n_actions, n_states))
        raw *= rng.uniform(size=raw.shape) >= zeros
        raw[..., 0] += raw.sum(axis=-1) == 0.0
        return np.asarray(raw / raw.sum(axis=-1, keepdims=True))

    ring = np.roll(np.eye(4), 1, axis=1)[:, None]
    reward = rng.normal(size=(4, 2))
    return {
        "sparse rows": MDP.from_dense(random_rows(5, 2, 0.5), rng.normal(size=(5, 2)), discount=0.9),
        "negative rewards": MDP.from_dense(random_rows(4, 2, 0.0), -10.0 - reward, discount=0.5),
        "ties": MDP.from_dense(np.full((4, 1, 4), 0.25), 1.0, discount=1.0),
        "single successors": MDP.from_dense(ring, [0.0, 1.0, 0.0, -1.0], discount=0.9),
        "one state": MDP.from_dense([[[1.0]]], [[2.0]], discount=0.9),
        "terminal states": MDP.from_dense(random_rows(4, 2, 0.2), reward, discount=0.95, terminal=[0, 3]),
        "rewards of successors": MDP.from_dense(
            random_rows(3, 2, 0.3), rng.normal(size=(3, 2, 3)), discount=0.8, keep_zeros=True
        ),
    }


@dataclass(frozen=True)
class _Case:
    """A set bound to a model; `side` is 1 for a nature that minimises and -1 for one that maximises."""

    name: str
    mdp: MDP
    set: AmbiguitySet
    nature: Nature
    tolerance: float
    side: float

    def scale(self, v: FloatArray) -> float:
        return float(1.0 + self.mdp.rows.largest_reward + self.mdp.discount * np.abs(v).max())

    def rewards(self) -> FloatArray:
        """`(R, S)` the reward of each row and successor; NaN where the model has none."""
        rows = self.mdp.rows
        if rows.entry_reward is None:
            return np.repeat(rows.reward[:, None], self.mdp.n_states, axis=1)
        table = np.full((rows.n_rows, self.mdp.n_states), np.nan)
        table[rows.entry_row, rows.successor] = rows.entry_reward
        return table

    def fail(self, law: str, row: int | None, told: str) -> NoReturn:
        where = "" if row is None else f", {self.mdp.row_name(row)}"
        raise AssertionError(f"{law}: on {self.name}{where}: {told}")

    def equal(self, law: str, found: FloatArray, expected: FloatArray, tolerance: float) -> None:
        if found.shape != expected.shape:
            self.fail(law, None, f"found shape {found.shape}, expected {expected.shape}.")
        self.at_most(law, np.abs(found - expected), tolerance, found, expected)

    def at_most(self, law: str, amount: FloatArray, tolerance: float, found: FloatArray, expected: FloatArray) -> None:
        wrong = ~(amount <= tolerance)
        if wrong.any():
            row = int(np.argmax(wrong))
            told = f"found {found[row]:.17g}, expected {expected[row]:.17g}, off by {amount[row]:.3g}"
            self.fail(law, row, f"{told} where {tolerance:.3g} is allowed.")


class _SmallBlocks:
    """Workers that run single rows on two threads, whatever the size of the model, last row first."""

    def run(self, entry_start: IntArray, task: Callable[[int, int], object]) -> None:
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(task, row, row + 1) for row in reversed(range(len(entry_start) - 1))]:
                done.result()


def _points(mdp: MDP, rng: np.random.Generator) -> list[FloatArray]:
    n = mdp.n_states
    return [
        rng.normal(size=n),
        rng.integers(-1, 2, size=n).astype(np.float64),
        np.zeros(n),
        1000.0 * rng.normal(size=n) - 2000.0,
    ]


def _check_form(case: _Case) -> None:
    nature, mdp = case.nature, case.mdp
    if nature.discount != mdp.discount:
        case.fail("discount", None, f"found {nature.discount}, expected the model's {mdp.discount}.")
    if nature.rows.n_rows != mdp.n_rows:
        case.fail("rows", None, f"found {nature.rows.n_rows} rows, expected the model's {mdp.n_rows}.")
    if not 0.0 <= nature.accuracy <= 1e-3:
        case.fail("accuracy", None, f"found {nature.accuracy}, expected a small number of at least 0.")


def _check_inputs_untouched(case: _Case, v: FloatArray) -> None:
    rows = case.mdp.rows
    inputs = {"v": v, "mdp.rows.probability": rows.probability, "mdp.rows.reward": rows.reward}
    before = {name: array.copy() for name, array in inputs.items()}
    q = case.nature.values(v)
    case.nature.worst_case(v)
    case.nature.dual_bound(v)
    for name, array in inputs.items():
        if not np.array_equal(array, before[name]):
            case.fail("inputs stay untouched", None, f"{name} was changed in place.")
    if not isinstance(q, np.ndarray) or q.shape != (case.mdp.n_rows,) or q.dtype != np.float64:
        told = f"{q.dtype} of shape {q.shape}" if isinstance(q, np.ndarray) else type(q).__name__
        case.fail("values has one number per row", None, f"found {told}, expected float64 of ({case.mdp.n_rows},).")
    if not np.isfinite(q).all():
        case.fail("values are finite", int(np.argmin(np.isfinite(q))), f"found {q[~np.isfinite(q)][0]}.")


def _check_monotone(case: _Case, v: FloatArray, rng: np.random.Generator) -> None:
    q = case.nature.values(v)
    scale = case.scale(v)
    for bump in [*np.eye(len(v)), rng.uniform(size=len(v))]:
        higher = case.nature.values(v + scale * bump)
        case.at_most("Q is monotone in v", q - higher, 2.0 * case.tolerance * scale, higher, q)


def _check_shift(case: _Case, v: FloatArray) -> None:
    q, scale = case.nature.values(v), case.scale(v)
    for c in (3.7, -0.6 * scale):
        expected, tolerance = q + case.mdp.discount * c, case.tolerance * (scale + abs(c))
        case.equal("Q(v + c) = Q(v) + discount c", case.nature.values(v + c), expected, tolerance)
        case.equal("values(v, shift=c) = values(v + c)", case.nature.values(v, c), expected, tolerance)


def _check_worst_case(case: _Case, v: FloatArray) -> WorstCase:
    worst = case.nature.worst_case(v)
    kernel, tolerance = worst.rows, case.tolerance * case.scale(v)
    case.equal("worst_case(v).value = values(v)", worst.value, case.nature.values(v), tolerance)
    _check_distributions(case, kernel)
    table = case.rewards()
    rewards = table[kernel.entry_row, kernel.successor]
    own = np.repeat(kernel.row_reward, kernel.length) if kernel.entry_reward is None else kernel.entry_reward
    if not np.array_equal(own, rewards):
        at = int(np.argmin(own == rewards))
        told = f"successor {kernel.successor[at]} has {own[at]}, expected {rewards[at]}."
        case.fail("worst_case(v).rows carries the model's rewards", int(kernel.entry_row[at]), told)
    attained = kernel.row_sums(kernel.probability * (rewards + case.mdp.discount * v[kernel.successor]))
    case.equal("the worst-case kernel attains the value", attained, worst.value, tolerance)
    excess = case.nature.excess(kernel)
    zeros = np.zeros_like(excess)
    case.at_most("the worst-case kernel lies in the set", excess, 10.0 * case.tolerance, excess, zeros)
    if worst.sensitivity.shape != (case.nature.rows.n_entries,):
        found = worst.sensitivity.shape
        case.fail("sensitivity has one number per entry of nature.rows", None, f"found shape {found}.")
    return worst


def _check_distributions(case: _Case, kernel: Rows) -> None:
    law = "the worst-case kernel's rows are distributions"
    if kernel.n_rows != case.mdp.n_rows or (kernel.length < 1).any():
        case.fail(law, None, f"found {kernel.n_rows} rows of at least {kernel.length.min()} successors.")
    inner = np.diff(kernel.entry_row) == 0
    ordered = bool((np.diff(kernel.successor)[inner] > 0).all())
    if not ordered or kernel.successor.min() < 0 or kernel.successor.max() >= case.mdp.n_states:
        case.fail(law, None, "successors do not increase within each row, or are no states.")
    if kernel.probability.min() < -case.tolerance:
        at = int(np.argmin(kernel.probability))
        case.fail(law, int(kernel.entry_row[at]), f"a probability is {kernel.probability[at]:.17g}.")
    mass = kernel.row_sums(kernel.probability)
    case.equal(law, mass, np.ones_like(mass), case.tolerance)


def _check_dual(case: _Case, v: FloatArray, tight: bool) -> None:
    q, bound = case.nature.values(v), case.nature.dual_bound(v)
    scale = case.scale(v)
    # the bound is exact up to the model's own rows not summing to one exactly, the value up to its accuracy
    rounding = 2.0 * (case.nature.accuracy + case.mdp.rows.mass_error + 2.0**-50) * scale
    side = "above" if case.side < 0.0 else "below"
    case.at_most(f"dual_bound bounds Q from {side}", case.side * (bound - q), rounding, bound, q)
    if tight:
        case.at_most("dual_bound is tight", case.side * (q - bound), case.tolerance * scale, bound, q)


def _check_take(case: _Case, v: FloatArray, rng: np.random.Generator) -> None:
    n_rows = case.mdp.n_rows
    chosen = rng.permutation(n_rows)[: max(1, n_rows - 1)]
    part = case.nature.take(chosen)
    tolerance = case.tolerance * case.scale(v)
    law = "take(rows) answers like the full sweep"

    def compare(what: str, found: FloatArray, full: FloatArray) -> None:
        if found.shape != (len(chosen),):
            case.fail(law, None, f"{what} has shape {found.shape}, expected ({len(chosen)},).")
        spread = np.abs(found - full[chosen])
        if not (spread <= tolerance).all():
            at = int(np.argmax(~(spread <= tolerance)))
            case.fail(law, int(chosen[at]), f"{what} is {found[at]:.17g}, expected {full[chosen][at]:.17g}.")

    worst, whole = part.worst_case(v), case.nature.worst_case(v)
    compare("values", part.values(v), case.nature.values(v))
    compare("worst_case value", worst.value, whole.value)
    compare("dual_bound", part.dual_bound(v), case.nature.dual_bound(v))
    compare("excess", part.excess(whole.rows.take(chosen)), case.nature.excess(whole.rows))


def _check_threads(case: _Case, v: FloatArray) -> None:
    threaded = case.nature.values(v, 0.0, cast(Workers, _SmallBlocks()))
    tolerance = case.tolerance * case.scale(v)
    case.equal("values do not depend on the workers", threaded, case.nature.values(v), tolerance)


def _check_memory(case: _Case, points: list[FloatArray]) -> None:
    """Sweeps may remember where they ended, but the answer must not depend on it."""
    for v in points:
        fresh = case.set.bind(case.mdp).values(v)
        tolerance = case.tolerance * case.scale(v)
        case.equal("values do not depend on earlier sweeps", case.nature.values(v), fresh, tolerance)


def _check_excess_sees_outside(case: _Case, v: FloatArray) -> None:
    """A point mass of a value below the minimum over the set cannot be in the set."""
    n_states, n_rows = case.mdp.n_states, case.mdp.n_rows
    z = case.rewards() + case.mdp.discount * v
    lowest = np.nanargmin(case.side * z, axis=1)
    reached = z[np.arange(n_rows), lowest]
    q = case.nature.values(v)
    reward = np.zeros(n_rows)  # plays no part
    points = Rows(n_states, np.arange(n_rows + 1), lowest.astype(np.int32), np.ones(n_rows), reward)
    outside = case.side * (q - reached) > 1e-3 * case.scale(v)
    excess = case.nature.excess(points)
    missed = outside & ~(excess > 0.0)
    if missed.any():
        row = int(np.argmax(missed))
        told = f"point mass of value {reached[row]:.6g}, beyond Q = {q[row]:.6g}, has excess {excess[row]:.3g}."
        case.fail("excess is positive outside the set", row, told)


def _check_oracle(
    case: _Case, v: FloatArray, oracle: Callable[[FloatArray, FloatArray], float], tolerance: float
) -> None:
    p = case.mdp.matrix().toarray()
    z = case.rewards() + case.mdp.discount * v
    expected = np.array([oracle(p[row], z[row]) for row in range(case.mdp.n_rows)])
    case.equal("values agree with the oracle", case.nature.values(v), expected, tolerance * case.scale(v))


def _check_sensitivity(case: _Case, v: FloatArray, worst: WorstCase, rng: np.random.Generator) -> bool:
    """Whether some row is smooth at v, after comparing all that are."""
    rows, scale = case.mdp.rows, case.scale(v)
    tilt = rng.uniform(-1.0, 1.0, size=rows.n_entries)
    direction = rows.probability * (tilt - rows.row_sums(rows.probability * tilt)[rows.entry_row])
    step = DIFFERENCE_STEP  # p + step * direction stays a distribution: p is tilted, not shifted

    def moved(by: float) -> FloatArray:
        centre = Rows(rows.n_states, rows.entry_start, rows.successor, rows.probability + by * direction, rows.reward)
        return case.set.bind(replace(case.mdp, rows=centre)).values(v)

    here = case.nature.values(v)
    ahead, behind = (moved(step) - here) / step, (here - moved(-step)) / step
    tolerance = DIFFERENCE_TOLERANCE * scale
    smooth = (np.abs(ahead - behind) <= tolerance) & (rows.length > 1)
    on_rows = np.zeros((rows.n_rows, rows.n_states))
    on_rows[rows.entry_row, rows.successor] = direction
    inner = case.nature.rows
    told = inner.row_sums(worst.sensitivity * on_rows[inner.entry_row, inner.successor])
    off = np.where(smooth, np.abs(told - (ahead + behind) / 2.0), 0.0)
    case.at_most("sensitivity is the derivative by the centre", off, tolerance, told, (ahead + behind) / 2.0)
    return bool(smooth.any())


def _check_concave(case: _Case, points: list[FloatArray]) -> None:
    law = "Q is convex in v" if case.side < 0.0 else "Q is concave in v"
    for u, v in _pairs(points):
        between = case.nature.values(0.5 * (u + v))
        mean = 0.5 * (case.nature.values(u) + case.nature.values(v))
        tolerance = case.tolerance * max(case.scale(u), case.scale(v))
        case.at_most(law, case.side * (mean - between), tolerance, between, mean)


def _pairs(points: list[FloatArray]) -> Iterator[tuple[FloatArray, FloatArray]]:
    for i, u in enumerate(points):
        for v in points[i + 1 :]:
            yield u, v
