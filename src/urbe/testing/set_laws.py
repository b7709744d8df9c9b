"""The laws of an ambiguity set bound to a model, one function each; `check_ambiguity_set` tests all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NoReturn, cast

import numpy as np

from urbe.ambiguity.nature import Nature, WorstCase
from urbe.ambiguity.rectangular import RectangularSet
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.solvers.certificate import certify
from urbe.solvers.solve import solve
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers

DIFFERENCE_STEP = 1e-6
DIFFERENCE_TOLERANCE = 1e-4
"""Relative to max |z|: a difference quotient of step 1e-6 carries 1e-10 of rounding and some curvature."""


@dataclass(frozen=True)
class Case:
    """A set bound to a model; `side` is 1 for a nature that minimises and -1 for one that maximises."""

    name: str
    mdp: MDP
    set: RectangularSet
    nature: Nature
    tolerance: float
    side: float

    def scale(self, v: FloatArray) -> float:
        """1 + a bound on max |z|; tolerances are multiples of it."""
        return float(1.0 + self.mdp.rows.largest_reward + self.mdp.discount * np.abs(v).max())

    def rewards(self) -> FloatArray:
        """`(R, S)` the reward of each row and successor; NaN where the model has none."""
        rows = self.mdp.rows
        if rows.entry_reward is None:
            return np.repeat(rows.reward[:, None], self.mdp.n_states, axis=1)
        table = np.full((rows.n_rows, self.mdp.n_states), np.nan)
        table[rows.entry_row, rows.successor] = rows.entry_reward
        return table

    def fail(self, law: str, row: int | None, problem: str) -> NoReturn:
        """Raises, naming the law, the model and the row."""
        where = "" if row is None else f", {self.mdp.row_name(row)}"
        raise AssertionError(f"{law}: on {self.name}{where}: {problem}")

    def equal(self, law: str, found: FloatArray, expected: FloatArray, tolerance: float) -> None:
        """Fails if the number of a row is not as expected."""
        if found.shape != expected.shape:
            self.fail(law, None, f"found shape {found.shape}, expected {expected.shape}.")
        self.at_most(law, np.abs(found - expected), tolerance, found, expected)

    def at_most(self, law: str, amount: FloatArray, tolerance: float, found: FloatArray, expected: FloatArray) -> None:
        """Fails if the `amount` of a row exceeds `tolerance`."""
        wrong = ~(amount <= tolerance)
        if wrong.any():
            row = int(np.argmax(wrong))
            problem = f"found {found[row]:.17g}, expected {expected[row]:.17g}, off by {amount[row]:.3g}"
            self.fail(law, row, f"{problem} where {tolerance:.3g} is allowed.")


class _SmallBlocks:
    """Workers that run single rows on two threads, last row first, for models of any size."""

    def run(self, entry_start: IntArray, task: Callable[[int, int], object]) -> None:
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(task, row, row + 1) for row in reversed(range(len(entry_start) - 1))]:
                done.result()


def trial_values(mdp: MDP, rng: np.random.Generator) -> list[FloatArray]:
    """Returns values at which to test the laws: ordinary, tied, equal, and large negative ones."""
    n = mdp.n_states
    return [
        rng.normal(size=n),
        rng.integers(-1, 2, size=n).astype(np.float64),
        np.zeros(n),
        1000.0 * rng.normal(size=n) - 2000.0,
    ]


def check_form(case: Case) -> None:
    """Checks nature's discount, rows and accuracy."""
    nature, mdp = case.nature, case.mdp
    if nature.discount != mdp.discount:
        case.fail("discount", None, f"found {nature.discount}, expected the model's {mdp.discount}.")
    if nature.rows.n_rows != mdp.n_rows:
        case.fail("rows", None, f"found {nature.rows.n_rows} rows, expected the model's {mdp.n_rows}.")
    if not 0.0 <= nature.accuracy <= 1e-3:
        case.fail("accuracy", None, f"found {nature.accuracy}, expected a small number of at least 0.")


def check_inputs_untouched(case: Case, v: FloatArray) -> None:
    """Checks that nothing is changed in place, and that values are one finite number per row."""
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
        problem = f"{q.dtype} of shape {q.shape}" if isinstance(q, np.ndarray) else type(q).__name__
        case.fail("values has one number per row", None, f"found {problem}, expected float64 of ({case.mdp.n_rows},).")
    if not np.isfinite(q).all():
        case.fail("values are finite", int(np.argmin(np.isfinite(q))), f"found {q[~np.isfinite(q)][0]}.")


def check_monotone(case: Case, v: FloatArray, rng: np.random.Generator) -> None:
    """Checks that Q does not decrease if v increases, in one state or in all."""
    q = case.nature.values(v)
    scale = case.scale(v)
    for bump in [*np.eye(len(v)), rng.uniform(size=len(v))]:
        higher = case.nature.values(v + scale * bump)
        case.at_most("Q is monotone in v", q - higher, 2.0 * case.tolerance * scale, higher, q)


def check_shift(case: Case, v: FloatArray) -> None:
    """Checks that Q(v + c) = Q(v) + discount c, with c in v or passed as `shift`."""
    q, scale = case.nature.values(v), case.scale(v)
    for c in (3.7, -0.6 * scale):
        expected, tolerance = q + case.mdp.discount * c, case.tolerance * (scale + abs(c))
        case.equal("Q(v + c) = Q(v) + discount c", case.nature.values(v + c), expected, tolerance)
        case.equal("values(v, shift=c) = values(v + c)", case.nature.values(v, c), expected, tolerance)


def check_worst_case(case: Case, v: FloatArray) -> WorstCase:
    """Checks that the worst-case kernel lies in the set, has the model's rewards and attains the value."""
    worst = case.nature.worst_case(v)
    kernel, tolerance = worst.rows, case.tolerance * case.scale(v)
    case.equal("worst_case(v).value = values(v)", worst.value, case.nature.values(v), tolerance)
    _check_distributions(case, kernel)
    table = case.rewards()
    rewards = table[kernel.entry_row, kernel.successor]
    own = kernel.reward_per_entry
    if not np.array_equal(own, rewards):
        at = int(np.argmin(own == rewards))
        problem = f"successor {kernel.successor[at]} has {own[at]}, expected {rewards[at]}."
        case.fail("worst_case(v).rows carries the model's rewards", int(kernel.entry_row[at]), problem)
    attained = kernel.row_sums(kernel.probability * (rewards + case.mdp.discount * v[kernel.successor]))
    case.equal("the worst-case kernel attains the value", attained, worst.value, tolerance)
    excess = case.nature.excess(kernel)
    zeros = np.zeros_like(excess)
    case.at_most("the worst-case kernel lies in the set", excess, 10.0 * case.tolerance, excess, zeros)
    if worst.sensitivity.shape != (case.nature.rows.n_entries,):
        found = worst.sensitivity.shape
        case.fail("sensitivity has one number per entry of nature.rows", None, f"found shape {found}.")
    return worst


def _check_distributions(case: Case, kernel: Rows) -> None:
    law = "the worst-case kernel's rows are distributions"
    if kernel.n_rows != case.mdp.n_rows or (kernel.length < 1).any():
        case.fail(law, None, f"found {kernel.n_rows} rows of at least {kernel.length.min()} successors.")
    inner = np.diff(kernel.entry_row) == 0
    ordered = bool((np.diff(kernel.successor)[inner] > 0).all())
    if not ordered or kernel.successor.min() < 0 or kernel.successor.max() >= case.mdp.n_states:
        case.fail(law, None, "successors do not increase within each row, or are not states.")
    if kernel.probability.min() < -case.tolerance:
        at = int(np.argmin(kernel.probability))
        case.fail(law, int(kernel.entry_row[at]), f"a probability is {kernel.probability[at]:.17g}.")
    mass = kernel.row_sums(kernel.probability)
    case.equal(law, mass, np.ones_like(mass), case.tolerance)


def check_dual(case: Case, v: FloatArray, tight: bool) -> None:
    """Checks that `dual_bound` is on the right side of Q and, if `tight`, equals it."""
    q, bound = case.nature.values(v), case.nature.dual_bound(v)
    scale = case.scale(v)
    # the bound is exact if the model's rows sum to one exactly; the value is exact up to its accuracy
    rounding = 2.0 * (case.nature.accuracy + case.mdp.rows.mass_error + 2.0**-50) * scale
    side = "above" if case.side < 0.0 else "below"
    case.at_most(f"dual_bound bounds Q from {side}", case.side * (bound - q), rounding, bound, q)
    if tight:
        case.at_most("dual_bound is tight", case.side * (q - bound), case.tolerance * scale, bound, q)


def check_take(case: Case, v: FloatArray, rng: np.random.Generator) -> None:
    """Checks that nature's answers on some rows, in another order, are those of the full sweep."""
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


def check_threads(case: Case, v: FloatArray) -> None:
    """Checks that values do not depend on blocks and threads."""
    threaded = case.nature.values(v, 0.0, cast(Workers, _SmallBlocks()))
    tolerance = case.tolerance * case.scale(v)
    case.equal("values do not depend on the workers", threaded, case.nature.values(v), tolerance)


def check_output(case: Case, v: FloatArray) -> None:
    """Checks that values are written into a given array, whatever its content."""
    out = np.full(case.nature.rows.n_rows, np.nan)
    returned = case.nature.values(v, 0.0, SERIAL, out)
    tolerance = case.tolerance * case.scale(v)
    for found in (out, returned):
        case.equal("values(v, out=x) writes x and returns it", found, case.nature.values(v), tolerance)


def check_memory(case: Case, points: list[FloatArray]) -> None:
    """Checks that values do not depend on the memory of earlier sweeps."""
    memory = case.nature.fresh()
    for v in points:
        fresh, again = case.set.bind(case.mdp).values(v), case.nature.values(v, memory=memory)
        tolerance = case.tolerance * case.scale(v)
        case.equal("values do not depend on earlier sweeps", again, fresh, tolerance)


def check_operator(case: Case, points: list[FloatArray]) -> None:
    """Checks that the set has an operator, that its moments match a sweep, and that its solution can be certified."""
    if not callable(getattr(case.set, "operator", None)):
        case.fail("a set has an operator", None, "found none; inherit from urbe.ambiguity.RectangularSet.")
    operator = case.set.operator(case.mdp)
    for v in points:
        tolerance = case.tolerance * case.scale(v)
        found = operator.moments(v, np.ones(len(v)))
        case.equal("moments have the values of a sweep", found.q, operator.improve(v).q, tolerance)
        # sweeps stop when the value no longer changes: half the digits of a minimiser
        case.equal("moments carry a constant as it is", found.carried, np.ones(len(found.q)), 1e-6)
    if case.mdp.discount < 1.0:
        certificate = certify(solve(case.mdp, case.set))
        if not certificate.holds:
            case.fail("solutions can be certified", None, str(certificate))


def check_excess_sees_outside(case: Case, v: FloatArray) -> None:
    """Checks that `excess` is positive for point masses whose value is below the minimum over the set."""
    n_states, n_rows = case.mdp.n_states, case.mdp.n_rows
    z = case.rewards() + case.mdp.discount * v
    lowest = np.nanargmin(case.side * z, axis=1)
    reached = z[np.arange(n_rows), lowest]
    q = case.nature.values(v)
    reward = np.zeros(n_rows)  # irrelevant
    points = Rows(n_states, np.arange(n_rows + 1), lowest.astype(np.int32), np.ones(n_rows), reward)
    outside = case.side * (q - reached) > 1e-3 * case.scale(v)
    excess = case.nature.excess(points)
    missed = outside & ~(excess > 0.0)
    if missed.any():
        row = int(np.argmax(missed))
        problem = f"point mass of value {reached[row]:.6g}, beyond Q = {q[row]:.6g}, has excess {excess[row]:.3g}."
        case.fail("excess is positive outside the set", row, problem)


def check_oracle(
    case: Case, v: FloatArray, oracle: Callable[[FloatArray, FloatArray], float], tolerance: float
) -> None:
    """Checks that values agree with the oracle, row by row."""
    p = case.mdp.matrix().toarray()
    z = case.rewards() + case.mdp.discount * v
    expected = np.array([oracle(p[row], z[row]) for row in range(case.mdp.n_rows)])
    case.equal("values agree with the oracle", case.nature.values(v), expected, tolerance * case.scale(v))


def check_sensitivity(case: Case, v: FloatArray, worst: WorstCase, rng: np.random.Generator) -> bool:
    """Compares the sensitivity of smooth rows with difference quotients; returns whether some row is smooth at v."""
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
    problem = inner.row_sums(worst.sensitivity * on_rows[inner.entry_row, inner.successor])
    off = np.where(smooth, np.abs(problem - (ahead + behind) / 2.0), 0.0)
    case.at_most("sensitivity is the derivative by the centre", off, tolerance, problem, (ahead + behind) / 2.0)
    return bool(smooth.any())


def check_concave(case: Case, points: list[FloatArray]) -> None:
    """Checks that Q is concave as a minimum of linear functions, or convex as a maximum."""
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
