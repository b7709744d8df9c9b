"""sensitivity: the price and the gain of robustness as the uncertainty set grows.

Let pi_N be optimal for the model P, and pi_r against the worst model of a set U_r of radius r around it:

    price(r)      J(pi_N; P) - J(pi_r; P)                                 >= 0    if the model is right
    insurance(r)  min_{Q in U_r} J(pi_r; Q) - min_{Q in U_r} J(pi_N; Q)   >= 0    in the worst case

J is the expected discounted reward from the start. All numbers are certified lower bounds, with an error of at most
`gap`. Several policies are often optimal against nature; pi_r keeps the action of pi_N wherever that is still optimal,
so that it changes only where it must.
"""

from __future__ import annotations

import os
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
from urbe.progress import progress as shown_progress
from urbe.solvers.methods import PartialPolicyIteration
from urbe.solvers.solution import Solution
from urbe.solvers.solve import evaluate_policy, solve
from urbe.types import FloatArray, IntArray

TOLERANCE = 1e-8
"""Wanted gap of every solve, in units of the largest value."""

TIE = 1e-6
"""Actions whose values differ by less count as equally good, in the same units."""


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """Values and policies over n radii.

    Attributes:
      model: the model.
      set_name: name of the set.
      start: `(S,)` distribution of the first state.
      radius: `(n,)` increasing.
      robust_worst, nominal_worst: `(n,)` worst-case value from the start of the robust policy, and of the nominal one.
      robust_nominal, nominal_nominal: `(n,)` their values if the model is right.
      actions: `(n, S)` the robust policies, -1 where terminal.
      nominal_actions: `(S,)` the nominal policy.
      gap: widest certified interval of any of them.
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
    def changed(self) -> IntArray:
        """`(n,)` number of states in which the robust policy differs from the nominal one."""
        count: IntArray = np.count_nonzero(self.actions != self.nominal_actions, axis=1)
        return count

    def changes(self) -> list[tuple[float, int, int]]:
        """Radius, state and new action wherever the robust policy changes as the radius grows."""
        before = np.vstack((self.nominal_actions, self.actions[:-1]))
        return [
            (float(self.radius[k]), int(s), int(self.actions[k, s])) for k, s in np.argwhere(self.actions != before)
        ]

    def table(self) -> dict[str, np.ndarray]:
        """One row for each radius, as columns."""
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

    def to_frame(self) -> Any:
        """`table()` as a pandas frame; needs `pip install urbe[frames]`."""
        return extras.data_frame(self.table())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes `table()` atomically as CSV or Parquet, according to the suffix."""
        from urbe.mdp.formats.tables import write_table

        write_table(path, self.table())

    def plot(self) -> Any:
        """Draws values and policies over the radius. Needs `pip install urbe[plots]`."""
        return extras.drawings().draw_sensitivity(self)

    def __repr__(self) -> str:
        ends = f"{self.radius[0]:g} to {self.radius[-1]:g}"
        return f"Sensitivity({self.set_name}, {len(self.radius)} radii from {ends}, {self.model.n_states} states)"

    def __str__(self) -> str:
        head = ("radius", "worst case:", "robust", "nominal", "model right:", "robust", "nominal", "states changed")
        wide = [max(len(name), 10) for name in head]
        lines = [
            f"{self.set_name} around the model; values from {start_text(self.model, self.start)}",
            "  ".join(name.rjust(width) for name, width in zip(head, wide, strict=True)),
        ]
        for k, radius in enumerate(self.radius):
            numbers = (self.robust_worst, self.nominal_worst, self.robust_nominal, self.nominal_nominal)
            a, b, c, d = (f"{column[k]:.6g}" for column in numbers)
            cells = (f"{radius:g}", "", a, b, "", c, d, str(self.changed[k]))
            lines.append("  ".join(cell.rjust(width) for cell, width in zip(cells, wide, strict=True)))
        return "\n".join((*lines, *self._sentences()))

    def _sentences(self) -> list[str]:
        labels, changes = self.model.labels, self.changes()
        if not changes:
            return ["The nominal policy is robust at every radius."]
        lines = [
            f"From radius {radius:g} on, state {labels.state(s)}: {labels.action(a)}." for radius, s, a in changes[:10]
        ]
        return lines + ([f"... and {len(changes) - 10} more changes."] if len(changes) > 10 else [])


def sensitivity(
    mdp: MDP,
    make_set: Callable[[float], AmbiguitySet],
    radii: ArrayLike,
    *,
    start: Any = None,
    threads: int = 1,
    progress: bool = False,
) -> Sensitivity:
    """Computes values of the nominal and the robust policy over growing radii, and where the policy changes.

    Args:
      mdp: the model.
      make_set: a function from a radius to a set, such as `urbe.L1Ball`; optimal policies must be deterministic.
      radii: `(n,)` increasing, at least one.
      start: a state by label or id, `{state: probability}`, or `(S,)` probabilities; by default the model's own first
        states, or else all that are not terminal, with equal weight.
      threads: as for `solve`.
      progress: show progress on standard error.

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
        raise ValueError(f"radii is {checks.listing(radius.tolist())}, expected at least one, and increasing numbers.")
    first = start_weights(mdp) if start is None else first_states(mdp, "start", start)
    scale = max(1.0, float(np.abs(mdp.rows.reward).max(initial=0.0)))
    method = PartialPolicyIteration(tolerance=TOLERANCE * scale)
    nominal = solve(mdp, None, method, threads=threads)
    right = float(first @ evaluate_policy(mdp, nominal.policy, None, method, threads=threads).lower)
    columns: list[tuple[float, float, float]] = []
    actions, gap = [], nominal.gap
    with shown_progress("radii", len(radius), unit="radii", shown=progress) as show:
        for k, r in enumerate(radius.tolist()):
            nature = make_set(r)
            best = solve(mdp, nature, method, threads=threads)
            if best.policy.ndim > 1:
                raise ValueError(
                    f"make_set({r:g}) is {nature}, against which policies are randomised; expected a set rectangular "
                    "in state and action."
                )
            policy, worst = least_changed(mdp, nature, best, nominal.policy, method, TIE * scale)
            other = evaluate_policy(mdp, nominal.policy, nature, method, threads=threads)
            mine = evaluate_policy(mdp, policy, None, method, threads=threads)
            columns.append((float(first @ worst.lower), float(first @ other.lower), float(first @ mine.lower)))
            actions.append(policy)
            gap = max(gap, other.gap, mine.gap, float((best.upper - worst.lower).max(initial=0.0)))
            show(k + 1)
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
    method: PartialPolicyIteration | None = None,
    tie: float = TIE,
) -> tuple[IntArray | FloatArray, Solution]:
    """Finds a policy optimal against nature that differs from `reference` only where it must, and its worst-case value.

    Args:
      mdp: the model.
      nature: the ambiguity set.
      best: the robust solution.
      reference: `(S,)` actions to keep where they are within `tie` of the best.
      method: how to evaluate; by default to `TOLERANCE`.
      tie: actions whose values differ by less count as equally good; the gap of the policy is held to it, too.
    """
    how = PartialPolicyIteration(tolerance=TOLERANCE) if method is None else method
    states = np.arange(mdp.n_states)
    keep = mdp.terminal | (best.q[states, reference] >= best.q.max(axis=1) - tie)
    policy = np.where(keep, reference, best.policy)
    worst = evaluate_policy(mdp, policy, nature, how)
    if (best.upper - worst.lower).max() > tie:  # near-ties may add up along the way
        return best.policy, evaluate_policy(mdp, best.policy, nature, how)
    return policy, worst
