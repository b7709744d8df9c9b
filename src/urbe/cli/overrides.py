"""`--set field=value`: fields of nested frozen dataclasses by name, values by the fields' types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_type_hints

from urbe import checks

T = TypeVar("T")
_TRUTH = {"true": True, "false": False}


def _truth(text: str) -> bool:
    return _TRUTH[text]


def _many(read: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(read(part) for part in text.split(","))


def _or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text == "none" else read(text)


READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    bool: (_truth, "true or false"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    tuple[int, ...]: (_many(int), "whole numbers with commas between"),
    tuple[float, ...]: (_many(float), "numbers with commas between"),
    int | None: (_or_none(int), "a whole number or none"),
    float | None: (_or_none(float), "a number or none"),
}
"""How the text of a value is read, and what is expected, by the type of the field."""


def override(config: T, assignments: Sequence[str]) -> T:
    """`config` with some fields changed; raises ValueError that names the assignment and lists the fields.

    All of them are applied before anything is checked, so fields that depend on each other can change together.

    >>> from urbe.deep.settings import Settings
    >>> changed = override(Settings(), ["network.hidden=64,64", "copy.episodes=none", "copy.updates=500"])
    >>> changed.network.hidden, changed.copy.updates
    ((64, 64), 500)
    """
    known = dict(_fields(config))
    values = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or name not in known:
            told = checks.listing([f"{each}={show(value)}" for each, (_, value) in known.items()], len(known))
            raise ValueError(f"--set {assignment} names no field, expected NAME=VALUE with one of: {told}.")
        read, expected = READERS[known[name][0]]
        try:
            values[name] = read(text)
        except (ValueError, KeyError):
            raise ValueError(f"--set {assignment} has the value {text!r}, expected {expected}.") from None
    changed: T = _replaced(config, values)
    return changed


def show(value: Any) -> str:
    """A value as it is written after the equals sign."""
    if isinstance(value, tuple):
        return ",".join(map(show, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _fields(config: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """`network.hidden` and so on: the type and the value of every field that has a text."""
    hints = get_type_hints(type(config))
    for field in fields(config):
        value = getattr(config, field.name)
        if hints[field.name] in READERS:
            yield field.name, (hints[field.name], value)
        elif is_dataclass(value):
            for name, found in _fields(value):
                yield f"{field.name}.{name}", found


def _replaced(config: Any, values: dict[str, Any]) -> Any:
    changes: dict[str, Any] = {name: value for name, value in values.items() if "." not in name}
    for part in dict.fromkeys(name.partition(".")[0] for name in values if "." in name):
        inner = {name.partition(".")[2]: value for name, value in values.items() if name.startswith(f"{part}.")}
        changes[part] = _replaced(getattr(config, part), inner)
    return replace(config, **changes)
