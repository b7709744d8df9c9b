"""The files beside a PRISM `.tra` file: names of states, state rewards, transition rewards and labels."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator, Sequence

import numpy as np

from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.names import label_of, text_of, valuation, variables_of
from urbe.mdp.formats.text import (
    BLANK,
    GAP,
    NUMBER,
    Grammar,
    Path,
    TextTable,
    content,
    explain_fields,
    head,
    read_table,
    shown,
    whole_numbers,
)
from urbe.mdp.labels import Label
from urbe.types import FloatArray, IntArray

_LABEL_NAMES = re.compile(rf'(?:{BLANK}\d{{1,9}}="[^"\n]*+"{BLANK})++\n?+', re.ASCII)
_LABELLED = re.compile(rf"{BLANK}(\d{{1,18}}){BLANK}:({GAP}\d{{1,9}}(?:{GAP}\d{{1,9}})*+){BLANK}\n?+", re.ASCII)


_VALUED = re.compile(rf"{BLANK}(\d{{1,18}}):\((.*)\){BLANK}\n?+", re.ASCII)
_TRUTH = {"true": True, "false": False}
_ANY_NAME = "label"
"""The header of names that are no values of variables: a keyword of PRISM, so no variable is called so."""


def beside(path: Path, suffix: str) -> pathlib.Path:
    """The companion of a `.tra` file."""
    file = pathlib.Path(path).with_suffix(suffix)
    if file == pathlib.Path(path):
        raise ValueError(f"{file} is the name of a companion of a PRISM model; give its file of transitions, .tra.")
    return file


def pair_keys(s: IntArray, a: IntArray) -> IntArray:
    """`(N,)` one number for each pair of ids below 2^31, in lexicographic order."""
    keys: IntArray = s.astype(np.int64) * 2**31 + a
    return keys


def read_counts(path: Path, lengths: tuple[int, ...], names: str) -> tuple[int, list[int]]:
    """The line and the numbers of a header."""
    line, text = next(iter(head(path, 1)), (None, ""))
    counts = whole_numbers(text)
    if counts is None or len(counts) not in lengths:
        found = "an empty file" if line is None else shown(text)
        raise ModelFileError(path, f"found {found}, expected a header of whole numbers: {names}.", line)
    return line or 1, counts


def read_rewards(
    path: Path, table: TextTable, s: IntArray, choice: IntArray, t: IntArray, n_states: int, n_choices: int | None
) -> FloatArray:
    """`(N,)` r(s, a, s') of the transitions of `table`: the state's reward plus the transition's own.

    Args:
      path: the `.tra` file.
      table: its transitions, none of them twice.
      s, choice, t: `(N,)` their ids.
      n_states: number of states.
      n_choices: number of (state, choice) pairs, None for a chain.
    """
    pairs, row = np.unique(pair_keys(s, choice), return_inverse=True)
    key = row * n_states + t
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(np.diff(key[order]) == 0)
    if len(again):
        at = int(order[again + 1].min())
        table.fail(at, f"lists the transition from state {s[at]}, choice {choice[at]} to state {t[at]} again.")
    reward = np.zeros(len(s))
    of_states, of_moves = beside(path, ".srew"), beside(path, ".trew")
    if of_states.exists():
        reward = _state_rewards(of_states, n_states, s)[s]
    if of_moves.exists():
        names = ("state", "successor", "reward") if n_choices is None else ("state", "choice", "successor", "reward")
        header = [n_states] if n_choices is None else [n_states, n_choices]
        moves = _read_list(of_moves, names, header)
        source, target = moves.ids("state", n_states), moves.ids("successor", n_states)
        number = np.zeros_like(source) if n_choices is None else moves.ids("choice")
        at_pair = _position(pairs, pair_keys(source, number))
        entry = _position(key[order], at_pair * n_states + target)  # of an unknown pair, negative
        if (entry < 0).any():
            at = int(np.argmax(entry < 0))
            moves.fail(
                at, f"pays for a move from state {source[at]}, choice {number[at]} to state {target[at]} "
                f"that {pathlib.Path(path).name} does not have.",
            )  # fmt: skip
        _refuse_repeats(moves, entry)
        reward[order[entry]] += moves.numbers("reward")
    return reward


def read_states(path: Path, n_states: int) -> tuple[Label, ...] | None:
    """The names of all states in the `.sta` file beside a `.tra` file, if it exists."""
    file = beside(path, ".sta")
    if not file.exists():
        return None
    lines = content(file)
    line, text = next(lines, (None, ""))
    header = text.strip()
    if not (header.startswith("(") and header.endswith(")")):
        raise ModelFileError(file, f"found {shown(text)}, expected the variables of states, as (x,y).", line)
    variables = header[1:-1].split(",")
    names: dict[int, Label] = {}
    first: dict[Label, int] = {}
    for line, text in lines:
        match = _VALUED.fullmatch(text)
        values = [] if match is None else [match[2]] if variables == [_ANY_NAME] else match[2].split(",")
        if match is None or len(values) != len(variables) or int(match[1]) >= n_states:
            raise ModelFileError(file, f"found {shown(text)}, expected a state below {n_states}:{header}.", line)
        state, name = int(match[1]), label_of(values[0])
        if variables != [_ANY_NAME]:
            name = valuation({x: _TRUTH.get(y, y) for x, y in zip(variables, values, strict=True)})
        if state in names or first.setdefault(name, state) != state:
            raise ModelFileError(file, f"found {shown(text)}, expected each state once, and names that differ.", line)
        names[state] = name
    if len(names) != n_states:
        raise ModelFileError(file, f"has {len(names)} states, expected {n_states} as the file of transitions.")
    return tuple(names[state] for state in range(n_states))


def state_lines(names: Sequence[Label]) -> Iterator[str]:
    """The lines of a `.sta` file."""
    variables, rows = variables_of(names) or ((_ANY_NAME,), [[text_of(name)] for name in names])
    yield f"({','.join(variables)})\n"
    yield from (f"{state}:({','.join(values)})\n" for state, values in enumerate(rows))


def read_labels(path: Path, n_states: int) -> dict[str, IntArray]:
    """Those of the `.lab` file beside a `.tra` file."""
    return read_label_file(beside(path, ".lab"), n_states)


def read_label_file(file: pathlib.Path, n_states: int) -> dict[str, IntArray]:
    """The states, in order, of each label in a `.lab` file, if it exists; labels without states are left out."""
    if not file.exists():
        return {}
    lines = content(file)
    line, text = next(lines, (None, ""))
    if not _LABEL_NAMES.fullmatch(text):
        found = "an empty file" if line is None else shown(text)
        raise ModelFileError(file, f'found {found}, expected the labels\' names as 0="init" 1="deadlock".', line)
    names = dict(re.findall(r'(\d+)="([^"]*)"', text))
    holds: dict[str, set[int]] = {}
    for line, text in lines:
        match = _LABELLED.fullmatch(text)
        if match is None or int(match[1]) >= n_states:
            raise ModelFileError(file, f"found {shown(text)}, expected a state below {n_states}: its labels.", line)
        labels = match[2].split()
        unknown = [label for label in labels if label not in names]
        if unknown:
            raise ModelFileError(file, f"found the label {unknown[0]}, which the first line does not name.", line)
        for label in labels:
            holds.setdefault(names[label], set()).add(int(match[1]))
    return {name: np.array(sorted(states), dtype=np.int64) for name, states in holds.items()}


def _state_rewards(file: pathlib.Path, n_states: int, s: IntArray) -> FloatArray:
    table = _read_list(file, ("state", "reward"), [n_states])
    states, reward = table.ids("state", n_states), table.numbers("reward")
    _refuse_repeats(table, states)
    acts = np.zeros(n_states, dtype=bool)
    acts[s] = True
    lost = ~acts[states] & (reward != 0.0)
    if lost.any():
        at = int(np.argmax(lost))
        table.fail(
            at, f"pays {reward[at]:g} in state {states[at]}, which has no choices and so ends the process; "
            "expected 0, or a choice that stays there.",
        )  # fmt: skip
    out = np.zeros(n_states)
    out[states] = reward
    return out


def _read_list(file: pathlib.Path, names: tuple[str, ...], header: list[int]) -> TextTable:
    """A table of rewards whose header repeats the sizes of the model and counts the rows."""
    match = "states " + ("choices " if len(header) == 2 else "") + "rewards"
    line, counts = read_counts(file, (len(header) + 1,), match)
    row = BLANK + GAP.join([f"({NUMBER})"] * len(names)) + BLANK
    template = " ".join(rf"\g<{i + 1}>" for i in range(len(names)))
    table = read_table(file, Grammar(names, row, template, explain_fields(names), plain=" "), skip=1)
    if counts != [*header, len(table)]:
        expected = " ".join(map(str, (*header, len(table))))
        raise ModelFileError(
            file, f"its header is {' '.join(map(str, counts))}, expected {expected} ({match}) for this model.", line
        )
    return table


def _refuse_repeats(table: TextTable, ids: IntArray) -> None:
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(again):
        table.fail(int(order[again + 1].min()), "repeats an earlier line, expected one reward for each.")


def _position(values: IntArray, wanted: IntArray) -> IntArray:
    """The position of each wanted number in a sorted array, -1 for missing ones."""
    at = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return np.where(values[at] == wanted, at, -1)
