"""Build a model from a function that lists the outcomes of an action.

step(state, action) -> [(probability, next_state, reward), ...]
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from urbe import checks, memory
from urbe.mdp import build
from urbe.mdp.intervals import PairError
from urbe.mdp.labels import Label, Labels
from urbe.mdp.model import MDP
from urbe.mdp.model_columns import in_labels
from urbe.mdp.start import first_states
from urbe.progress import progress as shown_progress

Outcomes = Iterable[tuple[float, Hashable, float]]
Actions = Sequence[Hashable] | Callable[[Any], Iterable[Hashable]]

BLOCK = 1024
"""Progress and memory are checked after this many states."""

ENTRY_BYTES = 28.0 + 60.0
"""Peak bytes of a successor: while it is collected, and while the model is built."""


class Collected(NamedTuple):
    """Transitions in the order in which they were found."""

    state: array[int]
    action: array[int]
    successor: array[int]
    probability: array[float]
    reward: array[float]


def from_function(
    states: Iterable[Hashable],
    actions: Actions,
    step: Callable[[Any, Any], Outcomes],
    *,
    discount: float,
    terminal: Iterable[Hashable] = (),
    initial: Any = None,
    progress: bool = False,
) -> MDP:
    """Builds a model from a function; see `MDP.from_function`."""
    listed = list(states)
    strange = next((state for state in listed if not isinstance(state, Hashable)), None)
    if strange is not None:
        raise TypeError(
            f"states has {checks.shown(strange)}, expected values that can be keys of a dict, such as tuples "
            "in place of lists."
        )
    number = {state: k for k, state in enumerate(listed)}
    if not listed or len(number) < len(listed):
        found = "is empty" if not listed else f"has {len(listed) - len(number)} states twice"
        raise ValueError(f"states {found}, expected each state once.")
    ends = set(terminal)
    stray = [state for state in ends if state not in number]
    if stray:
        raise ValueError(f"terminal has {stray[0]!r}, expected one of the states.")
    if not callable(step):
        raise TypeError(f"step is {checks.shown(step)}, expected a function of state and action.")
    given = actions if callable(actions) else list(actions)
    action_number: dict[Hashable, int] = {} if callable(given) else {a: k for k, a in enumerate(given)}
    found_transitions = Collected(array("i"), array("i"), array("i"), array("d"), array("d"))
    with shown_progress("building the model", len(listed), unit="states", shown=progress) as show:
        for k, state in enumerate(listed):
            if k % BLOCK == 0 and k:
                _require_memory(len(found_transitions.state) / k, len(listed))
                show(k)
            if state in ends:
                continue
            for action in given(state) if callable(given) else given:
                at = action_number.setdefault(action, len(action_number))
                try:
                    outcomes = step(state, action)
                    outcomes = list(outcomes) if isinstance(outcomes, Iterable) else outcomes
                except Exception as error:
                    error.add_note(f"Raised by step({state!r}, {action!r}).")
                    raise
                _collect(found_transitions, k, at, state, action, outcomes, number)
        show(len(listed))
    labels = Labels(_labels(listed), _labels(list(action_number)))
    s, a, t = (np.array(each, dtype=np.int32) for each in found_transitions[:3])
    p, r = (np.array(each, dtype=np.float64) for each in found_transitions[3:])
    left = np.zeros(len(listed), dtype=bool)
    left[s] = True
    if not len(s):
        raise ValueError("No state has an action that leads anywhere, expected at least one transition.")
    try:
        mdp = build.from_transitions(
            s, a, t, p, r, discount=discount, n_states=len(listed), terminal=np.flatnonzero(~left)
        )
    except PairError as error:
        raise PairError(error.state, error.action, in_labels(error, labels)) from None
    mdp = replace(mdp, labels=labels)
    if initial is None:
        return mdp
    return replace(mdp, initial=first_states(mdp, "initial", _start(initial, number)))


def _collect(
    into: Collected, k: int, at: int, state: Hashable, action: Hashable, outcomes: Any, number: dict[Hashable, int]
) -> None:
    """Collects the outcomes of one pair."""
    if not isinstance(outcomes, Iterable):
        raise ValueError(
            f"step({state!r}, {action!r}) is {checks.shown(outcomes)}, expected a list of "
            "(probability, next_state, reward)."
        )
    for j, outcome in enumerate(outcomes):
        call = f"step({state!r}, {action!r})[{j}]"
        try:
            p, following, r = outcome
        except (TypeError, ValueError):
            shown = checks.shown(outcome)
            raise ValueError(f"{call} is {shown}, expected (probability, next_state, reward).") from None
        if following not in number:
            raise ValueError(f"{call} leads to {following!r}, expected one of the {len(number)} states.")
        into.state.append(k)
        into.action.append(at)
        into.successor.append(number[following])
        into.probability.append(checks.number(f"{call}, the probability,", p, 0.0, 1.0 + 1e-9))
        into.reward.append(checks.finite_number(f"{call}, the reward,", r))


def _require_memory(per_state: float, n_states: int) -> None:
    n_entries = per_state * n_states
    memory.require(
        {f"a model of about {n_entries:.3g} transitions, as the first states have them": ENTRY_BYTES * n_entries},
        "Use fewer states, or leave out successors of probability zero.",
    )


def _labels(values: Sequence[Hashable]) -> tuple[Label, ...] | None:
    """Labels: strings and numbers unchanged, anything else as it prints; None if they are 0, 1, 2, ..."""
    if all(type(value) is int and value == k for k, value in enumerate(values)):
        return None
    plain = all(isinstance(value, (str, int, float)) and not isinstance(value, bool) for value in values)
    return tuple(values) if plain else tuple(str(value) for value in values)  # type: ignore[arg-type]


def _start(initial: Any, number: dict[Hashable, int]) -> Any:
    """Converts the first states, given by entries of `states`, to `(S,)` probabilities."""
    weights = np.zeros(len(number))
    if isinstance(initial, Hashable) and initial in number:
        weights[number[initial]] = 1.0
        return weights
    if isinstance(initial, dict) and all(state in number for state in initial):
        weights[[number[state] for state in initial]] = list(initial.values())
        return weights
    return initial
