"""Build models from one matrix for each action, pymdptoolbox's arrays, or Gymnasium's `env.unwrapped.P`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.mdp.build import from_transitions, transition_bytes
from urbe.mdp.intervals import PairError
from urbe.mdp.labels import Label, Labels
from urbe.mdp.model import MDP, fitting_labels
from urbe.mdp.model_columns import in_labels
from urbe.mdp.start import first_states
from urbe.mdp.terminal import terminal_ids
from urbe.types import BoolArray, IntArray

ENTRY_BYTES = 28.0
"""Bytes of each transition of matrices in a list of them, which is held while `from_transitions` sorts it."""


def from_gymnasium(env: Any, *, discount: float) -> MDP:
    """Builds a model from `env.unwrapped.P[s][a] = [(probability, next_state, reward, terminated), ...]`.

    A state entered only by transitions marked `terminated` becomes terminal. If the table also leads into such
    a state without ending (Taxi does), the transitions that end lead to one extra terminal state, the last one.
    The environment's time limit is not part of the table and is not modelled.

    Args:
      env: a Gymnasium environment with a table `P` and, if it has one, `initial_state_distrib`; or the table.
      discount: in [0, 1].
    """
    bare = getattr(env, "unwrapped", env)
    table = bare if isinstance(bare, Mapping) else getattr(bare, "P", None)
    if not isinstance(table, Mapping):
        raise ValueError(
            f"{type(bare).__name__} has no transition table P, expected {{state: {{action: [(probability, "
            "next_state, reward, terminated), ...]}}; FrozenLake, CliffWalking and Taxi have one."
        )
    columns = _columns(table)
    state, _, successor, probability, _, ended = columns
    n_states = len(table)
    initial = getattr(bare, "initial_state_distrib", None)
    initial = None if initial is None else np.asarray(initial, dtype=float)

    live = probability > 0.0
    ends = _where(successor[live & ended], n_states)
    goes_on = _where(successor[live & ~ended & (state != successor)], n_states)
    if initial is not None:
        goes_on |= initial > 0.0
    if (ends & goes_on).any():
        columns = (state, columns[1], np.where(ended, n_states, successor), probability, columns[4], ended)
        ends = _where(np.array([n_states]), n_states + 1)
        initial = None if initial is None else np.append(initial, 0.0)
    keep = ~ends[columns[0]]
    s, a, t, p, r = (column[keep] for column in columns[:5])
    return from_transitions(
        s, a, t, p, r, discount=discount, n_states=len(ends), terminal=np.flatnonzero(ends), initial=initial
    )


def from_pymdptoolbox(transition: Any, reward: Any, *, discount: float) -> MDP:
    """Builds a model from pymdptoolbox arrays.

    Args:
      transition: `(A, S, S)` array, or one `(S, S)` array or SciPy sparse matrix for each action.
      reward: `(S,)`, `(S, A)`, `(A, S, S)`, or one `(S, S)` matrix for each action.
      discount: in [0, 1].
    """
    listed = _listed(list(transition), reward)
    return from_transitions(*listed.columns, discount=discount, n_states=listed.n_states)


def from_sparse(
    transition: Any,
    reward: Any,
    *,
    discount: float,
    terminal: ArrayLike = (),
    initial: Any = None,
    states: Sequence[Label] | None = None,
) -> MDP:
    """Builds a model from one matrix for each action.

    An action whose row stores nothing does not exist in that state, and a state without actions is terminal.

    Args:
      transition: `(S, S)` SciPy sparse matrices or arrays, a list or `{action: matrix}`, whose keys become labels.
      reward: a number, `(S,)`, `(S, A)`, or one `(S, S)` matrix for each action (sparse where it pays nothing).
      discount: in [0, 1].
      terminal: states where the process ends, by id or label; their rows may hold a self-loop of reward 0.
      initial: the first state, `{state: probability}`, or `(S,)` probabilities.
      states: labels of the states.

    >>> from scipy.sparse import csr_array
    >>> stay, go = csr_array([[1.0, 0.0], [0.0, 0.0]]), csr_array([[0.2, 0.8], [0.0, 0.0]])
    >>> from_sparse({"stay": stay, "go": go}, [[0.0, 1.0], [0.0, 0.0]], discount=0.9, states=["here", "there"])
    MDP(2 states (1 terminal), 2 rows, 3 entries, discount 0.9)
    """
    from scipy.sparse import issparse

    names = tuple(transition) if isinstance(transition, Mapping) else None
    if isinstance(reward, Mapping):
        missing = [name for name in names or () if name not in reward]
        if names is None or missing:
            raise ValueError(f"reward has no matrix for {missing or 'a list of'} actions, expected the same keys.")
        reward = [reward[name] for name in names]
    fits = isinstance(transition, Iterable) and not issparse(transition)
    checks.kind("transition", transition, fits, "a list or {action: matrix} of matrices, one for each action")
    matrices = list(transition.values() if isinstance(transition, Mapping) else transition)
    listed = _listed(matrices, reward)
    labels = Labels(None if states is None else tuple(states), names)
    ends = np.ones(listed.n_states, dtype=bool)
    ends[listed.columns[0]] = False
    declared = terminal if labels.states is None else labels.state_ids("terminal", terminal)
    ends[terminal_ids(declared, listed.n_states)] = True
    try:
        mdp = from_transitions(*listed.columns, discount=discount, n_states=listed.n_states, terminal=ends)
    except PairError as error:
        raise PairError(error.state, error.action, in_labels(error, labels)) from None
    mdp = replace(mdp, labels=fitting_labels(labels, mdp.n_states, mdp.n_actions))
    return mdp if initial is None else replace(mdp, initial=first_states(mdp, "initial", initial))


class _Listed(NamedTuple):
    """Matrices as a list of transitions: state, action, successor, probability and reward, `(N,)` each."""

    n_states: int
    columns: tuple[Any, ...]


def _listed(transition: Sequence[Any], reward: Any) -> _Listed:
    n_entries = sum(_stored(matrix) for matrix in transition)
    n_rows = min(n_entries, len(transition) * int(np.shape(transition[0])[0])) if n_entries else 0
    memory.require(
        {f"{n_entries} transitions, listed": ENTRY_BYTES * n_entries}
        | transition_bytes(n_entries, n_rows, 2, copied=True, in_order=False),
        "Give sparse matrices without stored zeros, or use a smaller model.",
    )
    matrices = [_coo(f"transition[{a}]", matrix) for a, matrix in enumerate(transition)]
    if not matrices:
        raise ValueError("transition is empty, expected one (states, states) matrix for each action.")
    n_states, n_actions = matrices[0].shape[0], len(matrices)
    for a, matrix in enumerate(matrices):
        if matrix.shape != (n_states, n_states):
            raise ValueError(f"transition[{a}] has shape {matrix.shape}, expected ({n_states}, {n_states}).")
    state = np.concatenate([m.row for m in matrices])
    action = np.concatenate([np.full(m.nnz, a, dtype=np.int32) for a, m in enumerate(matrices)])
    successor = np.concatenate([m.col for m in matrices])
    probability = np.concatenate([m.data for m in matrices])
    del matrices, matrix
    r = _matrix_reward(reward, n_states, n_actions, state, action, successor)
    return _Listed(n_states, (state, action, successor, probability, r))


def _where(ids: IntArray, n_states: int) -> BoolArray:
    flags = np.zeros(n_states, dtype=bool)
    flags[ids] = True
    return flags


def _columns(table: Mapping[Any, Any]) -> tuple[Any, ...]:
    rows: list[tuple[int, int, int, float, float, bool]] = []
    for s in sorted(table):
        for a in sorted(table[s]):
            for at, entry in enumerate(table[s][a]):
                try:
                    p, t, r, ended = entry
                    rows.append((int(s), int(a), int(t), float(p), float(r), bool(ended)))
                except (TypeError, ValueError):
                    raise ValueError(
                        f"P[{s}][{a}][{at}] is {entry!r}, expected (probability, next_state, reward, terminated)."
                    ) from None
    if not rows:
        raise ValueError("P lists no transitions, expected at least one.")
    states = sorted(int(s) for s in table)
    if states != list(range(len(states))):
        raise ValueError(f"P lists the states {checks.listing(states)}, expected 0, 1, ..., {len(states) - 1}.")
    types = (np.int64, np.int64, np.int64, np.float64, np.float64, np.bool_)
    s, a, t, p, r, ended = (
        np.array(column, dtype=kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)
    )
    checks.int_array("next_state", t, 0, len(states), "state")
    return s, a, t, p, r, ended


def _stored(matrix: Any) -> int:
    """The number of stored entries of a sparse matrix, or of nonzero entries of an array; else 0."""
    stored = getattr(matrix, "nnz", None)
    return int(np.count_nonzero(matrix) if stored is None else stored)


def _coo(name: str, matrix: Any) -> Any:
    from scipy.sparse import coo_array, issparse

    single = getattr(matrix, "dtype", None) == np.float32  # kept: its rows sum to one less exactly
    entries = coo_array(matrix if issparse(matrix) else checks.float_array(name, matrix, ndim=2))
    if single:
        entries = entries.astype(np.float32)
    wrong = ~((entries.data >= 0.0) & (entries.data < np.inf))
    if wrong.any():
        at = int(np.argmax(wrong))
        where = checks.index_text(name, (entries.row[at], entries.col[at]))
        raise ValueError(f"{where} is {entries.data[at]:.17g}, expected a probability.")
    return entries


def _matrix_reward(reward: Any, n_states: int, n_actions: int, state: Any, action: Any, successor: Any) -> Any:
    from scipy.sparse import csr_array, issparse

    if isinstance(reward, (list, tuple)) and any(issparse(m) for m in reward):
        if len(reward) != n_actions:
            raise ValueError(f"reward has {len(reward)} matrices, expected {n_actions}, one for each action.")
        paid = np.zeros(len(state))
        for a, matrix in enumerate(reward):
            if matrix.shape != (n_states, n_states):
                raise ValueError(f"reward[{a}] has shape {matrix.shape}, expected ({n_states}, {n_states}).")
            mine = action == a
            paid[mine] = np.asarray(csr_array(matrix)[state[mine], successor[mine]]).ravel()
        return checks.float_array("reward", paid)
    r = checks.float_array("reward", reward, all_finite=False)
    places = {
        (): (),
        (n_states,): (state,),
        (n_states, n_actions): (state, action),
        (n_actions, n_states, n_states): (action, state, successor),
    }
    if r.shape in places:
        where = places[r.shape]
        paid = r[where]
        if not np.isfinite(paid).all():
            at = int(np.argmin(np.isfinite(paid)))
            name = checks.index_text("reward", [int(ids[at]) for ids in where])
            raise ValueError(f"{name} is {np.ravel(paid)[at]}, expected a finite number.")
        return paid
    raise ValueError(
        f"reward has shape {r.shape}, expected ({n_states},), ({n_states}, {n_actions}) "
        f"or ({n_actions}, {n_states}, {n_states})."
    )
