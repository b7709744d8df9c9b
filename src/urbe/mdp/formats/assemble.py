"""Build a checked model from the columns of a file; errors name the file and the line."""

from __future__ import annotations

import numpy as np

from urbe import checks
from urbe.mdp.build import from_transitions
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.text import Path, TextTable
from urbe.mdp.intervals import PairError
from urbe.mdp.model import MDP
from urbe.types import BoolArray, FloatArray, IntArray

# Text often has six digits, the default of C++ streams; PRISM too accepts rows this far from one.
ROW_TOLERANCE = 1e-5

# A header may announce states that no transition mentions; more than this would only cost memory.
SPARE_STATES = 1_000_000


def model(
    table: TextTable,
    s: IntArray,
    a: IntArray,
    t: IntArray,
    p: FloatArray | None,
    r: FloatArray,
    *,
    discount: float,
    n_states: int,
    terminal: BoolArray,
    initial: FloatArray | None = None,
    bounds: tuple[FloatArray, FloatArray] | None = None,
    keep: BoolArray | slice = slice(None),
) -> MDP:
    """Builds the model of the transitions in the rows of `table` that `keep` selects."""
    lower, upper = (None, None) if bounds is None else (bounds[0][keep], bounds[1][keep])
    try:
        return from_transitions(
            s[keep],
            a[keep],
            t[keep],
            None if p is None else p[keep],
            r[keep],
            discount=discount,
            n_states=n_states,
            terminal=terminal,
            initial=initial,
            row_tolerance=ROW_TOLERANCE,
            lower=lower,
            upper=upper,
        )
    except PairError as error:
        table.fail(int(np.argmax((s == error.state) & (a == error.action))), error.message)
    except ValueError as error:
        raise ModelFileError(table.path, str(error)) from None


def check_announced(path: Path, line: int, n_states: int, n_transitions: int) -> None:
    """Raises if a header announces far more states than the transitions can mention."""
    if not 0 < n_states <= min(2 * n_transitions + SPARE_STATES, 2**31 - 1):
        raise ModelFileError(
            path,
            f"found {n_states} states for {n_transitions} transitions, expected from 1 "
            f"to {min(2 * n_transitions + SPARE_STATES, 2**31 - 1)}.",
            line,
        )


def require_transitions(mdp: MDP, format_name: str) -> None:
    """Raises for a model without rows: a list of transitions cannot hold it."""
    if not mdp.n_rows:
        raise ValueError(f"The model has no transitions, so {format_name} cannot hold it; write it as .npz.")


def uniform_starts(mdp: MDP, format_name: str) -> IntArray:
    """The initial states; raises if they are not equally likely, which the format cannot store."""
    if mdp.initial is None:
        return np.zeros(0, dtype=np.int64)
    states = np.flatnonzero(mdp.initial)
    share = mdp.initial[states]
    if np.abs(share - 1.0 / len(states)).max() > 1e-12:
        raise ValueError(
            f"initial gives the states {checks.listing(states.tolist())} the probabilities "
            f"{checks.listing([f'{x:.6g}' for x in share])}, but {format_name} can only store equal probabilities; "
            "write .npz, or drop it with dataclasses.replace(mdp, initial=None)."
        )
    return states


def entry_columns(mdp: MDP) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
    """state, action, successor, probability and reward of each entry, `(E,)` each."""
    rows = mdp.rows
    at = rows.entry_row
    return mdp.row_state[at], mdp.action[at], rows.successor, rows.probability, rows.reward_per_entry
