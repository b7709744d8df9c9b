"""Solve linear systems of a fixed policy and nature: (I - gamma P) v = r.

I - gamma P is a nonsingular M-matrix (diagonally dominant for gamma < 1), so elimination needs no pivoting. There are
four methods, chosen by the form of P and the expected work:

    thin      P = L R with few columns of L: v = r + gamma L x, where (I - gamma R L) x = R r is a small system
    dense     n^3 / 3
    banded    n b^2, after ordering the states by reverse Cuthill-McKee; a few columns that many states lead to (the
              receiver of any-successor sets) are taken out first and put back by the Woodbury identity
    Krylov    for all others: BiCGSTAB, given up if it stalls
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from urbe.ambiguity.operator import LowRank
from urbe.types import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE_STATES = 150
BANDED_WORK = 3e10
BANDED_MEMORY = 1.5e9
MOST_HUBS = 8


class SolvePlan(NamedTuple):
    """How to solve systems with one sparsity pattern.

    Attributes:
      kind: "thin", "dense", "banded" or "krylov".
      work: expected floating-point operations of one solve.
      order: `(n,)` the states in the order of elimination.
      band: half-width of the matrix once ordered, without the columns many states lead to.
    """

    kind: str
    work: float
    order: IntArray
    band: int


def plan(matrix: csr_array | LowRank) -> SolvePlan:
    """Chooses the cheapest way for a transition matrix over the live states."""
    if isinstance(matrix, LowRank):
        rank = matrix.left.shape[1]
        return SolvePlan("thin", rank**3 / 3 + rank * float(_stored(matrix.right)), np.arange(0), 0)
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = matrix.shape[0]
    everyone = np.arange(n)
    if n <= DENSE_STATES:
        return SolvePlan("dense", n**3 / 3 + 2e4, everyone, n)
    hubs = _hubs(matrix)
    pattern = _without_columns(matrix, hubs)
    order = np.asarray(reverse_cuthill_mckee(_symmetric(pattern), symmetric_mode=True))
    band, given = _bandwidth(pattern, order), _bandwidth(pattern, everyone)
    if given <= band:
        order, band = everyone, given
    work = 4.0 * n * (band + 1.0) ** 2 * (1 + len(hubs) / (band + 1.0))
    if work <= BANDED_WORK and 8.0 * n * (3 * band + 1) <= BANDED_MEMORY:
        return SolvePlan("banded", work, order, band)
    if n <= 2000:
        return SolvePlan("dense", n**3 / 3, everyone, n)
    return SolvePlan("krylov", 600.0 * (matrix.nnz + 10 * n), everyone, n)


def solve_system(matrix: Any, reward: FloatArray, discount: float, how: SolvePlan) -> FloatArray | None:
    """v with v = reward + discount matrix v, or None when the way chosen does not get there.

    The matrix is sparse or a product of thin ones; the "krylov" way also takes an array.
    `how` may come from a similar matrix: it is a choice of method and order, not a promise about the pattern.
    """
    v: FloatArray | None
    try:
        if isinstance(matrix, LowRank):
            v = _thin(matrix, reward, discount)
        elif how.kind == "dense":
            v = np.linalg.solve(np.eye(len(reward)) - discount * matrix.toarray(), reward)
        elif how.kind == "banded":
            v = _banded(matrix, reward, discount, how)
        else:
            v = _krylov(matrix, reward, discount)
    except np.linalg.LinAlgError:
        return None
    return v if v is not None and np.isfinite(v).all() else None


def _thin(matrix: LowRank, reward: FloatArray, discount: float) -> FloatArray:
    small = matrix.right @ matrix.left
    small = small.toarray() if hasattr(small, "toarray") else small
    x = np.linalg.solve(np.eye(len(small)) - discount * small, matrix.right @ reward)
    v: FloatArray = reward + discount * (matrix.left @ x)
    return v


def _stored(matrix: Any) -> int:
    """Numbers kept of a sparse or dense array."""
    return int(matrix.nnz) if hasattr(matrix, "nnz") else int(matrix.size)


def _banded(matrix: csr_array, reward: FloatArray, discount: float, how: SolvePlan) -> FloatArray | None:
    from scipy.linalg import solve_banded

    n, hubs = len(reward), _hubs(matrix)
    rank = np.empty(n, dtype=np.int64)
    rank[how.order] = np.arange(n)
    row, column, p = np.repeat(np.arange(n), np.diff(matrix.indptr)), matrix.indices, discount * matrix.data
    right = np.zeros((n, 1 + len(hubs)))
    right[rank, 0] = reward
    if len(hubs):  # their columns go to the right-hand side: M v = r + gamma H v[hubs]
        to_hub = np.isin(column, hubs)
        right[rank[row[to_hub]], 1 + np.searchsorted(hubs, column[to_hub])] = p[to_hub]
        row, column, p = row[~to_hub], column[~to_hub], p[~to_hub]
    i, j = rank[row], rank[column]
    below, above = max(int((i - j).max(initial=0)), 0), max(int((j - i).max(initial=0)), 0)
    if max(below, above) > 2 * how.band + 16 or 8.0 * n * (2 * below + above + 1) > BANDED_MEMORY:
        return None  # the order no longer suits the pattern
    diagonals = np.zeros((below + above + 1, n))
    diagonals[above + i - j, j] = -p
    diagonals[above] += 1.0
    x: FloatArray = solve_banded(
        (below, above), diagonals, right, overwrite_ab=True, overwrite_b=True, check_finite=False
    )
    x = x[rank]
    if not len(hubs):
        return x[:, 0]
    at_hubs = np.linalg.solve(np.eye(len(hubs)) - x[hubs, 1:], x[hubs, 0])
    solved: FloatArray = x[:, 0] + x[:, 1:] @ at_hubs
    return solved


def _krylov(matrix: csr_array | FloatArray, reward: FloatArray, discount: float) -> FloatArray | None:
    from scipy.sparse.linalg import LinearOperator, bicgstab

    n = len(reward)
    system = LinearOperator((n, n), matvec=lambda x: x - discount * (matrix @ x), dtype=np.float64)
    x, failed = bicgstab(system, reward, rtol=1e-13, maxiter=300)
    good = np.abs(reward - system @ x).max() <= 1e-8 * max(1.0, np.abs(reward).max())
    return x if good or not failed else None


def _hubs(matrix: csr_array) -> IntArray:
    """The columns, at most a few, that far more states lead to than to the others."""
    counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    usual = max(4 * int(np.median(counts)) + 64, matrix.shape[0] // 20)
    hubs = np.flatnonzero(counts > usual)
    return hubs if len(hubs) <= MOST_HUBS else hubs[:0]


def _without_columns(matrix: csr_array, columns: IntArray) -> Any:
    if not len(columns):
        return matrix
    entry = matrix.tocoo()
    keep = ~np.isin(entry.col, columns)
    from scipy.sparse import csr_array

    return csr_array((entry.data[keep], (entry.row[keep], entry.col[keep])), shape=matrix.shape)


def _symmetric(matrix: Any) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix(abs(matrix) + abs(matrix).T)


def _bandwidth(matrix: Any, order: IntArray) -> int:
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    entry = matrix.tocoo()
    return int(np.abs(rank[entry.row] - rank[entry.col]).max(initial=0))
