"""Compute the price and the insurance of robustness as the radius of the set grows.

Let pi_N be optimal for the model P, and pi_r optimal against the worst model of a set U_r of radius r around it:

    price(r)      J(pi_N; P) - J(pi_r; P)                                 >= 0    if the model is right
    insurance(r)  min_{Q in U_r} J(pi_r; Q) - min_{Q in U_r} J(pi_N; Q)   >= 0    in the worst case

J is the expected discounted reward from the start. All numbers are certified lower bounds, with an error of at most
`gap`. If several policies are optimal against nature, pi_r keeps the action of pi_N wherever this is still optimal, so
that it changes only where it must.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, extras
from urbe.ambiguity.operator import AmbiguitySet
from urbe.mdp.evaluate import start_weights
from urbe.mdp.model import MDP, check_model
from urbe.mdp.start import first_states, start_text
from urbe.progress import stages
from urbe.solvers.methods import BackwardInduction, PartialPolicyIteration
from urbe.solvers.solution import Solution
from urbe.solvers.solve import evaluate_policy, solve
from urbe.tables import TableResult, aligned
from urbe.types import FloatArray, IntArray

TOLERANCE = 1e-8
"""Tolerance of every solve, in units of the largest reward."""

TIE = 1e-6
"""Actions whose values differ by less are ties, in the same units."""


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(TableResult):
    """Values and policies over n radii.

    Attributes:
      model: the model.
      set_name: name of the set.
      start: `(S,)` distribution of the first state.
      radius: `(n,)` increasing.
      robust_worst, nominal_worst: `(n,)` worst-case values of the robust and the nominal policy from the start.
      robust_nominal, nominal_nominal: `(n,)` their values if the model is right.
      actions: `(n, S)` the robust policies, -1 where terminal; `(n, H, S)` over a horizon of H steps.
      nominal_actions: `(S,)` the nominal policy; `(H, S)` over a horizon.
      gap: width of the widest certified interval of these values.
    """

    model: MDP
    set_name: str
    start: FloatArray
    radius: FloatArray
    robust_worst: FloatArray
    nominal_worst: FloatArray
    robust_nominal: FloatArray
    nominal_nominal: FloatArray
    actions: IntArray
    nominal_actions: IntArray
    gap: float

    @property
    def price(self) -> FloatArray:
        """`(n,)` nominal value given up by the robust policy."""
        return self.nominal_nominal - self.robust_nominal

    @property
    def insurance(self) -> FloatArray:
        """`(n,)` worst-case value gained by the robust policy."""
        return self.robust_worst - self.nominal_worst

    @property
    def horizon(self) -> int | None:
        """The number of steps; None without a horizon."""
        return None if self.nominal_actions.ndim == 1 else len(self.nominal_actions)

    @property
    def changed(self) -> IntArray:
        """`(n,)` number of states in which the robust policy differs from the nominal one, at some step."""
        differ = self.actions != self.nominal_actions
        count: IntArray = np.count_nonzero(differ if self.horizon is None else differ.any(axis=1), axis=1)
        return count

    @property
    def first_actions(self) -> IntArray:
        """`(n + 1, S)` the nominal policy and the robust policies, over a horizon those of the first step."""
        every = np.concatenate((self.nominal_actions[None], self.actions))
        return every if self.horizon is None else every[:, 0]

    def changes(self) -> list[tuple[float, int, int]]:
        """Lists radius, state and new action for each change as the radius grows, over a horizon at the first step."""
        before, after = self.first_actions[:-1], self.first_actions[1:]
        return [(float(self.radius[k]), int(s), int(after[k, s])) for k, s in np.argwhere(after != before)]

    def table(self) -> dict[str, np.ndarray]:
        """Returns columns with one row per radius."""
        return {
            "radius": self.radius,
            "robust_worst": self.robust_worst,
            "nominal_worst": self.nominal_worst,
            "insurance": self.insurance,
            "robust_nominal": self.robust_nominal,
            "nominal_nominal": self.nominal_nominal,
            "price": self.price,
            "states_changed": self.changed,
        }

    def plot(self) -> Any:
        """Draws values and policies over the radius; needs `pip install urbe[plots]`."""
        return extras.drawings().draw_sensitivity(self)

    def __repr__(self) -> str:
        ends = f"{self.radius[0]:g} to {self.radius[-1]:g}"
        return f"Sensitivity({self.set_name}, {len(self.radius)} radii from {ends}, {self.model.n_states} states)"

    def __str__(self) -> str:
        head = ("radius", "worst case:", "robust", "nominal", "model right:", "robust", "nominal", "states changed")
        rows = [head]
        for k, radius in enumerate(self.radius):
            numbers = (self.robust_worst, self.nominal_worst, self.robust_nominal, self.nominal_nominal)
            a, b, c, d = (f"{column[k]:.6g}" for column in numbers)
            rows.append((f"{radius:g}", "", a, b, "", c, d, str(self.changed[k])))
        title = f"{self.set_name} around the model; values from {start_text(self.model, self.start)}"
        return "\n".join((title, *aligned(rows, least=[10] * len(head)), *self._sentences()))

    def _sentences(self) -> list[str]:
        labels, changes = self.model.labels, self.changes()
        if not self.changed.any():
            return ["The nominal policy is robust at every radius."]
        when = [] if self.horizon is None else [f"Actions at the first of {self.horizon} steps:"]
        if not changes:
            return ["At the first step the policy never changes."]
        lines = when + [
            f"From radius {radius:g} on, state {labels.state(s)}: {labels.action(a)}." for radius, s, a in changes[:10]
        ]
        return lines + ([f"... and {len(changes) - 10} more changes."] if len(changes) > 10 else [])


def sensitivity(
    mdp: MDP,
    make_set: Callable[[float], AmbiguitySet],
    radii: ArrayLike,
    *,
    horizon: int | None = None,
    start: Any = None,
    threads: int = 1,
    progress: bool = False,
) -> Sensitivity:
    """Compares nominal and robust policies over growing radii: worst-case and nominal values, and changed actions.

    Args:
      mdp: the model.
      make_set: maps a radius to a set, such as `urbe.L1Ball`; its optimal policies must be deterministic.
      radii: `(n,)` increasing, at least one.
      horizon: number of decisions; None for infinitely many.
      start: a state by label or id, `{state: probability}`, or `(S,)` probabilities; by default the model's initial
        distribution or, without one, uniform over the non-terminal states.
      threads: as for `solve`.
      progress: whether to show progress on standard error.

    >>> import urbe
    >>> found = sensitivity(urbe.library.riverswim(6, discount=0.95), urbe.L1Ball, [0.0, 0.5, 1.0])
    >>> found.changed
    array([0, 2, 5])
    >>> bool((found.insurance >= -found.gap).all() and (found.price >= -found.gap).all())
    True
    """
    check_model("mdp", mdp)
    if not callable(make_set):
        raise TypeError(f"make_set is {checks.shown(make_set)}, expected a function of the radius such as urbe.L1Ball.")
    radius = checks.float_array("radii", radii, ndim=1)
    if not len(radius) or (np.diff(radius) <= 0.0).any():
        found = checks.listing(radius.tolist()) or "empty"
        raise ValueError(f"radii is {found}, expected at least one, and increasing numbers.")
    first = start_weights(mdp) if start is None else first_states(mdp, "start", start)
    scale = max(1.0, float(np.abs(mdp.rows.reward).max(initial=0.0)))
    method: PartialPolicyIteration | BackwardInduction = PartialPolicyIteration(tolerance=TOLERANCE * scale)
    if horizon is not None:
        method = BackwardInduction(horizon)

    def from_start(solution: Solution) -> float:
        return float(first @ np.atleast_2d(solution.lower)[0])

    nominal = solve(mdp, None, method, threads=threads)
    right = from_start(evaluate_policy(mdp, nominal.policy, None, method, threads=threads))
    columns: list[tuple[float, float, float]] = []
    actions, gap = [], nominal.gap
    with stages("sensitivity", shown=progress) as report:
        for k, r in enumerate(radius.tolist()):
            nature = make_set(r)
            best = solve(mdp, nature, method, threads=threads)
            if best.policy.ndim > nominal.policy.ndim:
                raise ValueError(
                    f"make_set({r:g}) is {nature}, against which policies are randomised; expected a set rectangular "
                    "in state and action."
                )
            policy, worst = least_changed(mdp, nature, best, nominal.policy, method, TIE * scale)
            other = evaluate_policy(mdp, nominal.policy, nature, method, threads=threads)
            mine = evaluate_policy(mdp, policy, None, method, threads=threads)
            columns.append((from_start(worst), from_start(other), from_start(mine)))
            actions.append(policy)
            gap = max(gap, other.gap, mine.gap, float((best.upper - worst.lower).max(initial=0.0)))
            report("radii", k + 1, len(radius))
    robust_worst, nominal_worst, robust_nominal = np.array(columns).T
    return Sensitivity(
        model=mdp,
        set_name=getattr(make_set, "__name__", type(nature).__name__),
        start=first,
        radius=radius,
        robust_worst=robust_worst,
        nominal_worst=nominal_worst,
        robust_nominal=robust_nominal,
        nominal_nominal=np.full(len(radius), right),
        actions=np.array(actions),
        nominal_actions=np.asarray(nominal.policy),
        gap=gap,
    )


def least_changed(
    mdp: MDP,
    nature: AmbiguitySet,
    best: Solution,
    reference: IntArray | FloatArray,
    method: PartialPolicyIteration | BackwardInduction | None = None,
    tie: float = TIE,
) -> tuple[IntArray | FloatArray, Solution]:
    """Finds an optimal policy against nature that differs from `reference` only where it must; evaluates it.

    Args:
      mdp: the model.
      nature: the ambiguity set.
      best: the robust solution.
      reference: `(S,)` actions to keep where they are within `tie` of the best; `(H, S)` over a horizon.
      method: method of evaluation; by default to `TOLERANCE`.
      tie: actions whose values differ by less are ties; the policy's gap must not exceed it either.
    """
    how = PartialPolicyIteration(tolerance=TOLERANCE) if method is None else method
    chosen = np.take_along_axis(best.q, np.maximum(reference, 0)[..., None].astype(np.int64), axis=-1)[..., 0]
    keep = mdp.terminal | (chosen >= best.q.max(axis=-1) - tie)
    policy = np.where(keep, reference, best.policy)
    worst = evaluate_policy(mdp, policy, nature, how)
    if (best.upper - worst.lower).max() > tie:  # near-ties may add up along the way
        return best.policy, evaluate_policy(mdp, best.policy, nature, how)
    return policy, worst
