"""Interval models of bmdp-tool: a file of transition intervals and goal states.

    number of states
    number of actions
    number of terminal states, then their ids
    state action successor lower upper      one line for each transition

The format has no rewards: its question is how likely a terminal state is reached. So the terminal states are goals,
and entering one pays 1; with discount 1 the value of a state is the probability of reaching them.
"""

from __future__ import annotations

import numpy as np

from urbe.io import assemble
from urbe.io.atomic import replace_files, text_writer
from urbe.io.errors import ModelFileError
from urbe.io.text import BLANK, GAP, NUMBER, Grammar, Path, explain_fields, head, read_table, shown, whole_numbers
from urbe.mdp.model import MDP
from urbe.types import BoolArray

_NAMES = ("state", "action", "successor", "lower", "upper")
_ROWS = Grammar(
    _NAMES,
    BLANK + GAP.join([f"({NUMBER})"] * 5) + BLANK,
    r"\1 \2 \3 \4 \5",
    explain_fields(_NAMES),
    plain=" ",
)


def read(path: Path, *, discount: float) -> MDP:
    """The model of a bmdp-tool file; see `urbe.io.read_mdp`. Transitions that leave a goal are not read."""
    n_states, n_actions, goals, skip = _head(path)
    table = read_table(path, _ROWS, skip=skip)
    line = head(path, 1)[0][0]
    assemble.check_announced(path, line, n_states, len(table))
    goals_too_large = [goal for goal in goals if goal >= n_states]
    if goals_too_large:
        raise ModelFileError(path, f"names the terminal state {goals_too_large[0]}, expected ids below {n_states}.")
    terminal = np.zeros(n_states, dtype=bool)
    terminal[goals] = True
    s, t = table.ids("state", n_states), table.ids("successor", n_states)
    a = table.ids("action", n_actions)
    bounds = table.numbers("lower"), table.numbers("upper")
    stays = ~terminal[s]
    reward = terminal[t].astype(float)
    if not stays.all():
        kept = type(table)(table.path, table.columns, table.values[stays], table.skip)
        rows = np.flatnonzero(stays)
        return assemble.model(
            assemble.Part(kept, rows, table),
            s[stays],
            a[stays],
            t[stays],
            None,
            reward[stays],
            discount=discount,
            n_states=n_states,
            terminal=terminal,
            bounds=(bounds[0][stays], bounds[1][stays]),
        )
    return assemble.model(
        table, s, a, t, None, reward, discount=discount, n_states=n_states, terminal=terminal, bounds=bounds
    )
