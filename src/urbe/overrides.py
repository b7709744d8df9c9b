"""Parse `--set field=value`: change fields of nested frozen dataclasses, with values read by the fields' types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from urbe import checks

T = TypeVar("T")
_TRUTH = {"true": True, "false": False}


def _many(read: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(read(part) for part in text.split(","))


def _or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text == "none" else read(text)


Reader = tuple[Callable[[str], Any], str]
"""A function that parses the text of a value, and a description of valid texts."""

READERS: dict[Any, Reader] = {
    bool: (_TRUTH.__getitem__, "true or false"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    tuple[int, ...]: (_many(int), "whole numbers with commas between"),
    tuple[float, ...]: (_many(float), "numbers with commas between"),
    int | None: (_or_none(int), "a whole number or none"),
    float | None: (_or_none(float), "a number or none"),
}
"""The reader of each type of field."""


def _reader(kind: Any) -> Reader | None:
    """Returns the reader of a type, or None if its values cannot be written as text."""
    if get_origin(kind) is Literal:
        choices = {choice: choice for choice in get_args(kind)}
        return choices.__getitem__, " or ".join(choices)
    return READERS.get(kind)


def override(config: T, assignments: Sequence[str]) -> T:
    """Returns `config` with some fields changed; errors name the assignment and list the fields.

    All changes are applied before the result is validated, so dependent fields can change together.

    >>> from urbe.deep.settings import Settings
    >>> changed = override(Settings(), ["network.hidden=64,64", "copy.episodes=none", "copy.updates=500"])
    >>> changed.network.hidden, changed.copy.updates
    ((64, 64), 500)
    >>> override(Settings(), ["nature=urbe.deep:Worst"]).nature
    Worst()
    """
    parts = _parts(config)
    chosen = {name: text for name, _, text in (each.partition("=") for each in assignments) if name in parts}
    if chosen:
        config = replace(config, **{name: _part(name, text, parts[name]) for name, text in chosen.items()})  # type: ignore[type-var]
        assignments = [each for each in assignments if each.partition("=")[0] not in chosen]
    known = dict(_fields(config))
    values = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or name not in known:
            choices = checks.listing([f"{each}={show(field.value)}" for each, field in known.items()], len(known))
            whole = f"; or NAME=MODULE:ATTRIBUTE with one of: {', '.join(parts)}" if parts else ""
            raise ValueError(f"--set {assignment} names no field, expected NAME=VALUE with one of: {choices}{whole}.")
        read, expected = known[name].reader
        try:
            values[name] = read(text)
        except (ValueError, KeyError):
            raise ValueError(f"--set {assignment} has the value {text!r}, expected {expected}.") from None
    changed: T = _replaced(config, values)
    return changed


def show(value: Any) -> str:
    """Formats a value as it is written after the equals sign."""
    if isinstance(value, tuple):
        return ",".join(map(show, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _parts(config: Any) -> dict[str, Any]:
    """Returns the fields whose type is a protocol, with that protocol; their values may come from any module."""
    hints = get_type_hints(type(config))
    return {each.name: hints[each.name] for each in fields(config) if getattr(hints[each.name], "_is_protocol", False)}


def _part(name: str, text: str, protocol: Any) -> Any:
    """Imports the value `module:attribute`; a class is instantiated without arguments."""
    module, colon, path = text.partition(":")
    expected = f"expected module:attribute, such as urbe.deep:Worst, of a {protocol.__name__}"
    if not colon:
        raise ValueError(f"--set {name}={text} names no module, {expected}.")
    try:
        found: Any = import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
        value = found() if isinstance(found, type) else found
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(f"--set {name}={text} cannot be made ({type(error).__name__}: {error}), {expected}.") from None
    if not isinstance(value, protocol) or not is_dataclass(value):
        raise ValueError(f"--set {name}={text} is {value!r:.100}, {expected} and a frozen dataclass.")
    return value


class _Field(NamedTuple):
    reader: Reader
    value: Any


def _fields(config: Any) -> Iterator[tuple[str, _Field]]:
    """Yields every field with a reader, nested ones by dotted names such as `network.hidden`."""
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
