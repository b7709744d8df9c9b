"""A finite Markov decision process, stored as sparse rows, one for each (state, action) pair.

    row  : a pair (s, a); the rows of state s are row_start[s] .. row_start[s + 1]
    entry: a successor of a row; the entries of row k are entry_start[k] .. entry_start[k + 1]

A state without rows is terminal: its value is zero.
`urbe.mdp.build` turns dense arrays, transition lists and Gymnasium tables into this form.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.mdp.labels import NO_LABELS, Label, Labels
from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def check_model(name: str, value: object) -> None:
    """Raises unless `value` is a model."""
    example = "a model, such as MDP.from_dense(...) or urbe.library.riverswim(6)"
    checks.kind(name, value, isinstance(value, MDP), example)


def check_same_pairs(name: str, model: MDP, known: str, like: MDP) -> None:
    """Raises unless two models have the same pairs of state and action, and the same labels if both have labels."""
    if not (np.array_equal(model.row_start, like.row_start) and np.array_equal(model.action, like.action)):
        raise ValueError(f"{name} is {model}, expected the same states and actions as {known}, {like}.")
    for what in ("states", "actions"):
        mine, other = getattr(model.labels, what), getattr(like.labels, what)
        if mine is not None and other is not None and mine != other:
            at = next((k for k, pair in enumerate(zip(mine, other, strict=False)) if pair[0] != pair[1]), 0)
            raise ValueError(
                f"{name} has {what[:-1]} {at} {mine[at]!r}, expected {other[at]!r} as in {known}: models are "
                "matched by ids, so that labels must have the same order. Build both with one order of labels."
            )


@dataclass(frozen=True, eq=False, repr=False)
class MDP:
    """A finite MDP with sparse rows and state-dependent action sets.

    Build one with `from_dense`, `from_sparse`, `from_transitions`, `from_columns`, `from_function`, `from_gymnasium` or
    `from_pymdptoolbox`; they check their input. The arrays are shared, not copied: treat them as read-only.

    Args:
      row_start: `(S + 1,)` first row of each state.
      action: `(R,)` the action each row stands for, increasing within a state.
      rows: the transition rows, see `Rows`.
      discount: in [0, 1].
      initial: `(S,)` distribution of the first state, or None if unknown.
      bounds: entry-wise lower and upper probabilities, `(E,)` each, if the model has intervals.
      labels: names of states and actions, see `with_labels`.
      propositions: sets of states by name, such as `{"goal": array([3])}`: the state labels of PRISM and Storm files.

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
    labels: Labels = NO_LABELS
    propositions: Mapping[str, IntArray] = field(default_factory=dict)

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
        state: ArrayLike | Any,
        action: ArrayLike | None = None,
        next_state: ArrayLike | None = None,
        probability: ArrayLike | None = None,
        reward: ArrayLike | None = None,
        *,
        discount: float,
        n_states: int | None = None,
        terminal: ArrayLike = (),
        initial: ArrayLike | None = None,
        row_tolerance: float | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> MDP:
        """Builds a model from a list of transitions; see `urbe.mdp.build.from_transitions`.

        States and actions may be strings or categoricals: they become `labels`, which `terminal` and `initial` then
        use, as in `terminal=["sold"], initial="new"`. A table as the only argument, such as a frame of pandas or
        polars, is read by `from_columns`, which has more options for it.

        >>> import urbe
        >>> mdp = urbe.MDP.from_transitions(
        ...     ["new", "new", "old"], ["use", "use", "sell"], ["new", "old", "sold"], [0.7, 0.3, 1.0], [5.0, 5.0, 2.0],
        ...     discount=0.9, terminal=["sold"], initial="new",
        ... )
        >>> print(urbe.solve(mdp).action_text(0), mdp.labels.states)
        use ('new', 'old', 'sold')
        """
        from urbe.mdp import build, model_columns
        from urbe.mdp.frames import RowError, is_table
        from urbe.mdp.log_columns import DROP

        if is_table(state):
            given = {"action": action, "next_state": next_state, "probability": probability, "reward": reward,
                     "n_states": n_states, "lower": lower, "upper": upper}  # fmt: skip
            if extra := next((name for name, value in given.items() if value is not None), None):
                raise ValueError(f"state is a table, which has all columns, so {extra} must be left out.")
            return model_columns.model_of(
                state,
                discount=discount,
                terminal=terminal if np.size(terminal) else None,
                initial=initial,
                row_tolerance=row_tolerance,
            )
        if action is None or next_state is None or reward is None:
            absent = next(
                name for name, value in (("action", action), ("next_state", next_state), ("reward", reward))
                if value is None
            )  # fmt: skip
            raise ValueError(
                f"{absent} is None, expected one value for each transition. Give state, action, next_state, "
                "probability and reward, or a table of all of them."
            )
        columns = {"state": state, "action": action, "next_state": next_state}
        if model_columns.have_labels(state, action, next_state):
            if n_states is not None:
                raise ValueError("n_states counts ids, but the states have labels; leave it out.")
            table = columns | {"probability": probability, "reward": reward, "lower": lower, "upper": upper}
            try:
                return model_columns.model_of(
                    model_columns.table_of(table),
                    discount=discount,
                    terminal=terminal,
                    initial=initial,
                    row_tolerance=row_tolerance,
                )
            except RowError as error:
                raise RowError(error.name, error.row, error.message.replace(DROP, "fill them in first.")) from None

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
    def from_columns(
        columns: Any,
        *,
        discount: float,
        names: Mapping[str, str] | None = None,
        missing: Literal["refuse", "drop"] = "refuse",
        missing_values: Sequence[str | float] = (),
        labels: bool | None = None,
        terminal: Any = None,
        initial: Any = None,
    ) -> MDP:
        """Builds a model from a table of transitions: a dict of columns, a pandas or polars frame, an Arrow table.

        The columns are `state`, `action`, `next_state`, `probability` and `reward`, or synonyms such as `s, a, s_next,
        p, r`; a column `cost` takes the place of `reward`, with the sign changed. With `lower` and `upper` the model
        has intervals, and needs no `probability`.

        Args:
          columns: the table.
          discount: in [0, 1].
          names: names of columns that differ from the usual ones, as in `{"state": "condition"}`.
          missing: "refuse" rows that lack a value, or "drop" them; the rest must still be distributions.
          missing_values: other texts and numbers that stand for no value, such as `[-999, "?"]`.
          labels: True takes values of states and actions as labels, False as ids from 0; None takes texts as labels.
          terminal: states where the process ends; by default those that are entered and never left.
          initial: the first state, `{state: probability}`, or `(S,)` probabilities.

        >>> import urbe
        >>> urbe.MDP.from_columns(
        ...     {"s": ["new", "new", "old"], "a": ["use"] * 3, "s_next": ["new", "old", "gone"], "p": [0.7, 0.3, 1.0],
        ...      "r": [5.0, 5.0, 1.0]},
        ...     discount=0.9,
        ... )
        MDP(3 states (1 terminal), 2 rows, 3 entries, discount 0.9)
        """
        from urbe.mdp.model_columns import model_of

        return model_of(
            columns, discount=discount, names=names, missing=missing, missing_values=missing_values, labels=labels,
            terminal=terminal, initial=initial,
        )  # fmt: skip

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

    @staticmethod
    def from_sparse(
        transition: Any,
        reward: Any,
        *,
        discount: float,
        terminal: ArrayLike = (),
        initial: Any = None,
        states: Sequence[Label] | None = None,
    ) -> MDP:
        """A model from one `(S, S)` sparse matrix for each action; see `urbe.mdp.tables.from_sparse`."""
        from urbe.mdp import tables

        return tables.from_sparse(
            transition, reward, discount=discount, terminal=terminal, initial=initial, states=states
        )

    @staticmethod
    def from_function(
        states: Iterable[Hashable],
        actions: Sequence[Hashable] | Callable[[Any], Iterable[Hashable]],
        step: Callable[[Any, Any], Iterable[tuple[float, Hashable, float]]],
        *,
        discount: float,
        terminal: Iterable[Hashable] = (),
        initial: Any = None,
        progress: bool = False,
    ) -> MDP:
        """Builds a model from a function that lists the outcomes of an action.

        States may be anything hashable, such as tuples; strings and numbers become labels unchanged, others as they
        print. Repeated successors of a pair add up. The first thousand states give an estimate of the size, and a model
        that will not fit into memory is rejected.

        Args:
          states: every state once.
          actions: actions of every state, or a function from a state to its actions; a state without any is terminal.
          step: `step(state, action)` lists `(probability, next_state, reward)`; probabilities sum to one. An action
            that leads nowhere, `[]`, does not exist in that state.
          discount: in [0, 1].
          terminal: states where the process ends; `step` is not called there.
          initial: the first state, `{state: probability}`, or `(S,)` probabilities.
          progress: show progress on standard error.

        >>> import urbe
        >>> def step(state, action):
        ...     x, y = state
        ...     return [(0.5, (x, y), -1.0), (0.5, (x + 1, y) if action == "right" else (x, y + 1), -1.0)]
        >>> cells = [(x, y) for x in range(3) for y in range(3)]
        >>> mdp = urbe.MDP.from_function(
        ...     cells, lambda cell: [a for a, at in (("right", cell[0]), ("up", cell[1])) if at < 2], step,
        ...     discount=1.0, initial=(0, 0),
        ... )
        >>> mdp
        MDP(9 states (1 terminal), 12 rows, 24 entries, discount 1)
        >>> round(urbe.solve(mdp).value_at_start(), 6), mdp.labels.states[1]
        (-8.0, '(0, 1)')
        """
        from urbe.mdp import callables

        return callables.from_function(
            states, actions, step, discount=discount, terminal=terminal, initial=initial, progress=progress
        )

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

    def with_labels(self, states: Sequence[Label] | None = None, actions: Sequence[Label] | None = None) -> MDP:
        """The same model with names for its states, its actions or both; None keeps the current ones.

        >>> import urbe
        >>> mdp = urbe.library.riverswim(3).with_labels(actions=["left", "right"])
        >>> mdp.row_name(1)
        'state 0, action right'
        """
        labels = Labels(
            self.labels.states if states is None else tuple(states),
            self.labels.actions if actions is None else tuple(actions),
        )
        return replace(self, labels=fitting_labels(labels, self.n_states, self.n_actions))

    def with_terminal(self, states: Any) -> MDP:
        """The same model, in which the process also ends in these states: they lose their actions, and have value 0.

        Goals in files often loop. With discount 1 they must be terminal:

        Args:
          states: by label, or by id if states have no labels; names of sets of states in `propositions`, such as
            "goal"; or `(S,)` booleans.

        >>> import urbe
        >>> mdp = urbe.MDP.from_transitions([0, 0, 1], [0, 0, 0], [0, 1, 1], [0.5, 0.5, 1], [-1, -1, 0], discount=1.0)
        >>> urbe.solve(mdp.with_terminal([1])).value.round(5).tolist()
        [-2.0, 0.0]
        """
        from urbe.mdp import terminal

        return terminal.with_terminal(self, states)

    def with_rows(self, rows: Rows) -> MDP:
        """The same pairs with other transition rows, and no intervals."""
        checks.kind("rows", rows, isinstance(rows, Rows), "transition rows, such as another model's `rows`")
        return replace(self, rows=rows, bounds=None)

    def row_of(self, state: int, action: int) -> int:
        """The row of a pair; raises KeyError with the available actions when there is none."""
        if not 0 <= state < self.n_states:
            raise KeyError(f"There is no state {state}; the model has the states 0, ..., {self.n_states - 1}.")
        first, last = int(self.row_start[state]), int(self.row_start[state + 1])
        at = first + int(np.searchsorted(self.action[first:last], action))
        if at == last or self.action[at] != action:
            there = self.action[first:last].tolist()
            names = there if self.labels.actions is None else self.labels.action_texts(there)
            known = 0 <= action < len(self.labels.actions or ())
            called = self.labels.action(action) if known else str(action)
            raise KeyError(f"State {self.labels.state(state)} has no action {called}; it has {names}.")
        return at

    def row_name(self, row: int) -> str:
        """The name of a row in messages: `state 3, action 1`."""
        state, action = int(self.row_state[row]), int(self.action[row])
        return f"state {self.labels.state(state)}, action {self.labels.action(action)}"

    def to_dense(self) -> tuple[FloatArray, FloatArray]:
        """`transition[s, a, s_next]` and expected `reward[s, a]`; rows that do not exist are zero."""
        n_pairs = self.n_states * self.n_actions
        memory.require(
            {
                f"transitions of {n_pairs} pairs over {self.n_states} states": 8.0 * n_pairs * (self.n_states + 1),
                f"work on {self.rows.n_entries} entries": 24.0 * self.rows.n_entries,
            },
            "Use matrix(), which is sparse, or a smaller model.",
        )
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
        """`(R,)` numbers from a scalar, `(R,)`, `(S, A)` or `{(s, a): number}`, by label if any; used for radii."""
        if isinstance(value, Mapping):
            out = np.full(self.n_rows, np.nan)
            for pair, number in value.items():
                if not isinstance(pair, tuple) or len(pair) != 2:
                    raise ValueError(f"{name} names {checks.shown(pair)}, expected pairs (state, action) as its keys.")
                state, action = pair
                s = state if self.labels.states is None else int(self.labels.state_ids(name, [state])[0])
                a = action if self.labels.actions is None else int(self.labels.action_ids(name, [action])[0])
                out[self.row_of(s, a)] = checks.finite_number(f"{name}[{state}, {action}]", number)
            if np.isnan(out).any():
                row = int(np.argmax(np.isnan(out)))
                raise ValueError(f"{name} has no number for {self.row_name(row)}; give one number for every pair.")
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


def fitting_labels(labels: Labels, n_states: int, n_actions: int) -> Labels:
    """`labels`, if there are enough: one for each state, and one for each action at least."""
    for name, given, n in (("states", labels.states, n_states), ("actions", labels.actions, n_actions)):
        if given is not None and (len(given) < n or (name == "states" and len(given) > n)):
            raise ValueError(f"{name} has {len(given)} labels, expected one for each of {n} {name}.")
    return labels
