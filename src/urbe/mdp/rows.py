"""Transition rows in compressed form, the input of every kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from urbe import memory
from urbe.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Values = TypeVar("Values", bound=NDArray[np.floating[Any]])


@dataclass(frozen=True, eq=False)
class Rows:
    """Sparse rows of transition probabilities with their rewards.

    Args:
      n_states: number of states a successor may be.
      entry_start: `(R + 1,)` first entry of each row.
      successor: `(E,)` state of each entry, increasing within a row.
      probability: `(E,)` its probability.
      reward: `(R,)` if the reward depends only on the pair, `(E,)` if it also depends on the successor.
        With as many rows as entries (every row has one successor) both readings agree.
    """

    n_states: int
    entry_start: IntArray
    successor: IntArray
    probability: FloatArray
    reward: FloatArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.entry_start) - 1

    @property
    def n_entries(self) -> int:
        """Number of stored successors over all rows."""
        return len(self.successor)

    @property
    def rewards_successors(self) -> bool:
        """Whether the reward depends on the successor."""
        return len(self.reward) != self.n_rows

    @property
    def row_reward(self) -> FloatArray:
        """`(R,)` the part of the reward that does not depend on the successor."""
        return np.zeros(self.n_rows) if self.rewards_successors else self.reward

    @property
    def entry_reward(self) -> FloatArray | None:
        """`(E,)` the reward of each successor, or None if rewards do not depend on it."""
        return self.reward if self.rewards_successors else None

    @property
    def reward_per_entry(self) -> FloatArray:
        """`(E,)` the reward of each entry, whether or not rewards depend on the successor."""
        return self.reward if self.rewards_successors else self.reward[self.entry_row]

    @cached_property
    def length(self) -> IntArray:
        """`(R,)` number of entries of each row."""
        return np.diff(self.entry_start)

    @cached_property
    def longest(self) -> int:
        """Entries of the longest row, at least one."""
        return int(self.length.max()) if self.n_rows else 1

    @cached_property
    def is_dense(self) -> bool:
        """Whether every row lists every state, in order."""
        return self.n_entries == self.n_rows * self.n_states

    @cached_property
    def entry_row(self) -> IntArray:
        """`(E,)` the row of each entry."""
        return np.repeat(np.arange(self.n_rows), self.length)

    @cached_property
    def largest_reward(self) -> float:
        """max |r|, zero without rows."""
        return float(max(self.reward.max(), -self.reward.min())) if len(self.reward) else 0.0

    @cached_property
    def mass_error(self) -> float:
        """A bound on |sum of a row - 1|, the error of floating-point rows."""
        return _mass_error(self.entry_start, self.probability) + 2.0**-52 if self.n_rows else 0.0

    @classmethod
    def of_matrix(cls, matrix: csr_array, reward: FloatArray) -> Rows:
        """Makes rows of an `(R, S)` CSR matrix, whose entries are sorted in place; `reward` as in `Rows`."""
        matrix.sort_indices()
        start = matrix.indptr.astype(index_type(matrix.nnz), copy=False)
        return cls(matrix.shape[1], start, matrix.indices.astype(np.int32, copy=False), matrix.data, reward)

    def matrix(self) -> csr_array:
        """`(R, S)` SciPy CSR matrix of the probabilities, sharing their memory."""
        from scipy.sparse import csr_array

        entries = (self.probability, self.successor, self.entry_start)
        return csr_array(entries, shape=(self.n_rows, self.n_states))

    def successor_values(self, w: Values) -> Values:
        """`(..., E)` values w of states, `(..., S)`, at every successor, plus its reward if rewards depend on it."""
        there: Any = w[..., self.successor]
        z: Values = there + self.reward if self.rewards_successors else there
        return z

    def row_sums(self, entry_values: FloatArray) -> FloatArray:
        """`(R,)` sums over the entries of each row."""
        if not self.n_rows:
            return np.zeros(0)
        sums: FloatArray = np.add.reduceat(entry_values, self.entry_start[:-1])
        return sums

    def expected_reward(self) -> FloatArray:
        """`(R,)` r(s, a) = sum_s' p(s') r(s, a, s')."""
        entry = self.entry_reward
        return self.reward if entry is None else self.row_sums(self.probability * entry)

    def take(self, chosen: IntArray) -> Rows:
        """The rows `chosen`, copied one after another (a policy's own rows, contiguous in memory)."""
        entry_start = np.zeros(len(chosen) + 1, dtype=self.entry_start.dtype)
        np.cumsum(self.length[chosen], out=entry_start[1:])
        successor = np.empty(entry_start[-1], dtype=self.successor.dtype)
        probability = np.empty(len(successor))
        reward = np.empty(len(successor) if self.rewards_successors else len(chosen))
        _copy_rows(
            chosen, self.entry_start, self.successor, self.probability, self.reward, self.rewards_successors,
            entry_start, successor, probability, reward,
        )  # fmt: skip
        return Rows(self.n_states, entry_start, successor, probability, reward)

    def entries_of(self, chosen: IntArray) -> IntArray:
        """The positions of all entries of the rows `chosen`, row after row."""
        length = self.length[chosen]
        shift = self.entry_start[:-1][chosen] - np.concatenate(([0], np.cumsum(length)[:-1]))
        entries: IntArray = np.repeat(shift, length) + np.arange(int(length.sum()))
        return entries

    @cached_property
    def without_zeros(self) -> Rows:
        """The same rows without entries of probability zero."""
        keep = self.probability > 0.0
        return self if keep.all() else self.select(keep)

    def with_all_states(self) -> Rows:
        """The same rows with an entry for every state, most of them of probability zero."""
        if self.is_dense:
            return self
        size = self.n_rows * self.n_states
        memory.require(
            {f"rows that list all {self.n_states} states in each of {self.n_rows} rows": 12.0 * size},
            'Use support="nominal", a set that stays sparse (L1Ball), or a smaller model.',
        )
        probability = np.zeros(size)
        at = self.entry_row.astype(np.int64) * self.n_states + self.successor
        probability[at] = self.probability
        entry_start: IntArray = np.arange(0, size + 1, self.n_states, dtype=index_type(size))
        successor = np.tile(np.arange(self.n_states, dtype=np.int32), self.n_rows)
        return Rows(self.n_states, entry_start, successor, probability, self.row_reward)

    def select(self, keep: BoolArray) -> Rows:
        """The same rows with only the entries `keep`, `(E,)`, at least one of each row."""
        if not self.n_rows:
            return self
        length = np.add.reduceat(keep, self.entry_start[:-1], dtype=np.int64)
        entry_start = np.zeros(self.n_rows + 1, dtype=self.entry_start.dtype)
        np.cumsum(length, out=entry_start[1:])
        reward = self.reward[keep] if self.rewards_successors else self.reward
        return Rows(self.n_states, entry_start, self.successor[keep], self.probability[keep], reward)


def index_type(largest: int) -> type[np.int32] | type[np.int64]:
    """int32 while `largest` fits, else int64."""
    return np.int32 if largest < 2**31 else np.int64


@njit(cache=True, nogil=True)
def _mass_error(entry_start, probability):
    """max over rows of |sum - 1|, each sum compensated so that its own rounding does not count."""
    largest = 0.0
    for row in range(len(entry_start) - 1):
        total, lost = -1.0, 0.0
        for j in range(entry_start[row], entry_start[row + 1]):
            new = total + probability[j]
            if abs(total) >= probability[j]:
                lost += (total - new) + probability[j]
            else:
                lost += (probability[j] - new) + total
            total = new
        largest = max(largest, abs(total + lost))
    return largest


@njit(cache=True, nogil=True)
def _copy_rows(chosen, start, successor, p, reward, by_entry, new_start, new_successor, new_p, new_reward):
    for k in range(len(chosen)):
        row, b = np.uint64(chosen[k]), np.uint64(new_start[k])
        a, n = np.uint64(start[row]), np.uint64(new_start[k + 1]) - b
        for j in range(n):
            new_successor[b + j] = successor[a + j]
            new_p[b + j] = p[a + j]
        if by_entry:
            new_reward[b : b + n] = reward[a : a + n]
        else:
            new_reward[np.uint64(k)] = reward[row]
