"""What a solver may ask of nature, and the protocol of the sets nature chooses from.

An ambiguity set is a description (`L1Ball(0.5)`). Bound to a model it becomes nature, which for state values v
answers the inner problem of every row k = (s, a)

    Q(k) = min_{q in U(k)} sum_j q_j z_j,        z_j = r(s, a, s'_j) + gamma v(s'_j),

with its value, a minimiser (the worst-case kernel) and the derivative with respect to the centre of the set (the
sensitivity). Q is monotone in v and Q(v + c) = Q(v) + gamma c: the two facts all certified bounds rest on.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from urbe import checks
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers


class WorstCase(NamedTuple):
    """Nature's answer to a value function.

    Attributes:
      value: `(R,)` Q(k).
      rows: the minimising kernel, one distribution per row of the model.
      sensitivity: `(E,)` m with dQ(k) = sum_j m_j dp_j when the centre p of the set moves by dp; defined up to a
        constant per row, since p stays a distribution.
    """

    value: FloatArray
    rows: Rows
    sensitivity: FloatArray


class Nature(Protocol):
    """The adversary of a bound model, rectangular in (s, a)."""

    @property
    def rows(self) -> Rows:
        """The nominal rows nature departs from."""

    @property
    def discount(self) -> float:
        """The model's discount."""

    @property
    def accuracy(self) -> float:
        """Bound on |values(v) - Q(v)| as a multiple of max |z| over all rows; what certified bounds allow for."""

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, out: FloatArray | None = None
    ) -> FloatArray:
        """`(R,)` Q at the state values `v + shift`; a sweep. `shift` is added after the inner problem.

        Written into `out` when given, which spares large models the first touch of fresh memory at every sweep.
        """

    def worst_case(self, v: FloatArray) -> WorstCase:
        """Value, kernel and sensitivity at `v`; slower than `values`, asked for once."""

    def take(self, chosen: IntArray) -> Nature:
        """The same adversary on the rows `chosen` alone, in that order."""

    @property
    def ball_radius(self) -> FloatArray | None:
        """`(R,)` radii, where the set is {q : d(q, p) <= radius} with d convex in q and d(p, p) = 0; None elsewhere.

        For certificates alone, in units in which moving all mass of a row is a distance of about one.

        A distribution at distance d > radius is then brought into the set by a share 1 - radius / d of the row itself.
        """

    def excess(self, kernel: Rows) -> FloatArray:
        """`(R,)` by how much a kernel leaves the set, in the distance of `ball_radius`; at most 0 inside.

        Moving all mass of a row is to be a distance of about one: sets with weights or a metric divide by the largest.
        Infinite where a row has mass on a successor that may have none.
        """

    def dual_bound(self, v: FloatArray) -> FloatArray:
        """`(R,)` lower bounds on Q by weak duality, from code that shares nothing with `values`; slow."""


def check_set(name: str, value: object) -> None:
    """Raises unless `value` has what an ambiguity set has."""
    number = value if isinstance(value, float | int) and not isinstance(value, bool) else 0.5
    checks.kind(name, value, callable(getattr(value, "bind", None)), f"an ambiguity set such as L1Ball({number!r})")


class AmbiguitySet(Protocol):
    """The kernels nature may choose from, relative to a model's own."""

    def bind(self, mdp: MDP) -> Nature:
        """Checks the set against a model, once; the kernels then trust."""
