"""Infer the structure of a model from a log: pairs, successors and terminal states.

Probabilities are uniform and rewards zero: a posterior uses neither.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.mdp.build import from_rows
from urbe.mdp.labels import LARGEST_ID
from urbe.mdp.model import MDP, fitting_labels
from urbe.mdp.terminal import terminal_ids
from urbe.mdp.transitions import Transitions
from urbe.types import BoolArray, IntArray

Feasible = Literal["observed", "all"]
"""Feasible successors of a pair: those observed in the log, or every state."""

ENTRY_BYTES = 55.0
"""Peak memory of a fit per feasible successor: the model, the entries of the log's transitions, and counts."""


def infer(
    transitions: Transitions,
    *,
    discount: float,
    n_states: int | None = None,
    n_actions: int | None = None,
    feasible: Feasible = "observed",
    terminal: ArrayLike = (),
) -> MDP:
    """Infers pairs and feasible successors from a log; see `Posterior.fit` for the arguments."""
    checks.one_of("feasible", feasible, ("observed", "all"))
    named = transitions.labels.states
    n_named = n_states if named is None or n_states is not None else len(named)
    size = _bound("state", n_named, transitions.state, transitions.next_state)
    actions = _bound("action", n_actions, transitions.action)
    ends = _ends(transitions, terminal, size)
    leaves = ~ends[transitions.state]
    _no_way_on(transitions, leaves)
    every_pair = feasible == "all" and n_actions is not None
    if not every_pair:
        _no_dead_ends(transitions, ends, feasible)

    s, a, t = (x[leaves] for x in (transitions.state, transitions.action, transitions.next_state))
    if every_pair:
        s, a = (grid.ravel() for grid in np.meshgrid(np.flatnonzero(~ends), np.arange(actions), indexing="ij"))
    elif feasible == "all":
        s, a = _distinct(s, a, bound=(size, actions))
    if feasible == "all":
        memory.require(
            {f"a posterior of {len(s)} pairs that may each lead to {size} states": ENTRY_BYTES * len(s) * size},
            "Use feasible='observed', or give model= with the successors that are possible.",
        )
        length, t = np.full(len(s), size), np.tile(np.arange(size, dtype=np.int32), len(s))
    else:
        s, a, t = _distinct(s, a, t, bound=(size, actions, size))
        first = np.flatnonzero(np.append(True, (s[1:] != s[:-1]) | (a[1:] != a[:-1]))[: len(s)])
        length = np.diff(np.append(first, len(s)))
        s, a = s[first], a[first]
    model = from_rows(
        state=s,
        action=a,
        length=length,
        successor=t,
        probability=np.repeat(1.0 / length, length),
        row_reward=np.zeros(len(s)),
        entry_reward=None,
        n_states=size,
        discount=discount,
    )
    return replace(model, labels=fitting_labels(transitions.labels, size, model.n_actions))


def _bound(name: str, given: int | None, *columns: IntArray) -> int:
    """Returns the number of states or actions: as given, or one more than the largest id."""
    largest = max(int(column.max()) for column in columns)
    if given is None:
        return largest + 1
    size = checks.whole_number(f"n_{name}s", given, 1)
    if largest >= size:
        at = next(int(np.argmax(column >= size)) for column in columns if column.max() >= size)
        raise ValueError(f"Transition {at} names {name} {largest}, expected ids below n_{name}s = {size}.")
    if size > LARGEST_ID + 1:
        raise ValueError(f"n_{name}s is {size}, expected at most {LARGEST_ID + 1}.")
    return size


def _ends(transitions: Transitions, terminal: ArrayLike, n_states: int) -> BoolArray:
    """`(S,)` the declared terminal states and those entered with `terminated`."""
    ends = np.zeros(n_states, dtype=bool)
    labels = transitions.labels
    declared = terminal if labels.states is None else labels.state_ids("terminal", terminal)
    ends[terminal_ids(declared, n_states)] = True
    if transitions.terminated is not None:
        ends[transitions.next_state[transitions.terminated]] = True
    return ends


def _no_way_on(transitions: Transitions, leaves: BoolArray) -> None:
    """Raises if the log leaves a terminal state; loops of reward 0 are allowed."""
    loop = (transitions.state == transitions.next_state) & (transitions.reward == 0.0)
    wrong = ~leaves & ~loop
    if wrong.any():
        at = int(np.argmax(wrong))
        state, action, labels = int(transitions.state[at]), int(transitions.action[at]), transitions.labels
        ended = transitions.terminated is not None and transitions.terminated & (transitions.next_state == state)
        cause = f"transition {int(np.argmax(ended))} ended there" if np.any(ended) else "it is declared terminal"
        raise ValueError(
            f"Transition {at} leaves state {labels.state(state)} by action {labels.action(action)}, although {cause}. "
            "If an episode can end in a state that is also passed through, send the transitions that end to a state of "
            "their own."
        )


def _no_dead_ends(transitions: Transitions, ends: BoolArray, feasible: Feasible) -> None:
    """Raises for reachable, non-terminal states that no known transition leaves."""
    known = ends.copy()
    known[transitions.state] = True
    entered = np.flatnonzero(~known[transitions.next_state])
    if not len(entered):
        if feasible == "all" and not known.all():
            states = np.flatnonzero(~known)
            raise ValueError(
                f"{checks.some(len(states), 0, 'state', 'states')} never mentioned: "
                f"{checks.listing(states.tolist())}; with feasible='all' every pair may lead there. Give n_actions= so "
                "that they have actions, or declare them terminal=."
            )
        return
    name = transitions.labels.state(int(transitions.next_state[entered[0]]))
    count = len(np.unique(transitions.next_state[entered]))
    more = "" if count == 1 else f" ({count} states are like that)"
    advice = "n_actions=" if feasible == "all" else "feasible='all' with n_actions="
    raise ValueError(
        f"Transition {entered[0]} enters state {name}, which no transition leaves{more}. If the process ends there, "
        f"mark it with terminated or terminal=[{name}, ...]; if the log is only cut off there, give model=, or "
        f"{advice} so that the state has actions about which nothing is known."
    )


def _distinct(*columns: IntArray, bound: tuple[int, ...]) -> list[IntArray]:
    """Returns the distinct rows of some columns, sorted; column k has values below `bound[k]`."""
    if np.prod([float(b) for b in bound]) < 2.0**62:  # sorting one number per row is fastest
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for column, b in zip(columns, bound, strict=True):
            key *= b
            key += column
        key.sort()  # np.unique hashes, which is forty times slower
        key, out = key[np.append(True, key[1:] != key[:-1])[: len(key)]], []
        for b in reversed(bound):
            key, digit = np.divmod(key, b)
            out.append(digit)
        return out[::-1]
    return list(np.unique(np.stack(columns, axis=1), axis=0).T)
