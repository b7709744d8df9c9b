"""A belief about dynamics that jump: run lengths are filtered, and counts of past regimes fade with the evidence.

Each row (or the whole model at once) is drawn afresh from the prior with probability `hazard` after every episode. The
hypotheses are "the present regime began at episode e", each with the counts c_e seen since [AdamsMacKay2007]:

    a successor j is seen    w_e  <-  w_e (alpha0_j + c_ej) / (sum_j alpha0_j + c_ej),  then normalised;  c_ej += 1
    an episode ends          w_e  <-  (1 - hazard) w_e,   and a new hypothesis without counts gets weight hazard

which is exact Bayesian filtering if at most `hypotheses` are needed; otherwise, the least likely one is dropped. The
mixture over e is approximated by one Dirichlet with the same mean and the same total variance:

    p_j = sum_e w_e p_ej,     N + 1 = sum_j p_j (1 - p_j) / sum_j Var p_j,     alpha = N p.

A row that is not visited for long slowly returns to its prior, since its regime may have ended unobserved. A row with a
single successor cannot change; it keeps plain counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks
from urbe.posteriors.beliefs import Visit
from urbe.posteriors.dirichlet import Posterior


@dataclass(frozen=True)
class ChangePoint:
    """Dynamics that jump with a fixed hazard; see the module.

    Args:
      hazard: probability of a jump after an episode, in [0, 1]; a number, or one per replicate. Zero is `Stationary`.
      together: whether all rows jump at the same time (so that evidence from one informs the others), or separately.
      hypotheses: number of beginnings to keep.
    """

    hazard: ArrayLike
    together: bool = False
    hypotheses: int = 20

    def start(self, prior: Posterior, replicates: int, layers: int = 1) -> RunLengths:
        hazard = checks.per_replicate("hazard", self.hazard, replicates, 0.0, 1.0)
        n = checks.whole_number("hypotheses", self.hypotheses, 3)
        return RunLengths(prior, replicates, layers, hazard, n, together=self.together)


class RunLengths:
    """Beliefs over the time since each row jumped.

    Rows of all layers are numbered consecutively. A group jumps together: a single row, or all of them.
    """

    def __init__(
        self, prior: Posterior, replicates: int, layers: int, hazard: np.ndarray, hypotheses: int, *, together: bool
    ) -> None:
        rows = prior.model.rows
        if (prior.concentration <= 0.0).any():
            row = int(rows.entry_row[np.argmin(prior.concentration)])
            raise ValueError(
                f"The prior of {prior.model.row_name(row)} is 0 on one of the successors it lists, expected more: "
                "after a change they may all be new. Leave out successors that are impossible."
            )
        self.prior = prior
        self.alpha = np.tile(prior.concentration, (replicates, layers, 1))
        self.total = np.tile(prior.total, (replicates, layers, 1))
        self.touched = np.ones((replicates, rows.n_rows), dtype=np.bool_)
        self._hazard = hazard
        n = layers * rows.n_rows
        # the last start is dropped from all layers but the last: row k of layer l is l R + k
        starts = [rows.entry_start[:-1].astype(np.int64) + layer * rows.n_entries for layer in range(layers)]
        self._start = np.append(np.concatenate(starts), layers * rows.n_entries)
        self._group_start = np.array([0, n]) if together else np.arange(n + 1)
        self._weight = np.zeros((replicates, len(self._group_start) - 1, hypotheses))
        self._weight[:, :, 0] = 1.0
        self._seen = np.zeros_like(self._weight)
        self._counts = np.zeros((replicates, hypotheses, layers * rows.n_entries))
        self._prior = np.tile(prior.concentration, layers)

    def observe(self, visit: Visit) -> None:
        rows = self.prior.model.rows
        layer = np.minimum(visit.step, self.alpha.shape[1] - 1)
        _observe(
            visit.replicate, layer * rows.n_rows + visit.row, layer * rows.n_entries + visit.entry, self._start,
            self._group_start, self._prior, self._weight, self._seen, self._counts, *self._flat(),
        )  # fmt: skip
        if len(self._group_start) == 2:
            self.touched[visit.replicate] = True
        self.touched[visit.replicate, visit.row] = True

    def end_episode(self) -> None:
        _tick(
            self._hazard, self._start, self._group_start, self._prior, self._weight, self._seen, self._counts,
            *self._flat(),
        )  # fmt: skip
        self.touched[self._hazard > 0.0] = True

    def state(self) -> dict[str, Any]:
        return {name.lstrip("_"): getattr(self, name).copy() for name in _KEPT}

    def load(self, state: Mapping[str, Any]) -> None:
        for name in _KEPT:
            setattr(self, name, np.array(state[name.lstrip("_")]))

    def _flat(self) -> tuple[np.ndarray, np.ndarray]:
        n = len(self.alpha)
        return self.alpha.reshape(n, -1), self.total.reshape(n, -1)


_KEPT = ("alpha", "total", "touched", "_weight", "_seen", "_counts")


@njit(cache=True, nogil=True)
def _observe(replicate, row, entry, start, group_start, prior, weight, seen, counts, alpha, total):
    together = len(group_start) == 2
    for k in range(len(replicate)):
        b = replicate[k]
        g = 0 if together else row[k]
        first, last = start[row[k]], start[row[k] + 1]
        if last - first == 1:
            alpha[b, first] += 1.0
            total[b, row[k]] += 1.0
            continue
        mass = 0.0
        for e in range(weight.shape[2]):
            if weight[b, g, e] > 0.0:
                n = 0.0
                for j in range(first, last):
                    n += prior[j] + counts[b, e, j]
                weight[b, g, e] *= (prior[entry[k]] + counts[b, e, entry[k]]) / n
                counts[b, e, entry[k]] += 1.0
                seen[b, g, e] += 1.0
                mass += weight[b, g, e]
        for e in range(weight.shape[2]):
            weight[b, g, e] /= mass
        for other in range(group_start[g], group_start[g + 1]):
            _match(b, g, other, start, prior, weight, counts, alpha, total)


@njit(cache=True, nogil=True)
def _tick(hazard, start, group_start, prior, weight, seen, counts, alpha, total):
    for b in range(len(hazard)):
        if hazard[b] == 0.0:
            continue
        for g in range(weight.shape[1]):
            if start[group_start[g + 1]] - start[group_start[g]] == group_start[g + 1] - group_start[g]:
                continue  # only single successors
            fresh, least = -1, 0
            for e in range(weight.shape[2]):
                if weight[b, g, e] > 0.0 and seen[b, g, e] == 0.0:
                    fresh = e
                if weight[b, g, e] < weight[b, g, least]:
                    least = e
            if fresh < 0:  # a free slot, or that of the least likely hypothesis
                fresh = least
                weight[b, g, fresh], seen[b, g, fresh] = 0.0, 0.0
                counts[b, fresh, start[group_start[g]] : start[group_start[g + 1]]] = 0.0
            mass = 0.0
            for e in range(weight.shape[2]):
                mass += weight[b, g, e]
            for e in range(weight.shape[2]):
                weight[b, g, e] *= (1.0 - hazard[b]) / mass
            weight[b, g, fresh] += hazard[b]
            for row in range(group_start[g], group_start[g + 1]):
                _match(b, g, row, start, prior, weight, counts, alpha, total)


@njit(cache=True, nogil=True)
def _match(b, g, row, start, prior, weight, counts, alpha, total):
    """Writes the Dirichlet that has the mixture's mean and total variance on one row."""
    first, last = start[row], start[row + 1]
    if last - first == 1:
        return
    alpha[b, first:last] = 0.0
    size, second = 0.0, 0.0
    for e in range(weight.shape[2]):
        w = weight[b, g, e]
        if w > 0.0:
            n = 0.0
            for j in range(first, last):
                n += prior[j] + counts[b, e, j]
            size += w * n
            for j in range(first, last):
                p = (prior[j] + counts[b, e, j]) / n
                alpha[b, j] += w * p
                second += w * (p * p + p * (1.0 - p) / (n + 1.0))
    spread, square = 0.0, 0.0
    for j in range(first, last):
        spread += alpha[b, j] * (1.0 - alpha[b, j])
        square += alpha[b, j] ** 2
    if spread > 1e-14 and second - square > 1e-14 * spread:
        size = spread / (second - square) - 1.0
    total[b, row] = size
    for j in range(first, last):
        alpha[b, j] *= size
