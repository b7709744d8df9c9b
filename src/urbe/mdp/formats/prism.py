"""PRISM's explicit files: transitions in `.tra`, and beside it `.sta`, `.lab`, `.srew`, `.trew` with the same stem.

    .tra   states choices transitions       then  state choice successor probability [action]
           states transitions               then  state successor probability, a chain: one action, 0
    .sta   (x,broken)                       then  state:(1,true)   named by its variables, `x=1 & broken`; below
           (label)                          then  state:(any text) other names
    .lab   0="init" 1="deadlock" ...        then  state: labels      init: where the process starts, uniformly;
                                                                     others, such as "goal", are `MDP.propositions`
    .srew  states rewards                   then  state reward                       collected on leaving a state
    .trew  states choices rewards           then  state choice successor reward      added to it

A probability may be an interval `[lower,upper]`; the nominal model is then the centre of the intervals. A state
without choices is terminal. Columns are identified by position, and the header decides between a chain and a decision
process, so a name may be any word without blanks: `east`, `0`, `(1,2)`. IntervalMDP.jl writes numbers there, in recent
versions the position of the choice in the whole file. Where all names are numbers, or do not distinguish the choices
of each state, or some transitions have none, actions are therefore the choices, numbered as the file does. Other names
become labels of actions. The exception are names `a0`, `a1`, ..., which are ids: `write` uses them for models without
labels whose actions are not 0, 1, 2, ... in each state.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from urbe import memory
from urbe.atomic import replace_files, text_writer
from urbe.mdp.formats import assemble, prism_parts
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.label_file import label_lines
from urbe.mdp.formats.names import words_of
from urbe.mdp.formats.prism_parts import beside, pair_keys, read_counts
from urbe.mdp.formats.text import (
    BLANK,
    GAP,
    NUMBER,
    Explain,
    Grammar,
    Path,
    TextTable,
    contains,
    content,
    head,
    lines_of_numbers,
    read_table,
    shown,
)
from urbe.mdp.labels import Label, Labels
from urbe.mdp.model import MDP
from urbe.types import FloatArray, IntArray

Columns = Sequence[np.ndarray]

TRANSITION_BYTES = 190.0
"""Of one transition at the peak: as a row of the table, as ids, and sorted to tell the choices apart."""

SHORTEST_LINE = 8  # "0 0 0 1" and its end

_INTERVAL = rf"\[{BLANK}({NUMBER}){BLANK},{BLANK}({NUMBER}){BLANK}\]"
_NAME = re.compile(rf"(?>(?:\S++{GAP}){{3}})(?:\[[^\]]*+\]|[^\s\[]\S*+){BLANK}(\S*+)")
_NUMBER = re.compile(NUMBER, re.ASCII)
_ID = re.compile(r"a\d{1,9}", re.ASCII)
_NAMED = re.compile(r"[ \t]a\d{1,9}\s*\Z", re.ASCII)


def read(path: Path, *, discount: float) -> MDP:
    """The model of a `.tra` file and its companions; see `urbe.read_mdp`."""
    line, counts = read_counts(path, (3, 2), "states choices transitions")
    n_states, chain = counts[0], len(counts) == 2
    announced = min(counts[-1], os.path.getsize(path) // SHORTEST_LINE)
    memory.require(
        {f"{announced} transitions of {path}, read and sorted": TRANSITION_BYTES * announced},
        "Use a smaller file, or an .npz file, which takes a tenth of that.",
    )
    interval = contains(path, "[")
    table, named = _read_transitions(path, chain, interval)
    if len(table) != counts[-1]:
        raise ModelFileError(path, f"has {len(table)} transitions, expected {counts[-1]} as its header says.", line)
    assemble.check_announced(path, line, n_states, len(table))

    s, t = table.ids("state", n_states), table.ids("successor", n_states)
    choice = np.zeros_like(s) if chain else table.ids("choice")
    pairs, first, row = np.unique(pair_keys(s, choice), return_index=True, return_inverse=True)
    if not chain and len(pairs) != counts[1]:
        raise ModelFileError(path, f"has {len(pairs)} choices, expected {counts[1]} as its header says.", line)
    reward = prism_parts.read_rewards(path, table, s, choice, t, n_states, None if chain else counts[1])
    terminal = np.ones(n_states, dtype=bool)
    terminal[s] = False
    holds = prism_parts.read_labels(path, n_states)
    starts = holds.pop("init", np.zeros(0, dtype=np.int64))
    action, labels = _actions(s, choice, named, first, row), None
    if named is None and not chain:
        action, labels = _labelled(path, s, choice, first, row)
    mdp = assemble.model(
        table,
        s,
        action,
        t,
        None if interval else table.probabilities("probability"),
        reward,
        discount=discount,
        n_states=n_states,
        terminal=terminal,
        initial=np.bincount(starts, minlength=n_states) / len(starts) if len(starts) else None,
        bounds=(table.numbers("lower"), table.numbers("upper")) if interval else None,
    )
    names = Labels(prism_parts.read_states(path, n_states), labels)
    return replace(
        mdp, labels=names, propositions={name: states for name, states in holds.items() if name != "deadlock"}
    )


def write(mdp: MDP, path: Path) -> None:
    """Writes `.tra`, `.lab`, `.sta` if states have names, and `.srew`, or `.trew` when rewards differ within a state.

    See `urbe.write_mdp`.
    """
    assemble.require_transitions(mdp, "a PRISM file")
    initial = assemble.uniform_starts(mdp, "a PRISM file")
    s, a, t, p, r = assemble.entry_columns(mdp)
    choice = (np.arange(mdp.n_rows) - mdp.row_start[:-1].astype(np.int64)[mdp.row_state])[mdp.rows.entry_row]
    by_state = _state_rewards(s, r)
    paid = r != 0.0
    nowhere = np.zeros(0, dtype=np.int64)
    files: dict[str, Iterator[str]] = {".lab": _labels(mdp, initial)}
    # The other file of rewards, when an earlier model left one, must not be read with this model.
    if by_state is not None or beside(path, ".srew").exists():
        of_states: Columns = by_state or (nowhere, nowhere)
        files[".srew"] = _table(f"{mdp.n_states} {len(of_states[0])}", of_states)
    if by_state is None or beside(path, ".trew").exists():
        of_moves: Columns = [x[paid] if by_state is None else nowhere for x in (s, choice, t, r)]
        files[".trew"] = _table(f"{mdp.n_states} {mdp.n_rows} {len(of_moves[0])}", of_moves)
    texts: dict[Path, Iterator[str]] = {beside(path, suffix): parts for suffix, parts in files.items()}
    if mdp.labels.states is not None:
        texts[beside(path, ".sta")] = prism_parts.state_lines(mdp.labels.states)
    texts[path] = _transitions(mdp, s, choice, t, p, a)
    replace_files({file: text_writer(parts) for file, parts in texts.items()})
    if mdp.labels.states is None:
        beside(path, ".sta").unlink(missing_ok=True)  # of an earlier model


def keeps_names(labels: Sequence[Label]) -> bool:
    """Whether these names of actions, of all pairs of a model, are read as labels: words, not all of them numbers."""
    words = words_of(labels)
    return list(words) == [str(label) for label in labels] and not (
        all(map(_NUMBER.fullmatch, words)) or all(map(_ID.fullmatch, words))
    )


def _read_transitions(path: Path, chain: bool, interval: bool) -> tuple[TextTable, IntArray | None]:
    """The table, and the numbers of the actions' names when all have one."""
    lines = head(path, 2)
    if not chain and len(lines) == 2 and _NAMED.search(lines[1][1]):
        try:
            table = read_table(path, _grammar(chain, interval, named=True), skip=1)
            return table, table.ids("action")
        except ModelFileError:
            pass  # some transitions have no such name: the names are not ours
    return read_table(path, _grammar(chain, interval, named=False), skip=1), None


def _grammar(chain: bool, interval: bool, named: bool) -> Grammar:
    ids = ("state", "successor") if chain else ("state", "choice", "successor")
    n = len(ids)
    names: tuple[str, ...]
    if interval:
        # a plain number is an interval of width zero: it is taken twice, once by looking ahead
        probability, names = rf"(?>{_INTERVAL}|(?=({NUMBER}))({NUMBER}))", ("lower", "upper")
        taken, groups = rf"\g<{n + 1}>\g<{n + 3}> \g<{n + 2}>\g<{n + 4}>", n + 4
    else:
        probability, names, taken, groups = f"({NUMBER})", ("probability",), rf"\g<{n + 1}>", n + 1
    line = BLANK + GAP.join([f"({NUMBER})"] * n + [probability])
    template = " ".join([rf"\g<{i}>" for i in range(1, n + 1)] + [taken])
    explain = _explain(ids, interval)
    if named:
        columns = (*ids, *names, "action")
        return Grammar(columns, rf"{line}{GAP}a(\d{{1,9}}){BLANK}", rf"{template} \g<{groups + 1}>", explain)
    line = rf"{line}(?:{GAP}\S++)?+{BLANK}"
    return Grammar((*ids, *names), line, template, explain, plain=None if interval else " ")


def _explain(ids: tuple[str, ...], interval: bool) -> Explain:
    expected = f"{' '.join(ids)} {'[lower,upper]' if interval else 'probability'}, and perhaps the action's name"

    def explain(line: str) -> tuple[str | None, str]:
        fields = line.split()
        for name, field in zip(ids, fields, strict=False):
            if not re.fullmatch(NUMBER, field, re.ASCII):
                return name, f"found {shown(field)}, expected a number."
        if len(fields) > len(ids) and not interval and not re.fullmatch(NUMBER, fields[len(ids)], re.ASCII):
            return "probability", f"found {shown(fields[len(ids)])}, expected a number."
        return None, f"found {shown(line)}, expected {expected}."

    return explain


def _actions(s: IntArray, choice: IntArray, named: IntArray | None, first: IntArray, row: IntArray) -> IntArray:
    """The numbers in the names if they distinguish the choices of each state, otherwise the choices."""
    if named is None or (named != named[first][row]).any():
        return choice
    apart = len(np.unique(pair_keys(s[first], named[first]))) == len(first)
    return named if apart else choice


def _labelled(
    path: Path, s: IntArray, choice: IntArray, first: IntArray, row: IntArray
) -> tuple[IntArray, tuple[Label, ...] | None]:
    """Actions by their names in the order of the file; the choices if names do not tell those of each state apart."""
    index: dict[str, int] = {}
    named = np.zeros(len(s), dtype=np.int64)
    for k, (_, line) in enumerate(islice(content(path), 1, None)):
        match = _NAME.match(line.lstrip())
        if match is None or not match[1]:
            return choice, None
        named[k] = index.setdefault(match[1], len(index))
    if all(map(_NUMBER.fullmatch, index)):
        return choice, None
    action = _actions(s, choice, named, first, row)
    return (action, tuple(index)) if action is named else (choice, None)


def _state_rewards(s: IntArray, r: FloatArray) -> tuple[IntArray, FloatArray] | None:
    """States and their rewards, zero ones left out, or None when some state's rewards differ."""
    states, first, at = np.unique(s, return_index=True, return_inverse=True)
    pays = r[first]
    if (r != pays[at]).any():
        return None
    paid = pays != 0.0
    return states[paid], pays[paid]


def _table(header: str, columns: Columns) -> Iterator[str]:
    yield header + "\n"
    yield from lines_of_numbers(columns, " ")


def _transitions(mdp: MDP, s: IntArray, choice: IntArray, t: IntArray, p: FloatArray, a: IntArray) -> Iterator[str]:
    yield f"{mdp.n_states} {mdp.n_rows} {len(s)}\n"
    ids = zip(s.tolist(), choice.tolist(), t.tolist(), strict=True)
    known = [mdp.labels.action(x) for x in range(mdp.n_actions)]
    if mdp.labels.actions is not None and keeps_names(known):
        names = [f" {known[x]}" for x in a.tolist()]
    else:
        names = [f" a{x}" for x in a.tolist()] if (a != choice).any() else [""] * len(a)
    shares: Iterable[str]
    if mdp.bounds is None:
        shares = map(repr, p.tolist())
    else:
        lower, upper = (bound.tolist() for bound in mdp.bounds)
        shares = (f"[{lo!r},{hi!r}]" for lo, hi in zip(lower, upper, strict=True))
    for (source, number, target), share, name in zip(ids, shares, names, strict=True):
        yield f"{source} {number} {target} {share}{name}\n"


def _labels(mdp: MDP, initial: IntArray) -> Iterator[str]:
    yield from label_lines({"init": initial, "deadlock": np.flatnonzero(mdp.terminal), **mdp.propositions})
