"""Read and write policies and budgets as CSV files in the format of craam and craam2."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.atomic import replace_files, text_writer
from urbe.mdp.formats.csv_table import csv_text, read_columns
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.text import Path
from urbe.mdp.labels import NO_LABELS, Labels
from urbe.mdp.model import MDP
from urbe.tables import write_table
from urbe.types import FloatArray


def read_budget(path: Path, mdp: MDP) -> FloatArray:
    """`(R,)` one number for each row of `mdp`, from a CSV file `idstate,idaction,budget`.

    Every pair of the model must be listed exactly once; a budget is the radius of the pair's ambiguity set.
    """
    table = read_columns(path, ("idstate", "idaction", "budget"))
    s, a, budget = table.ids("idstate", mdp.n_states), table.ids("idaction"), table.non_negative("budget")
    key = s * 2**31 + a
    pairs = mdp.row_state.astype(np.int64) * 2**31 + mdp.action
    row = np.minimum(np.searchsorted(pairs, key), mdp.n_rows - 1)
    known = pairs[row] == key if mdp.n_rows else np.zeros(len(key), dtype=bool)
    if not known.all():
        at = int(np.argmin(known))
        table.fail(at, f"gives a budget for state {s[at]}, action {a[at]}, a pair that the model does not have.")
    order = np.argsort(row, kind="stable")
    again = np.flatnonzero(np.diff(row[order]) == 0)
    if len(again):
        at = int(order[again + 1].min())
        table.fail(at, f"gives a second budget for state {s[at]}, action {a[at]}; expected one for every pair.")
    if len(row) < mdp.n_rows:
        missing = np.setdiff1d(np.arange(mdp.n_rows), row)
        names = [mdp.row_name(int(at)) for at in missing[:5]]
        listed = "; ".join(names) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise ModelFileError(path, f"has no budget for {listed}; expected one for every pair of the model.")
    out = np.empty(mdp.n_rows)
    out[row] = budget
    return out


def write_policy(path: Path, policy: ArrayLike, value: ArrayLike, labels: Labels = NO_LABELS) -> None:
    """Writes a policy and its values as CSV.

    Args:
      path: the file.
      policy: `(S,)` action of each state, -1 at terminal states, for the columns `idstate,idaction,value`; or
        `(S, A)` probabilities, zero throughout at terminal states, for `idstate,idaction,probability,value` with
        one line for each action of positive probability (at terminal states, action -1 of probability 1).
      value: `(S,)`.
      labels: of the model; if it has any, the file has them in place of ids, and `end` in place of -1.
    """
    v = checks.float_array("value", value, ndim=1)
    if np.ndim(policy) == 1:
        chosen = checks.int_array("policy", policy, -1, None, "action")
        if len(chosen) != len(v):
            raise ValueError(f"policy has {len(chosen)} entries and value {len(v)}; expected one of each per state.")
        names = ["idstate", "idaction", "value"]
        columns: list[np.ndarray] = [np.arange(len(v)), chosen, v]
    else:
        names = ["idstate", "idaction", "probability", "value"]
        columns = _random_policy(checks.float_array("policy", policy, ndim=2), v)
    if labels:
        columns[:2] = [labels.state_column(columns[0]), labels.action_column(columns[1])]
        write_table(path, dict(zip(names, columns, strict=True)), format="csv")
        return
    replace_files({path: text_writer(csv_text(names, columns))})


def _random_policy(policy: FloatArray, v: FloatArray) -> list[np.ndarray]:
    if len(policy) != len(v):
        raise ValueError(f"policy has {len(policy)} lines and value {len(v)} entries; expected one per state.")
    checks.non_negative("policy", policy)
    total = policy.sum(axis=1)
    wrong = (np.abs(total - 1.0) > 1e-9) & (total != 0.0)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"policy[{at}] sums to {total[at]:.12g}, expected 1 (or 0 where the state is terminal).")
    s, a = np.nonzero(policy)
    ends = np.flatnonzero(total == 0.0)
    state = np.concatenate((s, ends))
    order = np.argsort(state, kind="stable")
    action = np.concatenate((a, np.full(len(ends), -1)))
    probability = np.concatenate((policy[s, a], np.ones(len(ends))))
    return [state[order], action[order], probability[order], v[state[order]]]
