"""The interface of distances: how far a row must move to reach a level, and its best response to a price.

With d the distance from the nominal row p, and y_j = z_j - min z >= 0 the values of its successors, a distance provides
functions of one row (see `urbe.ambiguity.sweep.row_function`):

    prepare(p, y)                                  may reorder both, once, before the two functions below are called
    level(p, y, c, mean, hint, work)               -> xi, beta, x, hint
        xi(c) = min {d(q) : q . y <= c},  beta a slope -xi'(c) >= 0;  for 0 < c < mean = p . y.
        c <= 0 returns the floor: xi(0), with beta = inf.
    penalty(p, y, mean, price, hint, work)         -> h, d, curvature, x, hint
        h = min_q q . y + price d(q),  the distance d = h'(price) at which it is attained, and -h'' (0 where h is
        piecewise linear). price = 0 returns the floor.
    point(p, y, x, work, q)                        -> mass sent outside the row; fills q
        the distribution of both. They lie on one path, whose parameter x each distance defines; here `p` and `y` are in
        the order of the model, even if `prepare` reordered them.

    row_distance(q, p, sent)                       -> d(q), where `sent` has left the row
    sensitivity(p, y, q, price, m)                 fills m, the derivative of h with respect to p, up to a constant
        q is where h is attained at this price; 0 < price < inf.

    p, y, q  (n,)      work  (4, n) scratch      hint  scalar returned for this row last time; nan at first

`level` and `penalty` describe the same function: xi(c) = max_beta beta (h(1 / beta) - c). For consistent errors,
`level` must return an xi with xi = beta (h(1 / beta) - c) up to rounding of y, for whatever beta it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from numba.extending import register_jitable

from urbe.ambiguity.sweep import RowFunction, fingerprint

Function = TypeVar("Function", bound=Callable[..., Any])


class Distance(NamedTuple):
    """The functions of one distance.

    Attributes:
      prepare, level, penalty, point, row_distance, sensitivity: as above.
      measure: `(q, p) -> (k,)` distances of rows `(k, n)`, in plain NumPy and the precision of q.
      bound: `(p, y, price) -> (k,)` lower bounds on h of rows `(k, n)` at `(k,)` prices; plain NumPy in the precision
        of p, sharing nothing with `penalty`. For norms, any u whose dual norm is at most the price proves
        q . y + price d(q) >= q . (y + u) - p . u >= min_j (y_j + u_j) - p . u.
      negligible: budgets up to this change no value by more than 2^-54 of the spread of z.
      largest: budget per row beyond which nothing changes; inf if there is none.
    """

    prepare: RowFunction
    level: RowFunction
    penalty: RowFunction
    point: RowFunction
    row_distance: RowFunction
    sensitivity: RowFunction
    measure: Callable[[Any, Any], Any]
    bound: Callable[[Any, Any, Any], Any]
    negligible: float
    largest: float

    def naming(self, function: Function) -> Function:
        """Gives a function made for this distance a unique name, by which compiled code is linked.

        With equal names, a process that loads cached code compiled by two others would silently confuse them.
        """
        module = self.level.__module__.rpartition(".")[2]
        function.__qualname__ = f"{function.__name__}_{module}_{fingerprint(self.level)}"
        return function


@register_jitable
def in_any_order(p, y):
    """`prepare` of distances that need no special order of their rows."""
