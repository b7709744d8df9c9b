"""A finite Markov decision process, stored as sparse rows, one for each (state, action) pair.

    row  : a pair (s, a); the rows of state s are row_start[s] .. row_start[s + 1]
    entry: a successor of a row; the entries of row k are entry_start[k] .. entry_start[k + 1]

A state without rows is terminal: its value is zero and nature has nothing to decide there.
`urbe.mdp.build` turns dense arrays, transition lists and Gymnasium tables into this form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def check_model(name: str, value: object) -> None:
    """Raises unless `value` is a model."""
    example = "a model, such as MDP.from_dense(...) or urbe.library.riverswim(6)"
    checks.kind(name, value, isinstance(value, MDP), example)


@dataclass(frozen=True, eq=False, repr=False)
class MDP:
    """A finite MDP with sparse rows and state-dependent action sets.

    Build one with `from_dense`, `from_transitions`, `from_gymnasium` or `from_pymdptoolbox`; they check their
    input. The arrays are shared, not copied: treat them as read-only.

    Args:
      row_start: `(S + 1,)` first row of each state.
      action: `(R,)` the action each row stands for, increasing within a state.
      rows: the transition rows, see `Rows`.
      discount: in [0, 1].
      initial: `(S,)` distribution of the first state, or None when it is not known.
      bounds: entry-wise lower and upper probabilities, `(E,)` each, when the model came with intervals.

    >>> import numpy as np, urbe
    >>> mdp = urbe.MDP.from_dense(np.full((2, 1, 2), 0.5), [[1.0], [0.0]], discount=0.9)
    >>> mdp
    MDP(2 states, 2 rows, 4 entries, discount 0.9)
    """

    row_start: IntArray
    action: IntArray
    rows: Rows
    discount: float
    initial: FloatArray | None = None
    bounds: tuple[FloatArray, FloatArray] | None = None

    @staticmethod
    def from_dense(
        transition: ArrayLike,
        reward: ArrayLike,
        *,
        discount: float,
        terminal: ArrayLike = (),
        available: ArrayLike | None = None,
        initial: ArrayLike | None = None,
        keep_zeros: bool = False,
    ) -> MDP:
        """A model from `transition[s, a, s_next]`; see `urbe.mdp.build.from_dense`."""
        from urbe.mdp import build

        return build.from_dense(
            transition,
            reward,
            discount=discount,
            terminal=terminal,
            available=available,
            initial=initial,
            keep_zeros=keep_zeros,
        )

    @staticmethod
    def from_transitions(
        state: ArrayLike,
        action: ArrayLike,
        next_state: ArrayLike,
        probability: ArrayLike | None,
        reward: ArrayLike,
        *,
        discount: float,
        n_states: int | None = None,
        terminal: ArrayLike = (),
        initial: ArrayLike | None = None,
        row_tolerance: float = 1e-9,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> MDP:
        """A model from a list of transitions; see `urbe.mdp.build.from_transitions`."""
        from urbe.mdp import build

        return build.from_transitions(
            state,
            action,
            next_state,
            probability,
            reward,
            discount=discount,
            n_states=n_states,
            terminal=terminal,
            initial=initial,
            row_tolerance=row_tolerance,
            lower=lower,
            upper=upper,
        )

    @staticmethod
    def from_gymnasium(env: Any, *, discount: float) -> MDP:
        """A model from a Gymnasium environment with a table `P`; see `urbe.mdp.tables.from_gymnasium`."""
        from urbe.mdp import tables

        return tables.from_gymnasium(env, discount=discount)

    @staticmethod
    def from_pymdptoolbox(transition: Any, reward: Any, *, discount: float) -> MDP:
        """A model from pymdptoolbox arrays; see `urbe.mdp.tables.from_pymdptoolbox`."""
        from urbe.mdp import tables

        return tables.from_pymdptoolbox(transition, reward, discount=discount)

    @property
    def n_states(self) -> int:
        """Number of states, terminal ones included."""
        return len(self.row_start) - 1

    @property
    def n_rows(self) -> int:
        """Number of (state, action) pairs."""
        return len(self.action)

    @cached_property
    def n_actions(self) -> int:
        """One more than the largest action id."""
        return int(self.action.max()) + 1 if len(self.action) else 0

    @cached_property
    def terminal(self) -> BoolArray:
        """`(S,)` which states have no actions."""
        ends: BoolArray = np.diff(self.row_start) == 0
        return ends

    @cached_property
    def row_state(self) -> IntArray:
        """`(R,)` the state of each row."""
        return np.repeat(np.arange(self.n_states, dtype=self.row_start.dtype), np.diff(self.row_start))

    def with_discount(self, discount: float) -> MDP:
        """The same model with another discount."""
        return replace(self, discount=checks.discount(discount))

    def with_rows(self, rows: Rows) -> MDP:
        """The same pairs with other transition rows, and no intervals."""
        return replace(self, rows=rows, bounds=None)

    def row_of(self, state: int, action: int) -> int:
        """The row of a pair; raises KeyError with the available actions when there is none."""
        if not 0 <= state < self.n_states:
            raise KeyError(f"There is no state {state}; the model has the states 0, ..., {self.n_states - 1}.")
        first, last = int(self.row_start[state]), int(self.row_start[state + 1])
        at = first + int(np.searchsorted(self.action[first:last], action))
        if at == last or self.action[at] != action:
            raise KeyError(f"State {state} has no action {action}; it has {self.action[first:last].tolist()}.")
        return at

    def row_name(self, row: int) -> str:
        """`state 3, action 1`: how errors call a row."""
        return f"state {self.row_state[row]}, action {self.action[row]}"

    def to_dense(self) -> tuple[FloatArray, FloatArray]:
        """`transition[s, a, s_next]` and expected `reward[s, a]`; rows that do not exist are zero."""
        transition = np.zeros((self.n_states, self.n_actions, self.n_states))
        reward = np.zeros((self.n_states, self.n_actions))
        entry_row = self.rows.entry_row
        np.add.at(
            transition,
            (self.row_state[entry_row], self.action[entry_row], self.rows.successor),
            self.rows.probability,
        )
        reward[self.row_state, self.action] = self.rows.expected_reward()
        return transition, reward

    def matrix(self) -> csr_array:
        """`(R, S)` SciPy CSR matrix of transition probabilities, one line per row."""
        return self.rows.matrix()

    def by_action(self, row_values: ArrayLike, fill: float = np.nan) -> FloatArray:
        """`(S, A)` table of one number per row, `fill` where an action does not exist."""
        table = np.full((self.n_states, self.n_actions), fill)
        table[self.row_state, self.action] = row_values
        return table

    def per_row(self, name: str, value: ArrayLike | Mapping[tuple[int, int], float]) -> FloatArray:
        """`(R,)` numbers from a scalar, `(R,)`, `(S, A)` or `{(s, a): number}`; used for radii."""
        if isinstance(value, Mapping):
            out = np.full(self.n_rows, np.nan)
            for (state, action), number in value.items():
                out[self.row_of(state, action)] = checks.finite_number(f"{name}[{state}, {action}]", number)
            if np.isnan(out).any():
                row = int(np.argmax(np.isnan(out)))
                raise ValueError(f"{name} says nothing for {self.row_name(row)}; give one number for every pair.")
            return out
        array = checks.float_array(name, value)
        if array.ndim == 0:
            return np.full(self.n_rows, float(array))
        if array.shape == (self.n_rows,):
            return array
        if array.shape == (self.n_states, self.n_actions):
            return np.ascontiguousarray(array[self.row_state, self.action])
        raise ValueError(
            f"{name} has shape {array.shape}, expected a number, one per row ({self.n_rows},) "
            f"or one per state and action ({self.n_states}, {self.n_actions})."
        )

    def __repr__(self) -> str:
        ends = int(self.terminal.sum())
        counted = f"{self.n_states} states" + (f" ({ends} terminal)" if ends else "")
        return f"MDP({counted}, {self.n_rows} rows, {self.rows.n_entries} entries, discount {self.discount:g})"
