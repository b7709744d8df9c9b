"""`--set field=value`: fields of nested frozen dataclasses by name, values by the fields' types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from urbe import checks

T = TypeVar("T")
_TRUTH = {"true": True, "false": False}


def _truth(text: str) -> bool:
    return _TRUTH[text]


def _many(read: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(read(part) for part in text.split(","))


def _or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text == "none" else read(text)


Reader = tuple[Callable[[str], Any], str]
"""How the text of a value is read, and what is expected."""

READERS: dict[Any, Reader] = {
    bool: (_truth, "true or false"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    tuple[int, ...]: (_many(int), "whole numbers with commas between"),
    tuple[float, ...]: (_many(float), "numbers with commas between"),
    int | None: (_or_none(int), "a whole number or none"),
    float | None: (_or_none(float), "a number or none"),
}
"""By the type of the field."""


def _reader(kind: Any) -> Reader | None:
    """That of a type, or None where a field of it has no text."""
    if get_origin(kind) is Literal:
        choices = {choice: choice for choice in get_args(kind)}
        return choices.__getitem__, " or ".join(choices)
    return READERS.get(kind)


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
            told = checks.listing([f"{each}={show(field.value)}" for each, field in known.items()], len(known))
            raise ValueError(f"--set {assignment} names no field, expected NAME=VALUE with one of: {told}.")
        read, expected = known[name].reader
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


class _Field(NamedTuple):
    reader: Reader
    value: Any


def _fields(config: Any) -> Iterator[tuple[str, _Field]]:
    """`network.hidden` and so on: every field that has a text."""
    hints = get_type_hints(type(config))
    for field in fields(config):
        value = getattr(config, field.name)
        reader = _reader(hints[field.name])
        if reader is not None:
            yield field.name, _Field(reader, value)
        elif is_dataclass(value):
            for name, found in _fields(value):
                yield f"{field.name}.{name}", found


def _replaced(config: Any, values: dict[str, Any]) -> Any:
    changes: dict[str, Any] = {name: value for name, value in values.items() if "." not in name}
    for part in dict.fromkeys(name.partition(".")[0] for name in values if "." in name):
        inner = {name.partition(".")[2]: value for name, value in values.items() if name.startswith(f"{part}.")}
        changes[part] = _replaced(getattr(config, part), inner)
    return replace(config, **changes)
