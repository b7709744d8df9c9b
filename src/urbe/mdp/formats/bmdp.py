"""Read and write interval models of bmdp-tool: transition intervals and goal states.

    number of states
    number of actions
    number of terminal states, then their ids
    state action successor lower upper      one line for each transition

The format has no rewards: it describes reachability problems. Terminal states are goals, and entering one pays 1; with
discount 1 the value of a state is the probability of reaching a goal.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from urbe.atomic import replace_files, text_writer
from urbe.mdp.formats import assemble
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.text import (
    BLANK,
    GAP,
    NUMBER,
    Grammar,
    Path,
    content,
    explain_fields,
    lines_of_numbers,
    read_table,
    shown,
    whole_numbers,
)
from urbe.mdp.model import MDP
from urbe.types import BoolArray

_COLUMNS = ("state", "action", "successor", "lower", "upper")
_ROWS = Grammar(
    _COLUMNS,
    BLANK + GAP.join([f"({NUMBER})"] * 5) + BLANK,
    r"\1 \2 \3 \4 \5",
    explain_fields(_COLUMNS),
    plain=" ",
)
_HEAD = ("the number of states", "the number of actions", "the number of terminal states")


def read(path: Path, *, discount: float) -> MDP:
    """Reads a bmdp-tool file; see `urbe.read_mdp`. Transitions that leave a goal are ignored."""
    lines = content(path)
    (line, n_states), (_, n_actions), (_, n_goals) = (_count(path, lines, name) for name in _HEAD)
    goals: list[int] = []
    skip = len(_HEAD)
    while len(goals) < n_goals:
        goals += _goals(path, lines, n_states, n_goals - len(goals))
        skip += 1
    table = read_table(path, _ROWS, skip=skip)
    assemble.check_announced(path, line, n_states, len(table))

    terminal: BoolArray = np.zeros(n_states, dtype=bool)
    terminal[goals] = True
    s, t = table.ids("state", n_states), table.ids("successor", n_states)
    a = table.ids("action", min(n_actions, 2**31 - 1))
    bounds = table.numbers("lower"), table.numbers("upper")
    reward = terminal[t].astype(np.float64)
    return assemble.model(
        table, s, a, t, None, reward,
        discount=discount, n_states=n_states, terminal=terminal, bounds=bounds, keep=~terminal[s],
    )  # fmt: skip


def write(mdp: MDP, path: Path) -> None:
    """Writes an interval model whose only reward is 1 for entering a terminal state; see `urbe.write_mdp`."""
    assemble.require_transitions(mdp, "a bmdp-tool file")
    s, a, t, p, r = assemble.entry_columns(mdp)
    wrong = r != mdp.terminal[t]
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"The reward from state {s[at]}, action {a[at]} to state {t[at]} is {r[at]:g}, expected "
            f"{int(mdp.terminal[t[at]])}: bmdp-tool files have no rewards, only goals. Write another format."
        )
    lower, upper = (p, p) if mdp.bounds is None else mdp.bounds
    goals = np.flatnonzero(mdp.terminal)
    loops = (goals, np.zeros_like(goals), goals, np.ones(len(goals)), np.ones(len(goals)))
    columns = [np.concatenate(both) for both in zip((s, a, t, lower, upper), loops, strict=True)]

    def parts() -> Iterator[str]:
        yield f"{mdp.n_states}\n{mdp.n_actions}\n{len(goals)}\n" + "".join(f"{goal}\n" for goal in goals.tolist())
        yield from lines_of_numbers(columns, " ")

    replace_files({path: text_writer(parts())})


def _count(path: Path, lines: Iterator[tuple[int, str]], meaning: str) -> tuple[int, int]:
    """Line and value of the next line, one whole number."""
    line, text = next(lines, (None, ""))
    numbers = whole_numbers(text)
    if line is None or numbers is None or len(numbers) != 1:
        found = "the end of the file" if line is None else shown(text)
        raise ModelFileError(path, f"found {found}, expected {meaning}.", line)
    return line, numbers[0]


def _goals(path: Path, lines: Iterator[tuple[int, str]], n_states: int, missing: int) -> list[int]:
    """The ids on the next line."""
    line, text = next(lines, (None, ""))
    ids = whole_numbers(text)
    if line is None or ids is None or len(ids) > missing or max(ids) >= n_states:
        found = "the end of the file" if line is None else shown(text)
        raise ModelFileError(
            path, f"found {found}, expected the ids, below {n_states}, of {missing} more terminal states.", line
        )
    return ids
