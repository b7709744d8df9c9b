"""Names of states and actions.

A label is a text or a number. Models, logs and everything computed from them keep the ids 0, 1, 2, ... in their arrays
and carry the labels along; tables, figures, files and messages show the labels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from urbe import checks
from urbe.mdp.frames import STANDS_FOR, RowError
from urbe.types import IntArray

LARGEST_ID = 2**31 - 2  # ids and their number fit into 32 bits

Label = str | int | float


@dataclass(frozen=True)
class Labels:
    """Labels of the states 0, 1, 2, ... and of the actions; None if there are only ids.

    Args:
      states: label of each state, all different.
      actions: label of each action, all different.

    >>> labels = Labels(states=("good", "worn"), actions=("run", "repair"))
    >>> labels.state(1), labels.action(0), Labels().state(1)
    ('worn', 'run', '1')
    >>> labels.state_ids("start", ["worn"])
    array([1])
    """

    states: tuple[Label, ...] | None = None
    actions: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("states", "actions"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _checked(name, given))

    def __bool__(self) -> bool:
        return self.states is not None or self.actions is not None

    def state(self, state: int) -> str:
        """The name of a state."""
        return _name(self.states, state)

    def action(self, action: int) -> str:
        """The name of an action."""
        return _name(self.actions, action)

    def state_texts(self, ids: Iterable[int]) -> list[str]:
        """The names of states."""
        return [self.state(int(s)) for s in ids]

    def action_texts(self, ids: Iterable[int]) -> list[str]:
        """The names of actions; `end` for -1, the action of a terminal state."""
        return ["end" if a < 0 else self.action(int(a)) for a in ids]

    def state_column(self, ids: IntArray) -> np.ndarray:
        """A column for tables: labels as text, or the ids if there are no labels."""
        return ids if self.states is None else np.array(self.state_texts(ids), dtype=np.str_)

    def action_column(self, ids: IntArray) -> np.ndarray:
        """A column for tables: labels as text, `end` for -1; or the ids if there are no labels."""
        return ids if self.actions is None else np.array(self.action_texts(ids), dtype=np.str_)

    def state_ids(self, name: str, values: Any) -> IntArray:
        """The ids of some states, given by label, or by id if states have no labels.

        Args:
          name: of the argument.
          values: labels or ids.
        """
        return _ids(name, values, self._state_index, self.states, "state")

    def state_id(self, name: str, value: int | str, n_states: int) -> int:
        """The id of one of `n_states` states, given by id, or by label if it is a text."""
        if isinstance(value, str) and self.states is not None:
            return int(self.state_ids(name, [value])[0])
        return checks.index(name, value, n_states)

    def action_ids(self, name: str, values: Any) -> IntArray:
        """The ids of some actions, given by label, or by id if actions have no labels."""
        return _ids(name, values, self._action_index, self.actions, "action")

    def to_json(self) -> str:
        """The labels as JSON text, for `from_json`."""
        return json.dumps({"states": self.states, "actions": self.actions}, ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Labels:
        """Reads labels from JSON text and checks them.

        Raises:
          ValueError: the text is not the result of `to_json`.
        """
        found = json.loads(text)
        if not isinstance(found, dict) or set(found) != {"states", "actions"}:
            raise ValueError("labels is not an object with states and actions.")
        return Labels(**{name: None if each is None else tuple(each) for name, each in found.items()})

    @cached_property
    def _state_index(self) -> dict[Label, int]:
        return {label: k for k, label in enumerate(self.states or ())}

    @cached_property
    def _action_index(self) -> dict[Label, int]:
        return {label: k for k, label in enumerate(self.actions or ())}


def _name(labels: tuple[Label, ...] | None, at: int) -> str:
    """A label, or the id itself if there is none, as in messages about ids that do not exist."""
    return str(labels[at]) if labels is not None and 0 <= at < len(labels) else str(at)


NO_LABELS = Labels()
"""No labels: states and actions are called by their ids."""


def encode(
    columns: Mapping[str, np.ndarray], labels: bool | None = None, order: Sequence[Any] | None = None
) -> tuple[dict[str, IntArray], tuple[Label, ...] | None]:
    """Converts columns that share their labels, such as `state` and `next_state`, to ids.

    Args:
      columns: `(N,)` each, nothing missing.
      labels: True takes every value as a label, False none; None takes texts as labels and whole numbers as ids.
      order: labels in the wanted order, as of a categorical; by default numbers are sorted, and strings are sorted with
        the numbers in them by size.

    Returns:
      the ids, and their labels, or None if the values were ids.

    >>> ids, names = encode({"state": np.array(["s2", "s10"]), "next_state": np.array(["s10", "s1"])})
    >>> ids["state"], names
    (array([1, 2]), ('s1', 's2', 's10'))
    """
    if labels is None:
        labels = _are_texts(columns)
    if not labels:
        return {name: _plain_ids(name, column) for name, column in columns.items()}, None
    index: dict[Label, int] = {}
    codes = {}
    for name, column in columns.items():
        values = column.tolist()
        for row, value in enumerate(values):
            if not isinstance(value, (str, int, float)):
                raise RowError(name, row, f"is {checks.shown(value)}, expected a text or a number as a label.")
        plain = [int(v) if isinstance(v, float) and v.is_integer() else str(v) if v is True or v is False else v
                 for v in values]  # fmt: skip
        codes[name] = np.fromiter((index.setdefault(v, len(index)) for v in plain), np.int64, len(plain))
    found = list(index)
    ranked = sorted(found, key=_natural) if order is None else _in_order(found, order)
    rank = np.empty(len(found), dtype=np.int64)
    rank[[index[label] for label in ranked]] = np.arange(len(found))
    return {name: rank[each] for name, each in codes.items()}, tuple(ranked)


def _plain_ids(name: str, column: np.ndarray) -> IntArray:
    """Whole numbers from 0; raises naming the first row that is something else."""
    typed = np.array(column.tolist()) if column.dtype == object else column
    try:
        ids = checks.int_array(name, typed, 0, None, _meaning(name))
    except ValueError:
        for row, value in enumerate(column.tolist()):
            if not isinstance(value, (str, int, float)):
                raise RowError(
                    name, row, f"is {checks.shown(value)}, expected a text or a whole number from 0 on. Convert the "
                    "column with str, to use its values as labels.",
                ) from None  # fmt: skip
            if isinstance(value, (str, bool)) or value < 0 or value % 1:
                raise RowError(
                    name, row, f"is {checks.shown(value)}, expected a whole number from 0 on. If values are names, "
                    f"take all of them as labels with labels=True.{STANDS_FOR}",
                ) from None  # fmt: skip
        raise
    if ids.max(initial=0) > LARGEST_ID:
        row = int(np.argmax(ids > LARGEST_ID))
        raise RowError(
            name, row, f"is {ids[row]}, expected an id up to {LARGEST_ID}. If values are names, take all of them "
            "as labels with labels=True.",
        )  # fmt: skip
    return ids


def _are_texts(columns: Mapping[str, np.ndarray]) -> bool:
    """Whether all values are strings; raises if only some are."""
    kinds = {name: _is_text(column) for name, column in columns.items()}
    flat = np.concatenate(list(kinds.values()))
    if flat.all() or not flat.any():
        return bool(len(flat) and flat.all())
    usual = flat.mean() > 0.5
    name = next(name for name, kind in kinds.items() if (kind != usual).any())
    row = int(np.argmax(kinds[name] != usual))
    wanted, others = ("a text", "texts") if usual else ("a number", "numbers")
    raise RowError(
        name, row, f"is {checks.shown(columns[name].tolist()[row])}, expected {wanted}. Other values are {others}: "
        f"correct it, or take all of them as labels with labels=True.{STANDS_FOR}",
    )  # fmt: skip


def _is_text(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind in "biuf":
        return np.full(len(column), column.dtype.kind == "b")
    if column.dtype.kind in "US":
        return np.ones(len(column), dtype=bool)
    return np.fromiter((isinstance(v, (str, bool)) for v in column.tolist()), bool, len(column))


def _natural(label: Label) -> tuple[int, float, list[Any]]:
    """Numbers first; then texts, in which runs of digits compare by size."""
    if not isinstance(label, str):
        return 0, float(label), []
    parts: list[Any] = re.split(r"(\d+)", label)
    return 1, 0.0, [int(part) if k % 2 else part for k, part in enumerate(parts)] + [label]


def _in_order(found: list[Label], order: Sequence[Any]) -> list[Label]:
    """The labels found in the order of a categorical; others after them."""
    known = [label for label in order if label in set(found)]
    return known + sorted(set(found) - set(known), key=_natural)


def _checked(name: str, labels: Sequence[Label]) -> tuple[Label, ...]:
    if isinstance(labels, str):
        raise ValueError(f"{name} is {labels!r}, expected a list of labels.")
    out = tuple(each.item() if isinstance(each, np.generic) else each for each in labels)
    first: dict[Label, int] = {}
    for k, label in enumerate(out):
        if isinstance(label, bool) or not isinstance(label, (str, int, float)):
            raise ValueError(f"{name}[{k}] is {checks.shown(label)}, expected a text or a number as a label.")
        if first.setdefault(label, k) != k:
            raise ValueError(f"{name}[{k}] is {label!r}, as is {name}[{first[label]}]; expected labels that differ.")
    return out


def _ids(
    name: str, values: Any, index: Mapping[Label, int], labels: tuple[Label, ...] | None, meaning: str
) -> IntArray:
    if labels is None:
        return checks.int_array(name, values, 0, None, meaning)
    given = [values] if isinstance(values, str) or not np.iterable(values) else list(values)
    plain = [v.item() if isinstance(v, np.generic) else v for v in given]
    for row, value in enumerate(plain):
        if value not in index:
            known = checks.listing([repr(label) for label in labels], 10)
            article = "an" if meaning == "action" else "a"
            raise RowError(name, row, f"is {checks.shown(value)}, expected {article} {meaning}: {known}.")
    return np.array([index[value] for value in plain], dtype=np.int64)


def _meaning(name: str) -> str:
    return "action" if name == "action" else "state"
