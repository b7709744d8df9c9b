"""Distributionally robust sets: the kernel is random, and nature picks its distribution, given confidence in sets.

A row's kernel p is drawn at every visit, from a law of which only this is known,

    Pr(p in U_i) >= lambda_i,      U_1 in U_2 in ... in U_n,      lambda_n = 1                       [XuMannor2012].

The worst distribution puts lambda_i - lambda_{i-1} on the worst kernel of U_i, so that

    Q(s, a) = sum_i (lambda_i - lambda_{i-1}) min_{p in U_i(s, a)} sum_s' p(s') [r(s, a, s') + gamma V(s')].

Its value lies between those of the largest and the smallest set. A single set is the set itself; the model with weight
lambda and all distributions with the rest are `Contamination(1 - lambda)`.

Kernels are drawn independently at every visit. A kernel drawn once per episode is a different problem if states are
visited twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.ambiguity.entries import entry_keys, on_entries
from urbe.ambiguity.evidence import (
    LARGEST_EXCESS,
    Extended,
    RowBound,
    RowEvidence,
    attained,
    expectation,
    from_above,
    from_below,
    unproven,
)
from urbe.ambiguity.nature import Nature, PlainNature, RowMemory, WorstCase, keep, recalled, width
from urbe.ambiguity.operator import ROUNDING
from urbe.ambiguity.rectangular import RectangularSet, check_rectangular
from urbe.ambiguity.row_nature import values_under
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows, index_type
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers

LEAST_PROBED = 0.5
"""The least discount for probing a set for the probability of a state."""

MOST_DIRECTIONS = 256
"""Maximum number of directions in which a kernel is compared with the set."""

LARGE = 1e3
"""Size of values in such a direction, as a multiple of the rewards."""


@dataclass(frozen=True, eq=False)
class NestedSets(RectangularSet):
    """Nature picks the distribution of the kernel, within sets of growing confidence.

    Args:
      sets: U_1 in U_2 in ... in U_n, each a set that chooses every row independently. The caller must ensure that each
        contains the previous one: this is not checked, and the lower bound holds in any case.
      confidence: `(n,)` lambda, increasing, the last one 1: the least probability that the kernel is in each set.

    >>> import numpy as np, urbe
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], discount=0.5)
    >>> likely = urbe.NestedSets((urbe.Exact(), urbe.L1Ball(0.4)), [0.75, 1.0])
    >>> likely.bind(mdp).values(np.array([0.0, 2.0]))  # 0.75 * 0.5 + 0.25 * 0.3 in the first state
    array([0.45, 1.45])
    """

    sets: Sequence[RectangularSet]
    confidence: ArrayLike

    def __post_init__(self) -> None:
        checks.sequence("sets", self.sets, "a list of at least one set, such as (Exact(), L1Ball(0.5))")
        for k, each in enumerate(self.sets):
            check_rectangular(f"sets[{k}]", each)
        self.weights()

    def weights(self) -> FloatArray:
        """Returns `(n,)` lambda_i - lambda_{i-1}."""
        level = checks.float_array("confidence", self.confidence, ndim=1)
        if len(level) != len(self.sets):
            raise ValueError(f"confidence has {len(level)} entries, expected one for each of {len(self.sets)} sets.")
        before = np.concatenate(([0.0], level[:-1]))
        if (level < before).any():
            at = int(np.argmax(level < before))
            raise ValueError(
                f"confidence[{at}] is {level[at]:g}, expected at least {before[at]:g}: a larger set has at least the "
                "same probability."
            )
        if level[-1] != 1.0:
            raise ValueError(f"confidence[{len(level) - 1}] is {level[-1]:g}, expected 1: the last set is certain.")
        return level - before

    def bind(self, mdp: MDP) -> NestedNature:
        weights = self.weights()
        counted = weights > 0.0
        used = [each for each, counts in zip(self.sets, counted, strict=True) if counts]
        natures = tuple(each.bind(mdp) for each in used)
        probed = replace(mdp, discount=1.0) if mdp.discount < LEAST_PROBED else mdp
        probes = tuple(each.choices().bind(probed) for each in used)
        return NestedNature(mdp.rows, mdp.discount, natures, probes, weights[counted])

    def choices(self) -> RectangularSet:
        return NestedSets(tuple(each.choices() for each in self.sets), self.confidence)


@dataclass(frozen=True, eq=False)
class NestedNature(PlainNature):
    """Nature that mixes its answers to several sets with given weights.

    Args:
      rows: the model's rows.
      discount: the model's discount.
      natures: one for each set.
      probes: natures that minimise over all choices of the sets, to test which kernels these contain; with discount 1
        if the model's is below `LEAST_PROBED`.
      weights: `(n,)` positive, summing to one.
    """

    rows: Rows
    discount: float
    natures: tuple[Nature, ...]
    probes: tuple[Nature, ...]
    weights: FloatArray

    @property
    def accuracy(self) -> float:
        return max(nature.accuracy for nature in self.natures) + (2 * len(self.weights) + 4) * ROUNDING

    @property
    def singleton(self) -> bool:
        return all(nature.singleton for nature in self.natures)

    @cached_property
    def _columns(self) -> list[int]:
        """Where the memory of each nature begins, and the number of columns."""
        return [0, *itertools.accumulate(width(nature.fresh()) for nature in self.natures)]

    def fresh(self) -> RowMemory:
        return np.zeros((self.rows.n_rows, self._columns[-1]))

    def values(
        self,
        v: FloatArray,
        shift: float = 0.0,
        workers: Workers = SERIAL,
        out: FloatArray | None = None,
        memory: RowMemory = None,
    ) -> FloatArray:
        out = np.empty(self.rows.n_rows) if out is None else out
        out[:] = 0.0
        every = np.arange(self.rows.n_rows)
        for weight, nature, first in zip(self.weights, self.natures, self._columns[:-1], strict=True):
            known = recalled(nature, memory, every, first)
            out += weight * nature.values(v, shift, workers, None, known)
            keep(memory, known, every, first)
        return out

    def worst_case(self, v: FloatArray, memory: RowMemory = None) -> WorstCase:
        every = np.arange(self.rows.n_rows)
        found = [
            nature.worst_case(v, recalled(nature, memory, every, first))
            for nature, first in zip(self.natures, self._columns[:-1], strict=True)
        ]
        value, sensitivity = np.zeros(self.rows.n_rows), np.zeros(self.rows.n_entries)
        for weight, nature, worst in zip(self.weights, self.natures, found, strict=True):
            value += weight * worst.value
            sensitivity += weight * on_entries(self.rows, replace(nature.rows, probability=worst.sensitivity))[0]
        return WorstCase(value, self._mixed([worst.rows for worst in found]), sensitivity)

    def take(self, chosen: IntArray) -> NestedNature:
        natures, probes = (tuple(x.take(chosen) for x in each) for each in (self.natures, self.probes))
        return replace(self, rows=self.rows.take(chosen), natures=natures, probes=probes)

    def excess(self, kernel: Rows) -> FloatArray:
        """`(R,)` how far a kernel is below the least value over the mixtures, in the worst of some directions.

        A point outside a convex set violates its support function in some direction. The tested directions are the
        probabilities of single states, from both sides: probabilities that are too large or too small are detected,
        other departures may not be. Certificates do not rely on it but on members of the sets (`evidence`).
        """
        total = kernel.row_sums(kernel.probability)
        worst = np.maximum(np.abs(total - 1.0) - 1e-12, -kernel.row_sums(np.minimum(kernel.probability, 0.0)))
        kernel = self._rewarded(kernel)
        far = LARGE * (1.0 + self.rows.largest_reward)
        discount = 1.0 if self.discount < LEAST_PROBED else self.discount
        listed = np.unique(kernel.successor)
        for state in listed[:: 1 + 2 * len(listed) // MOST_DIRECTIONS]:
            for side in (far, -far):
                v = np.zeros(self.rows.n_states)
                v[state] = side / discount
                least = sum(weight * each.dual_bound(v) for weight, each in zip(self.weights, self.probes, strict=True))
                short = least - values_under(kernel, discount * v)
                worst = np.maximum(worst, short / far)
        return np.maximum(worst, 0.0)

    def dual_bound(self, v: FloatArray) -> FloatArray:
        return np.asarray(self._mean([from_below(nature) for nature in self.natures])(v), dtype=np.float64)

    def evidence(self, kernel: Rows | None) -> RowEvidence:
        """Bounds Q by duality or by members of the sets, and by the kernel itself."""
        n_rows, known = self.rows.n_rows, kernel is not None
        below, above = (self._mean([side(each, known) for each in self.natures]) for side in (from_below, from_above))
        if kernel is None:
            return RowEvidence(above, below, np.full(n_rows, -np.inf), np.zeros(n_rows, dtype=np.bool_))
        answer = expectation(self.rows, self.discount, kernel)
        above, below = attained(above, answer, 1.0), attained(below, answer, -1.0)
        excess = self.excess(kernel)
        outside = ~(excess <= LARGEST_EXCESS)
        return RowEvidence(unproven(n_rows, 1.0) if outside.any() else above, below, excess, outside)

    def _mean(self, parts: list[RowBound]) -> RowBound:
        def mean(v: FloatArray) -> Extended:
            out = np.zeros(self.rows.n_rows, dtype=np.longdouble)
            for weight, part in zip(self.weights, parts, strict=True):
                out += np.longdouble(weight) * part(v)
            return out

        return mean

    def _mixed(self, kernels: list[Rows]) -> Rows:
        """Mixes the kernels' rows by the weights, with the model's rewards."""
        total: Any = sum(weight * rows.matrix() for weight, rows in zip(self.weights, kernels, strict=True))
        total = total.tocsr()
        total.sort_indices()
        start = total.indptr.astype(index_type(total.nnz))
        return self._rewarded(Rows(self.rows.n_states, start, total.indices.astype(np.int32), total.data, total.data))

    def _rewarded(self, kernel: Rows) -> Rows:
        """Replaces a kernel's rewards by the model's."""
        if not self.rows.rewards_successors:
            return replace(kernel, reward=self.rows.reward)
        keys = entry_keys(self.rows)
        at = np.minimum(np.searchsorted(keys, entry_keys(kernel)), len(keys) - 1)
        return replace(kernel, reward=self.rows.reward[at])
