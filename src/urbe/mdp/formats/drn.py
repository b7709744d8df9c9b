"""Read and write Storm's DRN files: a model as text, with state labels, action names and rewards.

    @type: MDP                      or DTMC, a chain with one action per state
    @value_type: double             or double-interval, with values [lower, upper]; or rational, with values 1/3
    @reward_models
    cost                            at most one
    @nr_states
    2
    @model
    state 0 [1.5] init              reward of the state, labels
        action go [0.5]             name and reward of the action: it pays 1.5 + 0.5
            0 : 0.25
            1 : 0.75
    state 1 [0] deadlock "far end"
        action 0 [0]
            1 : 1

`init` marks the initial states, with equal probability. A state labelled `deadlock` whose only transition is a
self-loop of reward 0 is terminal: Storm adds such loops to terminal states, and so does `write`. Other labels become
`MDP.propositions`. Names of actions that are whole numbers are their ids, other names become labels, unless a state has
a name twice: then actions are counted. The format has no names of states, so they are comments after the line of the
state, `//[x=1]`, where Storm writes the variables of programs; `read` takes them if all states have different ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from urbe.atomic import replace_files, text_writer
from urbe.mdp.build import from_transitions
from urbe.mdp.formats import assemble
from urbe.mdp.formats.assemble import ROW_TOLERANCE
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.names import AND, label_of, text_of, words_of
from urbe.mdp.formats.text import NUMBER, Path, content, shown
from urbe.mdp.intervals import PairError
from urbe.mdp.labels import Label, Labels, encode
from urbe.mdp.model import MDP
from urbe.mdp.model_columns import in_labels
from urbe.types import BoolArray, FloatArray, IntArray

TYPES = ("MDP", "DTMC")
_VALUE = re.compile(rf"{NUMBER}(?:/\d+)?", re.ASCII)
_STATE = re.compile(r"state\s+(\d{1,10})(?:\s+\[([^\]]*)\])?((?:\s+(?:\"[^\"]*\"|[^\s\"\[{!]\S*))*)\s*")
_ACTION = re.compile(r"action\s+([^\s\[]\S*)(?:\s+\[([^\]]*)\])?\s*")
_COMMENT = re.compile(r"//\[(.*)\]")
_STORMS_AND = "\t& "
_MOVE = re.compile(r"(\d{1,10})\s*:\s*(?:\[\s*([^\s,\]]+)\s*,\s*([^\s,\]]+)\s*\]|(\S+))\s*")


@dataclass
class _Parsed:
    """What has been read so far; a list for each column of the transitions, and one for each choice."""

    path: Path
    reward: str | None = None
    header: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    marks: dict[str, list[int]] = field(default_factory=dict)
    state_names: dict[int, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    pays: list[float] = field(default_factory=list)
    at_line: list[int] = field(default_factory=list)
    choice: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    interval: bool = False
    of_state: float = 0.0


def read(path: Path, *, discount: float, reward: str | None = None) -> MDP:
    """Reads a DRN file; see `urbe.read_mdp`."""
    found = _parse(_Parsed(path, reward))
    n_states = _count(found, "@nr_states")
    choices = found.header.get("@nr_choices")
    if choices and int(choices[0]) != len(found.names):
        raise _error(found, "@nr_choices", f"{len(found.names)} actions follow, expected {choices[0]} as it says.")
    owner, choice = np.array(found.owner, dtype=np.int64), np.array(found.choice, dtype=np.int64)
    target, low, high = np.array(found.target, dtype=np.int64), np.array(found.low), np.array(found.high)
    if not len(target):
        raise ModelFileError(path, "has no transitions, expected at least one.")
    pays = np.array(found.pays)
    terminal = _terminal(found, owner, choice, target, pays, n_states)
    action, labels = _actions(found, owner, ~terminal[owner])
    keep = ~terminal[owner[choice]]
    s, a = owner[choice], action[choice]
    try:
        mdp = from_transitions(
            s[keep], a[keep], target[keep], None if found.interval else low[keep], pays[choice][keep],
            discount=discount, n_states=n_states, terminal=terminal, row_tolerance=ROW_TOLERANCE,
            lower=low[keep] if found.interval else None, upper=high[keep] if found.interval else None,
        )  # fmt: skip
    except PairError as error:
        at = int(np.argmax((owner == error.state) & (action == error.action)))
        message = in_labels(error, Labels(actions=labels))
        raise ModelFileError(path, message, found.at_line[at]) from None
    except ValueError as error:
        raise ModelFileError(path, str(error)) from None
    starts = found.marks.pop("init", [])
    initial = np.bincount(starts, minlength=n_states) / len(starts) if starts else None
    marks = {name: np.array(sorted(set(states))) for name, states in found.marks.items() if name != "deadlock"}
    return replace(mdp, labels=Labels(_states(found, n_states), labels), initial=initial, propositions=marks)


def write(mdp: MDP, path: Path) -> None:
    """Writes a model; see `urbe.write_mdp`."""
    assemble.require_transitions(mdp, "a DRN file")
    if mdp.rows.rewards_successors:
        raise ValueError(
            "The model's rewards depend on the successor, but a DRN file has one for each action. Write .npz, .csv, "
            ".tra or .umb."
        )
    starts = assemble.uniform_starts(mdp, "a DRN file")
    replace_files({path: text_writer(_text(mdp, starts))})


def _parse(found: _Parsed) -> _Parsed:
    section, state = "", -1
    for number, line in content(found.path):
        text = line.strip()
        if text.startswith("//"):
            if state >= 0 and (comment := _COMMENT.fullmatch(text)):
                found.state_names.setdefault(state, comment[1])
            continue
        if text.startswith("@"):
            section, _, rest = text.partition(":")
            section = section.strip()
            found.header[section] = [rest.strip()] if rest.strip() else []
            found.lines[section] = number
            if section == "@model":
                _check_header(found)
        elif section != "@model":
            found.header.setdefault(section, []).extend(text.split())
        elif text.startswith("state"):
            state = _state(found, text, number, state)
        elif text.startswith("action"):
            _action(found, text, number, state)
        else:
            _move(found, text, number)
    if "@model" not in found.header:
        raise ModelFileError(found.path, "has no line @model, expected a DRN file: @type, @nr_states, ..., @model.")
    if state + 1 != _count(found, "@nr_states"):
        raise _error(found, "@nr_states", f"{state + 1} states follow, expected as many as the header says.")
    return found


def _check_header(found: _Parsed) -> None:
    kind = " ".join(found.header.get("@type", []))
    if kind not in TYPES:
        raise _error(found, "@type", f"found {shown(kind)}, expected one of {', '.join(TYPES)}.")
    if found.header.get("@parameters"):
        names = ", ".join(found.header["@parameters"])
        raise _error(found, "@parameters", f"found {shown(names)}, expected none: give parameters values first.")
    rewards = found.header.get("@reward_models", [])
    listed = ", ".join(rewards) or "none"
    if found.reward is not None and found.reward not in rewards:
        raise _error(found, "@reward_models", f"found {listed}, but reward is {found.reward!r}.")
    if found.reward is None and len(rewards) > 1:
        raise _error(found, "@reward_models", f"found {listed}; choose one, reward='{rewards[0]}'.")
    _count(found, "@nr_states")


def _state(found: _Parsed, text: str, number: int, before: int) -> int:
    match = _STATE.fullmatch(text)
    if match is None or int(match[1]) != before + 1:
        raise ModelFileError(found.path, f"found {shown(text)}, expected state {before + 1}, rewards, labels.", number)
    state = before + 1
    for quoted, plain in re.findall(r"\"([^\"]*)\"|(\S+)", match[3]):
        found.marks.setdefault(quoted or plain, []).append(state)
    found.of_state = _reward(found, match[2], number)
    return state


def _action(found: _Parsed, text: str, number: int, state: int) -> None:
    match = _ACTION.fullmatch(text)
    if match is None or state < 0:
        raise ModelFileError(found.path, f"found {shown(text)}, expected action, its name and rewards.", number)
    found.names.append(match[1])
    found.owner.append(state)
    found.pays.append(found.of_state + _reward(found, match[2], number))
    found.at_line.append(number)


def _move(found: _Parsed, text: str, number: int) -> None:
    match = _MOVE.fullmatch(text)
    if match is None or not found.names:
        raise ModelFileError(found.path, f"found {shown(text)}, expected successor : probability.", number)
    target, n_states = int(match[1]), _count(found, "@nr_states")
    if target >= n_states:
        raise ModelFileError(found.path, f"leads to state {target}, expected one below {n_states}.", number)
    found.interval |= match[4] is None
    low, high = (match[2], match[3]) if match[4] is None else (match[4], match[4])
    found.choice.append(len(found.names) - 1)
    found.target.append(target)
    found.low.append(_probability(found, low, number))
    found.high.append(_probability(found, high, number))


def _reward(found: _Parsed, text: str | None, number: int) -> float:
    """The reward in brackets, which has a number for each reward model."""
    models = found.header.get("@reward_models")
    if text is None or not models:
        return 0.0
    values = text.split(",") if len(models) > 1 else [text]
    if len(values) != len(models):
        raise ModelFileError(found.path, f"found {shown(text)}, expected {len(models)} rewards.", number)
    return _number(found, values[models.index(found.reward) if found.reward is not None else 0].strip(), number)


def _number(found: _Parsed, text: str, number: int) -> float:
    if not _VALUE.fullmatch(text):
        raise ModelFileError(found.path, f"found {shown(text)}, expected a number.", number)
    try:
        return float(Fraction(text)) if "/" in text else float(text)
    except (ZeroDivisionError, OverflowError):
        raise ModelFileError(found.path, f"found {shown(text)}, expected a finite number.", number) from None


def _probability(found: _Parsed, text: str, number: int) -> float:
    value = _number(found, text, number)
    if not 0.0 <= value <= 1.0 + ROW_TOLERANCE:
        raise ModelFileError(found.path, f"found {shown(text)}, expected a probability from 0 to 1.", number)
    return value


def _count(found: _Parsed, name: str) -> int:
    given = found.header.get(name, [])
    if len(given) != 1 or not re.fullmatch(r"\d{1,9}", given[0]) or int(given[0]) == 0:
        raise _error(found, name, f"found {shown(' '.join(given))}, expected the number of states.")
    return int(given[0])


def _error(found: _Parsed, name: str, message: str) -> ModelFileError:
    return ModelFileError(found.path, f"{name}: {message}", found.lines.get(name))


def _actions(found: _Parsed, owner: IntArray, acts: BoolArray) -> tuple[IntArray, tuple[Any, ...] | None]:
    """`(choices,)` ids, and labels if names are not numbers; positions within the state if a name occurs twice.

    The names of the loops of terminal states, where `acts` is False, are ignored.
    """
    pairs = set(zip(found.owner, found.names, strict=True))
    if len(pairs) < len(found.names):
        first = np.searchsorted(owner, owner)
        return np.arange(len(owner)) - first, None
    names, action = np.array(found.names, dtype=object), np.zeros(len(owner), dtype=np.int64)
    if all(re.fullmatch(r"\d{1,9}", name) for name in names[acts]):
        action[acts] = [int(name) for name in names[acts]]
        return action, None
    ids, labels = encode({"action": names[acts]}, labels=True)
    action[acts] = ids["action"]
    return action, labels


def _states(found: _Parsed, n_states: int) -> tuple[Label, ...] | None:
    """Names of the states, or None if some have none or the same.

    Of a Boolean variable that is true, Storm leaves out the name; other states, where it is false, have it.
    """
    texts = [found.state_names.get(state) for state in range(n_states)]
    parts = [None if text is None else text.split(_STORMS_AND) for text in texts]
    untrue = {k: part[1:] for each in parts for k, part in enumerate(each or ()) if part.startswith("!")}
    names = [
        None if each is None else label_of(AND.join(filter(None, (p or untrue.get(k) for k, p in enumerate(each)))))
        for each in parts
    ]
    known = [name for name in names if name is not None]
    return tuple(known) if len(set(known)) == n_states else None


def _terminal(
    found: _Parsed, owner: IntArray, choice: IntArray, target: IntArray, pays: FloatArray, n_states: int
) -> np.ndarray:
    """`(S,)` states without actions, and those labelled deadlock with only a self-loop of reward 0."""
    acts = np.zeros(n_states, dtype=bool)
    acts[owner] = True
    loops = np.ones(n_states, dtype=bool)
    loops[owner[pays != 0.0]] = False
    loops[owner[choice][target != owner[choice]]] = False
    marked = np.zeros(n_states, dtype=bool)
    marked[found.marks.get("deadlock", [])] = True
    return ~acts | (marked & loops)


def _text(mdp: MDP, starts: IntArray) -> Iterator[str]:
    rows, pays = mdp.rows, bool((mdp.rows.reward != 0.0).any())
    kind = "double" if mdp.bounds is None else "double-interval"
    n_ends = int(mdp.terminal.sum())
    yield f"@type: MDP\n@value_type: {kind}\n@parameters\n\n@reward_models\n{'reward' if pays else ''}\n"
    yield f"@nr_states\n{mdp.n_states}\n@nr_choices\n{mdp.n_rows + n_ends}\n@model\n"
    marks: dict[int, list[str]] = {}
    for name, states in {"init": starts, **mdp.propositions}.items():
        for state in np.asarray(states).tolist():
            marks.setdefault(state, []).append(f'"{name}"' if re.search(r"\s", name) else name)
    reward, actions = rows.reward.tolist(), words_of([mdp.labels.action(a) for a in range(mdp.n_actions)])
    for state in range(mdp.n_states):
        said = [*marks.get(state, []), *(["deadlock"] if mdp.terminal[state] else [])]
        yield " ".join([f"state {state}", *(["[0]"] if pays else []), *said]) + "\n"
        if mdp.labels.states is not None:
            yield f"//[{text_of(mdp.labels.states[state])}]\n"
        if mdp.terminal[state]:
            yield f"\taction 0{' [0]' if pays else ''}\n\t\t{state} : {'1' if mdp.bounds is None else '[1, 1]'}\n"
        for row in range(int(mdp.row_start[state]), int(mdp.row_start[state + 1])):
            yield f"\taction {actions[mdp.action[row]]}{f' [{reward[row]!r}]' if pays else ''}\n"
            for at in range(int(rows.entry_start[row]), int(rows.entry_start[row + 1])):
                yield f"\t\t{rows.successor[at]} : {_share(mdp, at)}\n"


def _share(mdp: MDP, at: int) -> str:
    if mdp.bounds is None:
        return repr(float(mdp.rows.probability[at]))
    return f"[{float(mdp.bounds[0][at])!r}, {float(mdp.bounds[1][at])!r}]"
