"""Read policies from CSV and Parquet files: a row for each state, or for each action of positive probability.

    state,action[,probability][,step]

Other columns, such as those that `write_policy` and `Solution.write` add, are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from urbe import checks
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.parquet import table_in
from urbe.mdp.formats.text_columns import read_text
from urbe.mdp.frames import Column, RowError, frame_column, frame_names, numbers
from urbe.mdp.model import MDP, check_model
from urbe.mdp.transitions import match_names, require_names
from urbe.types import BoolArray, FloatArray, IntArray

NOTHING = ("end", "-1", "")
"""The action of a terminal state."""


def read_policy(
    path: str | os.PathLike[str], mdp: MDP, *, names: Mapping[str, str] | None = None
) -> IntArray | FloatArray | list[Any]:
    """Reads a policy for a model, for `evaluate_policy`.

    The file has the columns `state` and `action`, by label or id as in the model; `probability` if the policy is
    randomised; and `step`, from 0, if it depends on the step. Rows may be in any order. It may have been written by
    `write_policy` or `Solution.write`.

    Args:
      path: ends in .csv, .tsv or .txt, each also with .gz, or in .parquet or .pq.
      mdp: the model.
      names: names of columns that differ from the usual ones, as in `{"action": "decision"}`.

    Returns:
      `(S,)` action ids, -1 at terminal states, or `(S, A)` probabilities; of every step, if there are steps.

    Raises:
      ModelFileError: a ValueError that names the file, the line (or row) and the column, and what was expected.

    >>> import tempfile, urbe
    >>> river = urbe.library.riverswim(3, discount=0.9)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "policy.csv")
    ...     _ = file.write_text("state,action\\n2,1\\n0,1\\n1,0\\n")
    ...     urbe.read_policy(file, river)
    array([1, 0, 1])
    """
    check_model("mdp", mdp)
    checks.file_path("path", path)
    parquet = Path(path).suffix.lower() in (".parquet", ".pq")
    table = table_in(path) if parquet else read_text(path)
    lines = None if parquet else table.lines
    try:
        return _policy(table, mdp, names)
    except RowError as error:
        if lines is None:
            raise ModelFileError(
                path, f"row {error.row} {error.message} Rows count from 0.", column=error.name
            ) from None
        found = error.message.replace("is '", "found '", 1)
        raise ModelFileError(path, found, lines[error.row], error.name) from None
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(path, str(error)) from None


def _policy(table: Any, mdp: MDP, names: Mapping[str, str] | None) -> IntArray | FloatArray | list[Any]:
    given = frame_names(table)
    found = match_names(given, ("state", "action", "probability", "step"), names)
    try:
        require_names(found, given, ("state", "action"))
    except ValueError as error:
        raise ValueError(f"{error} Name the columns state and action in the first line.") from None
    columns = {name: frame_column(table, own, as_labels=name in ("state", "action")) for name, own in found.items()}
    states = _ids(columns["state"], {mdp.labels.state(s): s for s in range(mdp.n_states)}, "state")
    ends = {} if mdp.labels.actions is not None and "end" in mdp.labels.actions else dict.fromkeys(NOTHING, -1)
    known = ends | {mdp.labels.action(a): a for a in range(mdp.n_actions)}
    actions = _ids(columns["action"], known, "action", mdp.terminal[states])
    shares = numbers(columns["probability"]) if "probability" in columns else None
    if "step" not in columns:
        return _one(columns["state"], mdp, np.arange(len(states)), states, actions, shares)
    steps = numbers(columns["step"])
    if sorted(set(steps.tolist())) != list(range(len(set(steps.tolist())))):
        raise ValueError(f"the column {columns['step'].name} has other steps than 0, 1, 2, ..., without a gap.")
    return [
        _one(columns["state"], mdp, np.flatnonzero(steps == step), states, actions, shares)
        for step in range(int(steps.max()) + 1)
    ]


def _one(
    column: Column, mdp: MDP, rows: IntArray, states: IntArray, actions: IntArray, shares: FloatArray | None
) -> IntArray | FloatArray:
    """The policy in some rows."""
    acting = rows[~mdp.terminal[states[rows]]]
    left = np.setdiff1d(np.flatnonzero(~mdp.terminal), states[acting])
    if len(left):
        raise ValueError(
            f"has no action for {checks.listing(mdp.labels.state_texts(left))}, expected one for every state."
        )
    if shares is not None:
        weights = np.zeros((mdp.n_states, mdp.n_actions))
        np.add.at(weights, (states[acting], actions[acting]), shares[acting])
        return weights
    order = acting[np.argsort(states[acting], kind="stable")]
    again = np.flatnonzero(np.diff(states[order]) == 0)
    if len(again):
        row = int(order[again + 1].min())
        state = mdp.labels.state(int(states[row]))
        raise RowError(
            column.name, row, f"gives a second action for {state}, expected one for every state, or a column "
            "probability.",
        )  # fmt: skip
    policy = np.full(mdp.n_states, -1, dtype=np.int64)
    policy[states[acting]] = actions[acting]
    return policy


def _ids(column: Column, known: Mapping[str, int], meaning: str, idle: BoolArray | None = None) -> IntArray:
    """The ids of labels or ids that are written as texts or numbers; anything may stand where a state is idle."""
    out = np.full(len(column), -1, dtype=np.int64)
    for row, value in enumerate(column.values.tolist()):
        text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        text = "" if column.missing[row] else text.strip()
        if idle is not None and idle[row]:
            continue
        if text not in known or known[text] < 0:
            article = "an" if meaning == "action" else "a"
            listed = checks.listing([each for each in known if known[each] >= 0], 10)
            raise RowError(column.name, row, f"is {text!r}, expected {article} {meaning} of the model: {listed}.")
        out[row] = known[text]
    return out
