"""Convert episodes to a log: states are numbered or discretised, and terminal states are added where needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from urbe.gym.cells import Cells
from urbe.mdp.labels import Labels
from urbe.mdp.log_columns import END_LABEL
from urbe.mdp.transitions import Transitions
from urbe.types import BoolArray, FloatArray, IntArray


class Episode(NamedTuple):
    """One episode of T steps.

    Attributes:
      observations: `(T + 1, ...)`, the last one after the last step.
      actions: `(T,)` from 0.
      rewards: `(T,)`.
      terminated: whether the process terminated with the last step; otherwise it was truncated there.
    """

    observations: Any
    actions: Sequence[int] | IntArray
    rewards: Sequence[float] | FloatArray
    terminated: bool


def log_of_episodes(
    episodes: Sequence[Episode], *, n_states: int | None = None, end: bool | None = None, cells: Cells | None = None
) -> Transitions:
    """Converts episodes to a log.

    Args:
      episodes: at least one, each of at least one step.
      n_states: number of states, if observations are ids from 0.
      end: whether episodes that terminate end in one extra state, the last; None adds it if some of them end in states
        that are also passed through.
      cells: discretises observations. States are then the cells that occur, labelled by their centres, the process ends
        in an extra state, and the notes state the error of the cells.
    """
    if not episodes:
        raise ValueError("There are no episodes, expected at least one with a step.")
    length = [len(each.actions) for each in episodes]
    action, reward = (np.concatenate([np.asarray(x[k]) for x in episodes]) for k in (1, 2))
    ended = np.concatenate([[False] * (n - 1) + [each.terminated] for each, n in zip(episodes, length, strict=True)])
    shown = [np.asarray(each.observations) for each in episodes]
    notes: tuple[str, ...] = ()
    labels = Labels()
    if cells is None:
        state, following = (np.concatenate([x[k : k + n] for x, n in zip(shown, length, strict=True)]) for k in (0, 1))
        size = int(max(state.max(), following.max())) + 1 if n_states is None else n_states
        extra = passed_through(state, following, ended, size) if end is None else end
    else:
        everything = np.concatenate(shown)
        notes = cells.error_notes(everything)
        numbers = [cells.number(x) for x in shown]
        lasting = [x[: n + (not each.terminated)] for x, n, each in zip(numbers, length, episodes, strict=True)]
        known = np.unique(np.concatenate(lasting))
        state = np.searchsorted(known, np.concatenate([x[:n] for x, n in zip(numbers, length, strict=True)]))
        following = np.searchsorted(known, np.concatenate([x[1:] for x in numbers]))
        size, extra = len(known), bool(ended.any())
        labels = Labels(states=(*cells.labels(known), *((END_LABEL,) if extra else ())))
    return Transitions(
        state=state,
        action=action,
        reward=reward,
        next_state=np.where(ended, size, following) if extra else following,
        terminated=ended,
        episode=np.repeat(np.arange(len(episodes)), length),
        step=np.concatenate([np.arange(n) for n in length]),
        labels=labels,
        notes=notes,
    )


def passed_through(state: IntArray, following: IntArray, ended: BoolArray, n_states: int) -> bool:
    """Whether episodes end in states that are also left, or entered without ending."""
    passed = np.zeros(n_states, dtype=bool)
    passed[following[~ended]] = True
    passed[state] = True
    return bool(passed[following[ended]].any())
