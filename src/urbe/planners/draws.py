"""The number of posterior draws that a quantile needs, and its rank among them.

Let x_(1) <= .. <= x_(M) be a quantity under M draws and x its true value, itself a posterior draw. Then

    P(x < x_(k)) <= k / (M + 1),

so x is at least the k-th lowest with probability at least 1 - level if k <= level (M + 1). A union bound over R
uncertain rows uses level delta / R for each, so M must be at least about R / delta.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from urbe import checks, memory
from urbe.mdp.rows import Rows
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.shared_draws import SharedDraws
from urbe.progress import Report, silent
from urbe.types import FloatArray

POOL_ROUNDING = 1e-12
"""Share of the largest value by which a quantile must be below the draws outside the pool."""

ROUNDING = 1e-9
"""delta / R (M + 1) is whole up to this."""

FEWEST = 1000
"""Default number of draws, unless more are needed."""


def uncertain_rows(posterior: Posterior) -> int:
    """Rows with more than one feasible successor; the others are known."""
    return int(np.count_nonzero(posterior.feasible > 1.0))


def number_of_draws(draws: int | None, n_rows: int, delta: float, rank: int = 1) -> int:
    """Returns `draws` if they suffice for the quantile; a default number if None.

    Raises:
      ValueError: there are fewer than rank R / delta; the message names the number needed.
    """
    needed = math.ceil(rank * max(n_rows, 1) / delta - ROUNDING)
    if draws is None:
        return max(FEWEST, needed)
    given = checks.whole_number("draws", draws, 1)
    if given < needed:
        raise ValueError(
            f"draws is {given}, expected at least {needed}: a failure probability of {delta:.4g} shared by {n_rows} "
            f"uncertain rows asks for a quantile of level {delta / max(n_rows, 1):.2g}, beyond what {given} draws can "
            "tell. Use more draws, or a lower confidence."
        )
    return given


def quantile_rank(n_rows: int, delta: float, draws: int) -> int:
    """The largest k with k / (M + 1) <= delta / R."""
    return int(delta / max(n_rows, 1) * (draws + 1) + ROUNDING)


KEPT = 50_000_000
"""Up to this many numbers, draws are kept in memory; beyond, they are regenerated at each request."""

POOL = 32
"""Extra draws kept per row, so that quantiles for nearby values need no new pass."""


class Quantiles(Protocol):
    """Low quantiles of p . z over posterior draws p, for any values z."""

    def lowest(self, z: FloatArray) -> RowQuantiles:
        """The quantile of each row, for `(E,)` values z of the entries."""


class RowQuantiles(NamedTuple):
    """The quantile of each row, `(R,)`, and the draws that give them, on the entries, `(E,)`."""

    value: FloatArray
    draw: FloatArray


def quantiles(
    posterior: Posterior, rng: np.random.Generator, draws: int, rank: int, report: Report = silent
) -> Quantiles:
    """The `rank`-th lowest of p . z over `draws` draws, in memory if they are few and otherwise streamed."""
    if draws * posterior.model.rows.n_entries <= KEPT:
        return KeptDraws(posterior.model.rows, drawn_rows(posterior, rng, draws, report), rank)
    return StreamedDraws(posterior, rng, draws, rank, report)


class KeptDraws:
    """Quantiles of draws in memory.

    Args:
      rows: the model's.
      drawn: `(E, M)` probabilities.
      rank: which of the lowest values the quantile is.
    """

    def __init__(self, rows: Rows, drawn: FloatArray, rank: int) -> None:
        self._rows, self._drawn, self._rank = rows, drawn, rank

    def lowest(self, z: FloatArray) -> RowQuantiles:
        value, draw = np.empty(self._rows.n_rows), np.empty(self._rows.n_entries)
        for row in range(self._rows.n_rows):
            a, b = self._rows.entry_start[row : row + 2]
            x = z[a:b] @ self._drawn[a:b]
            at = int(np.argpartition(x, self._rank - 1)[self._rank - 1])
            value[row], draw[a:b] = x[at], self._drawn[a:b, at]
        return RowQuantiles(value, draw)


class StreamedDraws:
    """Quantiles of streamed draws, with a pool of the lowest draws of each row.

    For values z near the values z' for which the pool was built, every draw outside the pool has

        p . z >= p . z' + min_j (z_j - z'_j) >= the pool's highest value at z' + min_j (z_j - z'_j),

    so that a quantile below this bound is found in the pool; the other rows are drawn again.

    Args:
      posterior: distribution of the draws.
      rng: source of the draws.
      draws: M.
      rank: which of the lowest values the quantile is.
      report: receives the progress of drawing.
    """

    def __init__(
        self, posterior: Posterior, rng: np.random.Generator, draws: int, rank: int, report: Report = silent
    ) -> None:
        self._rows, self._rank = posterior.model.rows, rank
        self._shared = SharedDraws(posterior, rng, draws, report)
        self._size = min(rank + POOL, draws)
        self._at = np.zeros(self._rows.n_entries)
        self._highest = np.full(self._rows.n_rows, -np.inf)
        self._pool = np.zeros((self._rows.n_entries, self._size))

    def lowest(self, z: FloatArray) -> RowQuantiles:
        rows, k = self._rows, self._rank - 1
        x = np.add.reduceat(self._pool * z[:, None], rows.entry_start[:-1], axis=0)
        value = np.partition(x, k, axis=1)[:, k]
        outside = self._highest + np.minimum.reduceat(z - self._at, rows.entry_start[:-1])
        slack = POOL_ROUNDING * float(np.abs(z).max(initial=0.0))
        stale = np.flatnonzero(~(value <= outside - slack))
        if len(stale):
            entries = rows.entries_of(stale)
            found = self._shared.lowest(stale, z, self._size)
            self._pool[entries], self._highest[stale], self._at[entries] = found.draw, found.value[:, -1], z[entries]
            x[stale] = found.value
            value[stale] = found.value[:, k]
        place = np.argpartition(x, k, axis=1)[:, k]
        return RowQuantiles(value, self._pool[np.arange(rows.n_entries), place[rows.entry_row]])


def drawn_rows(posterior: Posterior, rng: np.random.Generator, draws: int, report: Report = silent) -> FloatArray:
    """`(E, M)` drawn probabilities, one column per draw.

    Raises:
      NotEnoughMemory: they, and the copy by which a set is bound to them, do not fit.
    """
    rows = posterior.model.rows
    n_numbers = draws * (rows.n_entries + rows.n_rows)
    memory.require(
        {f"{draws} draws of {rows.n_rows} rows with {rows.n_entries} successors": 2.0 * 8.0 * n_numbers},
        "Use fewer draws (draws=..., or a lower confidence, which needs fewer), or a method without draws such as "
        "HoeffdingSets().",
    )
    return np.ascontiguousarray(posterior.draws(rng, draws, report=report).T)
