"""Optimism: the best kernel of a set instead of the worst.

max_{q in U} q . z  =  - min_{q in U} q . (-z):      negate, delegate, negate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from urbe.ambiguity.evidence import RowEvidence
from urbe.ambiguity.moments import RowMoments
from urbe.ambiguity.nature import Nature, RowMemory, WorstCase
from urbe.ambiguity.operator import AmbiguitySet, check_set
from urbe.ambiguity.rectangular import RectangularSet, check_rectangular
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import Buffer, FloatArray, IntArray
from urbe.workers import SERIAL, Workers


@dataclass(frozen=True, eq=False)
class Optimistic(RectangularSet):
    """The kernels of `set`, chosen in favour of the agent: Q = max_{q in U} q . z.

    Optimism in the face of uncertainty (UCRL2) is a solve with `Optimistic(L1Ball(...))`. `ValueAtRisk(level)` and
    `ConditionalValueAtRisk(level)` become upper tails: the same level, counted from the highest scenario.

    Args:
      set: any ambiguity set.

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.l1 import L1Ball
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> Optimistic(L1Ball(0.4)).bind(mdp).values(np.array([0.0, 2.0]))
    array([0.7, 2. ])
    """

    set: RectangularSet

    def __post_init__(self) -> None:
        check_rectangular(
            "set",
            self.set,
            "for factors write FactorSet(..., Optimistic(L1Ball(0.5))); if actions share a budget, a nature that "
            "helps spends all of it on one, so use the ball itself with the budget as its radius.",
        )

    def bind(self, mdp: MDP) -> OptimisticNature:
        return OptimisticNature(self.set.bind(replace(mdp, rows=_negated(mdp.rows))))

    def choices(self) -> RectangularSet:
        return self.set.choices()

    def helping(self, mdp: MDP) -> Optimistic:
        """Returns this set, whose nature helps already."""
        return self


@runtime_checkable
class Helping(Protocol):
    """A set that defines nature's choices in favour of the agent itself, such as one that couples states."""

    def helping(self, mdp: MDP) -> AmbiguitySet:
        """Returns the set whose nature maximises."""


def helping(name: str, given: AmbiguitySet, mdp: MDP) -> AmbiguitySet:
    """Returns the set whose nature chooses from `given` in favour of the agent: max_pi max_{P in U}.

    A set that couples actions or states defines its own, see `Helping`.

    Raises:
      ValueError: the set couples actions or states and has no such method.
    """
    check_set(name, given)
    if isinstance(given, Helping):
        return given.helping(mdp)
    check_rectangular(
        name, given, "it does not define nature's choices in the agent's favour. Give the balls themselves, or write a "
        "method helping(mdp) that returns the set whose nature maximises.",
    )  # fmt: skip
    return Optimistic(given)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class OptimisticNature:
    """A nature that maximises, by an inner nature that minimises on the model with negated rewards.

    `worst_case` returns the best kernel, and `dual_bound` bounds Q from above.
    """

    inner: Nature

    @cached_property
    def rows(self) -> Rows:
        return _negated(self.inner.rows)

    @property
    def discount(self) -> float:
        return self.inner.discount

    @property
    def accuracy(self) -> float:
        return self.inner.accuracy

    @property
    def singleton(self) -> bool:
        return self.inner.singleton

    def fresh(self) -> FloatArray | None:
        return self.inner.fresh()

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, out: Buffer = None, memory: RowMemory = None
    ) -> FloatArray:
        """Computes the largest value over the set."""
        least = self.inner.values(-v, -shift, workers, out, memory)
        return np.subtract(0.0, least, out=least)  # not -x: that would print zero as -0

    def worst_case(self, v: FloatArray, memory: RowMemory = None) -> WorstCase:
        """Computes value, kernel and sensitivity of the largest value."""
        value, rows, sensitivity = self.inner.worst_case(-v, memory)
        return WorstCase(0.0 - value, _negated(rows), 0.0 - sensitivity)

    def moments(
        self, v: FloatArray, shift: float, u: FloatArray, value: FloatArray | None = None, memory: RowMemory = None
    ) -> RowMoments:
        found = self.inner.moments(-v, -shift, u, None if value is None else 0.0 - value, memory)
        return found._replace(value=0.0 - found.value)

    def take(self, chosen: IntArray) -> OptimisticNature:
        return OptimisticNature(self.inner.take(chosen))

    @property
    def ball_radius(self) -> FloatArray | None:
        return self.inner.ball_radius

    def excess(self, kernel: Rows) -> FloatArray:
        """Delegates to the inner nature: the excess does not depend on rewards."""
        return self.inner.excess(kernel)

    def dual_bound(self, v: FloatArray) -> FloatArray:
        """`(R,)` upper bounds on Q by weak duality, since this nature maximises."""
        return 0.0 - self.inner.dual_bound(-v)

    def evidence(self, kernel: Rows | None) -> RowEvidence:
        """Swaps upper and lower bounds."""
        found = self.inner.evidence(kernel)
        return found._replace(above=lambda v: 0.0 - found.below(-v), below=lambda v: 0.0 - found.above(-v))


def _negated(rows: Rows) -> Rows:
    return Rows(rows.n_states, rows.entry_start, rows.successor, rows.probability, 0.0 - rows.reward)
