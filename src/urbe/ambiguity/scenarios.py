"""Finitely many models: nature weights the scenarios p_1 .. p_K of each row.

With x_k = p_k . z the value of a row under scenario k,

    Scenarios                Q = min_k x_k
    ValueAtRisk              Q = smallest x with P(x_k <= x) >= level
    ConditionalValueAtRisk   Q = mean of the lowest `level` of the x_k
                               = max_tau  tau - E[max(tau - x_k, 0)] / level

where P and E are over the scenarios, for instance draws from a posterior. All three are monotone and shift with z. The
value at risk is not concave, so no convex set of kernels gives it, but the certified bounds hold for it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.ambiguity.entries import entry_keys, widened_rows
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.scenario_nature import CLOSEST, QUANTILE, TAIL, ScenarioNature, ScenarioRule
from urbe.mdp.model import MDP, check_same_pairs
from urbe.mdp.rows import Rows
from urbe.types import FloatArray

Kernels = ArrayLike | Sequence[MDP]


@dataclass(frozen=True, eq=False)
class Scenarios(RectangularSet):
    """U(s, a) = {p_1(s, a), .., p_K(s, a)}: finitely many models, of which nature takes the worst row by row.

    The model's own kernel is a member only if it is one of `kernels`; rewards are always the model's own.

    Args:
      kernels: `(K, S, A, S)`, `(E, K)` one column per scenario on the entries of `mdp.rows`, or a list of models
        with the same (state, action) pairs, of which only the transition probabilities are used.

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.scenarios import Scenarios
    >>> p = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    >>> mdp = urbe.MDP.from_dense(p, [[0.0], [1.0]], discount=0.5)
    >>> Scenarios([p, p[::-1]]).bind(mdp).values(np.array([0.0, 2.0]))
    array([0.5, 1.5])
    """

    kernels: Any

    def bind(self, mdp: MDP) -> ScenarioNature:
        return _bind(CLOSEST, mdp, self.kernels, 0.0, None)


@dataclass(frozen=True, eq=False)
class ValueAtRisk(RectangularSet):
    """Q(s, a) = the lower `level`-quantile of p_k . z over scenarios: smallest x with P(p_k . z <= x) >= level.

    Level 0 is the lowest scenario and level 1 the highest. Nature's kernel is the scenario at the quantile.

    Args:
      kernels: see `Scenarios`.
      level: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, in [0, 1]; compared up to 1e-12, so that sums of
        weights such as 8 x 0.1 reach 0.8.
      weights: `(K,)` probabilities of the scenarios, equal by default; scenarios of weight zero do not count.
    """

    kernels: Any
    level: Any
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        checks.numbers("level", self.level)

    def bind(self, mdp: MDP) -> ScenarioNature:
        return _bind(QUANTILE, mdp, self.kernels, self.level, self.weights)

    def choices(self) -> RectangularSet:
        """All scenarios: the quantile may be attained at any of them."""
        return Scenarios(self.kernels)


@dataclass(frozen=True, eq=False)
class ConditionalValueAtRisk(RectangularSet):
    """Q(s, a) = the mean of the lowest `level` of p_k . z over scenarios.

    It is the worst case over the mixtures sum_k y_k p_k with 0 <= y_k <= weight_k / level and sum y = 1. Level 1 is
    the mean of the scenarios and level 0 the lowest one.

    Args:
      kernels: see `Scenarios`.
      level: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, in [0, 1].
      weights: `(K,)` probabilities of the scenarios, equal by default; scenarios of weight zero do not count.
    """

    kernels: Any
    level: Any
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        checks.numbers("level", self.level)

    def bind(self, mdp: MDP) -> ScenarioNature:
        return _bind(TAIL, mdp, self.kernels, self.level, self.weights)


def _bind(rule: ScenarioRule, mdp: MDP, kernels: Kernels, level: Any, weights: ArrayLike | None) -> ScenarioNature:
    rows, members = _members(mdp, kernels)
    members = _distributions(mdp, rows, members, checks.sum_tolerance(kernels))
    n_scenarios = members.shape[1]
    levels = mdp.per_row("level", level)
    checks.row_range("level", levels, 0.0, 1.0, mdp.row_name)
    weight = (
        np.full(n_scenarios, 1.0 / n_scenarios)
        if weights is None
        else checks.distribution("weights", weights, n_scenarios)
    )
    counted = weight > 0.0
    members = np.ascontiguousarray(members if counted.all() else members[:, counted])
    return ScenarioNature(rule, rows, mdp.discount, members, levels, np.ascontiguousarray(weight[counted]))


def _members(mdp: MDP, kernels: Kernels) -> tuple[Rows, FloatArray]:
    """Returns rows that list every successor of every scenario, and `(E, K)` the scenarios' probabilities on them."""
    if isinstance(kernels, Sequence) and len(kernels) and all(isinstance(each, MDP) for each in kernels):
        return _members_of_models(mdp, kernels)  # type: ignore[arg-type]
    array = checks.float_array("kernels", kernels)  # type: ignore[arg-type]
    dense = (mdp.n_states, mdp.n_actions, mdp.n_states)
    if array.ndim == 2 and array.shape[0] == mdp.rows.n_entries and array.shape[1]:
        _require_memory(len(array), mdp.n_rows, array.shape[1])
        return mdp.rows, array
    if array.ndim == 4 and array.shape[1:] == dense and len(array):
        listed = np.zeros((mdp.n_rows, mdp.n_states), dtype=bool)
        for scenario in array:
            listed |= scenario[mdp.row_state, mdp.action] != 0.0
        row, successor = np.nonzero(listed)
        rows = widened_rows(mdp, row.astype(np.int64) * mdp.n_states + successor)
        _require_memory(2 * rows.n_entries, rows.n_rows, len(array))
        at = rows.entry_row
        return rows, array[:, mdp.row_state[at], mdp.action[at], rows.successor].T
    raise ValueError(
        f"kernels has shape {array.shape}, expected at least one scenario, as an array "
        f"(scenarios, {', '.join(map(str, dense))}), as ({mdp.rows.n_entries}, scenarios) "
        "on the entries of mdp.rows, or as a list of models."
    )


def _members_of_models(mdp: MDP, models: Sequence[MDP]) -> tuple[Rows, FloatArray]:
    for k, model in enumerate(models):
        check_same_pairs(f"kernels[{k}]", model, "the model", mdp)
    rows = widened_rows(mdp, np.concatenate([entry_keys(model.rows) for model in models]))
    keys = entry_keys(rows)
    _require_memory(2 * rows.n_entries, rows.n_rows, len(models))
    members = np.zeros((rows.n_entries, len(models)))
    for k, model in enumerate(models):
        members[np.searchsorted(keys, entry_keys(model.rows)), k] = model.rows.probability
    return rows, members


def _require_memory(n_entries: int, n_rows: int, n_scenarios: int) -> None:
    """Raises if scenarios on `n_entries` successors, and the sums of their rows, do not fit into memory."""
    memory.require(
        {f"{n_scenarios} scenarios on {n_entries} successors": n_scenarios * (8.0 * n_entries + 17.0 * n_rows)},
        "Use fewer scenarios, or give them as (entries, scenarios) on the entries of mdp.rows.",
    )


def _distributions(mdp: MDP, rows: Rows, members: FloatArray, tolerance: float) -> FloatArray:
    """Normalises the rows of `members`; raises naming the first scenario and row that is not a distribution."""
    if not rows.n_rows:
        return members
    total = np.add.reduceat(members, rows.entry_start[:-1], axis=0)  # (R, K)
    least = np.minimum.reduceat(members, rows.entry_start[:-1], axis=0)
    wrong = (np.abs(total - 1.0) > tolerance) | (least < 0.0)
    if wrong.any():
        row, k = np.argwhere(wrong)[0]
        raise ValueError(
            f"In scenario {k}, the probabilities of {mdp.row_name(row)} sum to {total[row, k]:.12g}, the smallest is "
            f"{least[row, k]:g}, expected a distribution. "
            f"{checks.some(int(wrong.sum()), wrong.size, 'row', 'rows')} wrong over all scenarios."
        )
    scaled: FloatArray = np.repeat(total, rows.length, axis=0)
    return np.divide(members, scaled, out=scaled)
